// silence: suppresses notifications of some alerts for a while; the agent keeps the silences (docs/notifications.md).
#include <fmt/format.h>

#include <algorithm>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "live/clock.hpp"

namespace vramtrack::cli {
namespace {

struct SilenceOptions {
  ConfigRequest config;
  Silence silence;
  std::optional<double> for_s;
  std::optional<double> in_s;
  std::string id;
  bool json = false;
};

/// A client of the running agent, or nullopt after an error message if there is none.
std::optional<agent::AgentClient> client_of(const LayeredConfig& layers, Console& console) {
  const auto socket = agent::find_agent(layers.config().agent);
  if (socket) return agent::AgentClient(*socket);
  console.error(
      "a silence needs an agent, and none is running on this machine; start one with 'vramtrack agent', or set "
      "notify.silenced-gpus");
  return std::nullopt;
}

/// What the silence matches: "gpu 0, command train\\.py".
std::string matchers(const Silence& s) {
  std::vector<std::string> out;
  if (s.all) out.emplace_back("all alerts");
  if (!s.gpu.empty()) out.push_back("gpu " + s.gpu);
  if (!s.command.empty()) out.push_back("command " + s.command);
  if (!s.user.empty()) out.push_back("user " + s.user);
  if (s.pid != 0) out.push_back(fmt::format("pid {}", s.pid));
  return joined(out);
}

/// One silence as a line for people.
std::string line(const Silence& s, Timestamp now) {
  std::string out = s.id + "  ";
  if (s.begins > now) out += fmt::format("from {} ", format_moment(s.begins, false));
  out += s.endless() ? std::string("forever") : fmt::format("until {}", format_moment(s.ends, false));
  out += fmt::format("  {}  by {}", matchers(s), s.by.empty() ? "somebody" : s.by);
  if (!s.comment.empty()) out += ": " + s.comment;
  return printable(out) + '\n';
}

int add(const SilenceOptions& options, const LayeredConfig& layers, Console& console) {
  const auto client = client_of(layers, console);
  if (!client) return 2;
  const Timestamp now = time_of_day();
  Silence silence = options.silence;
  // The agent uses this machine's clock. Use whole seconds, so that the times shown are exact.
  const Timestamp begins = std::chrono::floor<std::chrono::seconds>(now + from_seconds(options.in_s.value_or(0)));
  if (options.in_s) silence.begins = begins;
  silence.ends = begins + from_seconds(*options.for_s);
  const auto made = client->silence(silence);
  if (!made) {
    console.error(made.error().message);
    return 2;
  }
  const LocalTimes local = console.local_times();
  console.write(options.json ? silence_json(*made) + '\n' : "silenced: " + line(*made, time_of_day()));
  return 0;
}

int list(const SilenceOptions& options, const LayeredConfig& layers, Console& console) {
  const auto client = client_of(layers, console);
  if (!client) return 2;
  const auto silences = client->silences();
  if (!silences) {
    console.error(silences.error().message);
    return 2;
  }
  const LocalTimes local = console.local_times();
  for (const Silence& s : *silences) console.write(options.json ? silence_json(s) + '\n' : line(s, time_of_day()));
  if (silences->empty() && !options.json) console.write("no silence\n");
  return 0;
}

int end(const SilenceOptions& options, const LayeredConfig& layers, Console& console) {
  const auto client = client_of(layers, console);
  if (!client) return 2;
  const auto silences = client->silences();
  if (silences &&
      std::none_of(silences->begin(), silences->end(), [&](const Silence& s) { return s.id == options.id; })) {
    console.error(fmt::format("no silence has the id '{}'; 'vramtrack silence list' shows them", options.id));
    return 2;
  }
  if (const Status ended = client->end_silence(options.id); !ended) {
    console.error(ended.error().message);
    return 2;
  }
  console.write(printable(options.id) + " has ended\n");
  return 0;
}

SetWord at_most_a_year(std::optional<double>& into_s) {
  return [set = duration(into_s)](const std::string& word) -> Status {
    constexpr double kMost_s = 366 * 86400.0;
    if (const auto seconds = parse_duration_s(word); seconds && *seconds > kMost_s) return fail("must be at most 366d");
    return set(word);
  };
}

Runner declare_add(Arguments& arguments) {
  const auto options = std::make_shared<SilenceOptions>();
  Silence& silence = options->silence;
  arguments.option("--gpu", "INDEX|ID", "Silence the alerts about this GPU and its processes", text(silence.gpu));
  arguments.option("--command", "REGEX", "Silence the alerts about processes whose command matches",
                   text(silence.command));
  arguments.option("--user", "NAME", "Silence the alerts about processes of this user", text(silence.user));
  arguments.option(
      "--pid", "PID", "Silence the alerts about this process",
      whole_number([&silence](std::uint64_t pid) { silence.pid = static_cast<std::uint32_t>(pid); }, 1, UINT32_MAX));
  arguments.flag("--all", "Silence all alerts about this machine", silence.all);
  arguments.option("--for", "DURATION", "How long: 30min, 2h, 3d", at_most_a_year(options->for_s)).required();
  arguments.option("--in", "DURATION", "Start after this long (default: immediately)", at_most_a_year(options->in_s));
  arguments.option("--comment", "TEXT", "The reason, shown with the silence", text(silence.comment));
  arguments.option("--by", "NAME", "Who creates the silence (default: your user name)", text(silence.by));
  add_json(arguments, options->json);
  add_config(arguments, options->config);
  return configured<SilenceOptions>(options, add);
}

Runner declare_list(Arguments& arguments) {
  const auto options = std::make_shared<SilenceOptions>();
  add_json(arguments, options->json);
  add_config(arguments, options->config);
  return configured<SilenceOptions>(options, list);
}

Runner declare_end(Arguments& arguments) {
  const auto options = std::make_shared<SilenceOptions>();
  arguments.operand("ID", "The id that 'vramtrack silence list' shows", text(options->id)).required();
  add_config(arguments, options->config);
  return configured<SilenceOptions>(options, end);
}

constexpr CommandInfo kAdd{"add", "Mute notifications for matching alerts",
                           "Examples:\n"
                           "  vramtrack silence add --gpu 0 --for 2h --comment 'driver update'\n"
                           "  vramtrack silence add --command 'preload.*--warm' --for 1d\n"
                           "  vramtrack silence add --all --in 30min --for 4h --comment 'maintenance'\n"
                           "Several conditions must all match. Alerts are still raised and shown.\nIf they are still "
                           "active when the silence ends, notifications are sent then.\nExit: 0 silenced, 2 failed.",
                           declare_add};
constexpr CommandInfo kList{"list", "List the silences that have not ended",
                            "Example:\n  vramtrack silence list\nExit: 0, or 2 if no agent answers.", declare_list};
constexpr CommandInfo kEnd{"end", "End a silence now",
                           "Example:\n  vramtrack silence end 3f9a01bc\nExit: 0 ended, 2 failed.", declare_end};
constexpr const CommandInfo* kVerbs[] = {&kAdd, &kList, &kEnd};

}  // namespace

const CommandInfo silence_command{"silence", "Mute notifications for matching alerts, for example during maintenance",
                                  "Examples:\n"
                                  "  vramtrack silence add --gpu 0 --for 2h --comment 'driver update'\n"
                                  "  vramtrack silence list\n"
                                  "  vramtrack silence end 3f9a01bc",
                                  nullptr, kVerbs};

}  // namespace vramtrack::cli
