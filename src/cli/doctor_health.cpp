#include "cli/doctor_health.hpp"

#include <memory>
#include <utility>

#include "cli/moment.hpp"
#include "live/clock.hpp"

namespace vramtrack::cli {
namespace {

/// Wraps `set` to record the option's name, because the option is valid only with --health.
SetWord with_health(HealthOptions& options, std::string name, SetWord set) {
  return [&options, name = std::move(name), set = std::move(set)](const std::string& word) {
    if (options.first.empty()) options.first = name;
    return set(word);
  };
}

}  // namespace

void add_health(Arguments& arguments, HealthOptions& into) {
  constexpr std::uint64_t kMostGpus = 4095;
  arguments.flag("--health", "Check whether the GPUs are fit for work", into.is_asked_for)
      .in_manual(
          "It reads ECC errors, memory repairs, throttling, lost GPUs, XID errors in the kernel log, and whether the "
          "driver's library matches its kernel module. The exit code is 0 if the GPUs are healthy, 1 if one is "
          "not, and 2 if something could not be checked.");
  arguments
      .format({"text", "json", "npd"}, "With --health, print as: text (default), json, npd",
              with_health(into, "--format", text(into.format)))
      .in_manual("The format npd is one line, for plugins of Kubernetes' node-problem-detector.");
  arguments
      .option("--fail-on", "LEVEL",
              "With --health, the level from which a GPU counts as unhealthy: critical (default), warning",
              with_health(into, "--fail-on", one_of({"critical", "warning"}, into.fail_on)))
      .completes({"critical", "warning"});
  arguments
      .option("--kernel-log", "FILE", "With --health, read XID errors from this file ('-': standard input)",
              with_health(into, "--kernel-log", text(into.request.log_path)))
      .file()
      .in_manual("Default: /dev/kmsg. A file may come from dmesg, journalctl -k or kern.log, and may be compressed.");
  arguments.flag("--no-kernel-log", "With --health, do not look for XID errors in the kernel log", [&into] {
    into.request.reads_log = false;
    if (into.first.empty()) into.first = "--no-kernel-log";
  });
  arguments.option("--since", "TIME", "With --health, how far back to read /dev/kmsg: 8h, yesterday (default: 24h)",
                   with_health(into, "--since", [&into](const std::string& word) -> Status {
                     const Timestamp now = time_of_day();
                     const auto since = parse_moment("--since", word, {}, now);
                     if (!since) return fail(since.error());
                     into.request.since_s = seconds_between(*since, now);
                     return into.request.since_s > 0 ? Status() : fail("must be before now");
                   }));
  arguments
      .flag("--expect-empty", "With --health, memory in use or a process left on a GPU is a critical finding",
            [&into] {
              into.request.expects_empty = true;
              if (into.first.empty()) into.first = "--expect-empty";
            })
      .in_manual("For the epilog of a job. What the driver keeps for itself is allowed.");
  arguments.list(
      "--gpu", "N", "With --health, check these GPUs only",
      with_health(
          into, "--gpu",
          whole_number([&into](std::uint64_t n) { into.request.gpus.push_back(static_cast<int>(n)); }, 0, kMostGpus)));
}

int doctor_health(const HealthOptions& options, const ConfigRequest& config, Console& console) {
  constexpr int kUnknown = static_cast<int>(HealthStatus::unknown);
  const Result<LayeredConfig> layers = load_config(config);
  if (!layers) {
    console.error(layers.error().message);
    return kUnknown;
  }
  const HealthFacts facts = gather_health(layers->config().sources, options.request);
  const HealthCheckup checkup =
      check_health(facts, options.fail_on == "warning" ? HealthSeverity::warning : HealthSeverity::critical);
  if (options.format == "json")
    console.write(health_json(checkup));
  else if (options.format == "npd")
    console.write(health_line(checkup));
  else
    console.write(health_text(checkup, console.style()));
  return console.failed() ? kUnknown : static_cast<int>(checkup.status);
}

}  // namespace vramtrack::cli
