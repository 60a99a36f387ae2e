// mark: reports to the agent that a program has reached a point, so that growth is known per step or request.
#include <fmt/format.h>
#include <unistd.h>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/mark.hpp"
#include "host/process_tree.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNotMarked = 2;

struct MarkOptions {
  ConfigRequest config;
  std::string mark;
  std::uint32_t pid = 0;  ///< 0: the program that runs this command, or runs beside it
};

int mark(const MarkOptions& options, const LayeredConfig& layers, Console& console) {
  const auto socket = agent::find_agent(layers.config().agent);
  if (!socket) {
    console.error(
        "a mark needs an agent, and none is running on this machine; start one with 'vramtrack agent', or set "
        "agent.socket to the one that is mounted into this container");
    return kNotMarked;
  }
  const auto pids = options.pid != 0 ? std::vector<std::vector<std::uint32_t>>{{options.pid}}
                                     : processes_around("/proc", static_cast<std::uint32_t>(::getpid()));
  const Status marked = agent::AgentClient(*socket).mark(pids, options.mark);
  if (marked) return 0;
  console.error(
      options.pid != 0
          ? marked.error().message
          : marked.error().message +
                "; without --pid, the program is looked for among those that run this command, and in its session");
  return kNotMarked;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<MarkOptions>();
  arguments
      .operand("MARK", "What the program has reached: NAME, which vramtrack counts, or NAME=NUMBER",
               [options](const std::string& word) -> Status {
                 if (const auto mark = parse_mark(word); !mark) return tl::unexpected(mark.error());
                 options->mark = word;
                 return {};
               })
      .required();
  arguments.option(
      "--pid", "PID",
      "The program's pid, as seen from here (default: the nearest program that runs this command and holds GPU memory, "
      "or else the only one in its session)",
      whole_number([options](std::uint64_t pid) { options->pid = static_cast<std::uint32_t>(pid); }, 1, UINT32_MAX));
  add_config(arguments, options->config);
  return configured<MarkOptions>(options, mark);
}

}  // namespace

const CommandInfo mark_command{
    "mark", "Report to the agent that a program has reached a step or a request, to measure growth per step",
    "Examples:\n"
    "  vramtrack mark step=1200                                from within the program, or its script\n"
    "  vramtrack mark --pid 4242 request                       vramtrack counts\n"
    "For programs that cannot import vramtrack: 'top', the dashboard and the API then show how much memory the\n"
    "process grows from mark to mark. A process may be marked by its user, root and the agent's user, and from a\n"
    "container that mounts the agent's socket, by the pids inside that container. For a program under\n"
    "'vramtrack run', 'vramtrack control --mark' writes marks into its trace.\n"
    "Exit: 0 marked, 2 no agent answers, or the agent sees no such process of yours.",
    declare};

}  // namespace vramtrack::cli
