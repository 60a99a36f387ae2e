#include "cli/doctor_health.hpp"

#include <algorithm>
#include <memory>
#include <utility>

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

/// The request, with the period converted to times before now.
Result<HealthRequest> with_period(const HealthOptions& options) {
  HealthRequest request = options.request;
  const Timestamp now = time_of_day();
  const auto range = time_range(options.period, {}, now);
  if (!range) return fail(range.error());
  if (range->from) request.since_s = seconds_between(*range->from, now);
  if (request.since_s <= 0) return fail("--since must be before now");
  if (range->to) request.until_s = std::max(0.0, seconds_between(*range->to, now));
  if (request.until_s >= request.since_s)
    return fail("--until must be later than --since, which is 24h ago by default");
  return request;
}

}  // namespace

void add_health(Arguments& arguments, HealthOptions& into) {
  constexpr std::uint64_t kMostGpus = 4095;
  arguments.flag("--health", "Check whether the GPUs are fit for work", into.is_asked_for)
      .in_manual(
          "It reads ECC errors, memory repairs, throttling, lost GPUs, XID errors in the kernel log, and whether the "
          "driver's library matches its kernel module. The exit code is 0 if the GPUs are healthy, 1 if one is "
          "not, and 2 if something could not be checked.");
  const std::vector<std::string> formats = {"text", "json", "npd"};
  arguments
      .option("--format", "NAME", "With --health, print as: text (default), json, npd",
              with_health(into, "--format", one_of(formats, into.format)))
      .completes(formats)
      .in_manual("The format npd is one line, for plugins of Kubernetes' node-problem-detector.");
  // Reported under its own name: a user who typed --json may not know --format.
  arguments.flag("--json", "The same as --format json", [&into] {
    into.format = "json";
    if (into.first.empty()) into.first = "--json";
  });
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
                   with_health(into, "--since", text(into.period.since)));
  arguments.option("--until", "TIME", "With --health, read /dev/kmsg up to this time (default: now)",
                   with_health(into, "--until", text(into.period.until)));
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
  const auto request = with_period(options);
  if (!request) {
    console.error(request.error().message);
    return kUnknown;
  }
  const HealthFacts facts = gather_health(layers->config().sources, *request);
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
