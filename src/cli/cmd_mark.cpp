// mark: tells the agent that a program has come to a point, so that growth is known per step or request.
#include <fmt/format.h>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/mark.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNotMarked = 2;

struct MarkOptions {
  ConfigRequest config;
  std::string mark;
  std::uint32_t pid = 0;
};

int mark(const MarkOptions& options, const LayeredConfig& layers, Console& console) {
  const auto socket = agent::find_agent(layers.config().agent);
  if (!socket) {
    console.error(
        "a mark needs an agent, and none is running on this machine; start one with 'vramtrack agent', or set "
        "agent.socket to the one that is mounted into this container");
    return kNotMarked;
  }
  const Status marked = agent::AgentClient(*socket).mark(options.pid, options.mark);
  if (marked) return 0;
  console.error(marked.error().message);
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
  arguments
      .option(
          "--pid", "PID", "The program's pid, as seen from here",
          whole_number([options](std::uint64_t pid) { options->pid = static_cast<std::uint32_t>(pid); }, 1, UINT32_MAX))
      .required();
  add_config(arguments, options->config);
  return configured<MarkOptions>(options, mark);
}

}  // namespace

const CommandInfo mark_command{
    "mark", "Report to the agent that a program has reached a step or a request, to measure growth per step",
    "Examples:\n"
    "  vramtrack mark --pid 4242 step=1200\n"
    "  vramtrack mark --pid 4242 request                       vramtrack counts\n"
    "For programs that cannot import vramtrack: 'top', the dashboard and the API then show how much memory the\n"
    "process grows from mark to mark. A process may be marked by its user, root and the agent's user, and from a\n"
    "container that mounts the agent's socket, by the pids inside that container. For a program under\n"
    "'vramtrack run', 'vramtrack control --mark' puts marks into its trace.\n"
    "Exit: 0 marked, 2 no agent answers, or the agent sees no such process of yours.",
    declare};

}  // namespace vramtrack::cli
