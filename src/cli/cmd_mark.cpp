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
      .operand("MARK", "What it has come to: NAME, which counts by itself, or NAME=NUMBER",
               [options](const std::string& word) -> Status {
                 if (const auto mark = parse_mark(word); !mark) return tl::unexpected(mark.error());
                 options->mark = word;
                 return {};
               })
      .required();
  arguments
      .option(
          "--pid", "PID", "The program, by its pid as it is here",
          whole_number([options](std::uint64_t pid) { options->pid = static_cast<std::uint32_t>(pid); }, 1, UINT32_MAX))
      .required();
  add_config(arguments, options->config);
  return configured<MarkOptions>(options, mark);
}

}  // namespace

const CommandInfo mark_command{
    "mark", "Tell the agent that a program has come to a step or a request, for growth per step",
    "Examples:\n"
    "  vramtrack mark --pid 4242 step=1200\n"
    "  vramtrack mark --pid 4242 request                       counts by itself\n"
    "For programs that cannot import vramtrack: 'top', the dashboard and the API then show how much memory the\n"
    "process gains from one to the next. Its user, root and the agent's user may mark a process; from within a\n"
    "container into which the agent's socket is mounted, its own processes by their pids there. A program under\n"
    "'vramtrack run' gets marks in its trace by 'vramtrack control --mark'.\n"
    "Exit: 0 marked, 2 no agent answers, or it knows no such process of yours.",
    declare};

}  // namespace vramtrack::cli
