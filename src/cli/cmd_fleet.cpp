// fleet: judges the memory of GPUs, from a Prometheus-compatible server that collects it.
#include "cli/cmd_fleet.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "cli/commands.hpp"
#include "cli/fleet_options.hpp"
#include "cli/moment.hpp"
#include "cli/progress.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/time.hpp"
#include "fleet/context.hpp"
#include "fleet/packed.hpp"
#include "fleet/scan.hpp"
#include "fleet/text.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoLeak = 0;
constexpr int kLeak = 1;
constexpr int kFailed = 2;

struct FleetScanOptions : FleetOptions {
  PeriodArguments period;
  std::string format = "text";
  std::uint64_t limit = 50;
};

/// The shard and labels, and the period from --since to --until.
Result<fleet::PlanOptions> timed_plan_of(const FleetScanOptions& o) {
  auto plan = plan_of(o);
  if (!plan) return plan;
  const Timestamp now = std::chrono::system_clock::now();
  const auto range = time_range(o.period, {}, now, true);
  if (!range) return fail(range.error());
  const Timestamp until = range->to.value_or(now);
  plan->start_ms = fleet::ms_of(range->from.value_or(until - std::chrono::hours{24}));
  plan->end_ms = fleet::ms_of(until);
  return plan;
}

int failed(Console& console, const std::string& why) {
  console.error("cannot scan: " + printable_lines(why));
  return kFailed;
}

int scan(const FleetScanOptions& o, const LayeredConfig& layers, Console& console) {
  auto reader = reader_of(o);
  if (!reader) return failed(console, reader.error().message);
  const auto mapping = mapping_of(o);
  if (!mapping) return failed(console, mapping.error().message);
  fleet::ScanOptions options;
  options.config = layers.config();
  const auto plan = timed_plan_of(o);
  if (!plan) return failed(console, plan.error().message);
  options.plan = *plan;
  options.threads = threads_of(o);
  options.json = o.format == "json";
  options.is_cancelled = Interrupt::requested;
  const auto begun = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, console, "scanning " + reader->origin());
  fleet::Scan asked;
  const auto here = fleet::answering_persistently(*reader, options, asked);
  if (!here) return failed(console, here.error().why);
  auto scanned =
      fleet::scan(*here, *mapping, options, [&](std::size_t judged, std::size_t machines, std::uint64_t samples) {
        progress->show(fmt::format("{} of {} machines judged, {} samples", format_number(judged),
                                   format_number(machines), format_number(samples)));
      });
  progress.reset();
  if (!scanned) return failed(console, scanned.error().why);
  scanned->unread.insert(scanned->unread.end(), asked.unread.begin(), asked.unread.end());
  if (!scanned->was_cancelled) scanned->unknown = fleet::unknown_metrics(*here, *mapping, options.plan);
  if (scanned->machines.empty() && scanned->was_cancelled)
    return failed(console, "it was interrupted before anything was read");
  if (scanned->machines.empty() && scanned->unread.empty())
    return failed(console, fmt::format("{} has no GPU memory metric of a known exporter in this period; "
                                       "'vramtrack fleet exporters' lists them, and --exporters adds others",
                                       here->origin()) +
                               (scanned->unknown.empty() ? "" : '\n' + unknown_metrics_text(scanned->unknown)));
  fleet::FleetFindings found = fleet::find(*scanned);
  if (!scanned->was_cancelled) fleet::add_caches(*here, *mapping, options.plan.end_ms, found);
  fleet::ScanWords words;
  words.server = here->origin();
  words.length = format_span(static_cast<double>(options.plan.end_ms - options.plan.start_ms) / 1000);
  words.path = here->paths();
  words.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  words.usd_per_gpu_hour = layers.config().cost.usd_per_gpu_hour;
  words.most_jobs = o.limit;
  console.write(options.json ? scan_json(*scanned, found, words) : scan_text(*scanned, found, words));
  for (const fleet::Unread& unread : scanned->unread)
    console.error(fmt::format("{} could not be read: {}", printable(words_of(unread)), printable(unread.why)));
  if (!scanned->unread.empty() || scanned->was_cancelled) return kFailed;
  for (const fleet::MachineVerdict& machine : scanned->machines)
    for (const fleet::GpuVerdict& gpu : machine.gpus)
      if (gpu.has_leaked()) return kLeak;
  return kNoLeak;
}

Runner declare_scan(Arguments& arguments) {
  const auto o = std::make_shared<FleetScanOptions>();
  add_period(arguments, o->period, "Start of the period: a time, or how long before its end (default 24h)",
             "End of the period (default: now)");
  arguments.format({"text", "json"}, "Print as: text (default), json", text(o->format));
  arguments.option("--limit", "N", "Maximum rows of the table (default 50)",
                   whole_number([o = o.get()](std::uint64_t n) { o->limit = n; }, 1, 1'000'000));
  add_fleet_options(arguments, *o);
  return until_interrupted(configured<FleetScanOptions>(o, scan));
}

Runner declare_exporters(Arguments&) {
  return [](Console& console) {
    console.write(fleet::Mapping::built_in());
    return 0;
  };
}

const CommandInfo kScan{
    "scan", "Read a period from the server and judge every GPU once",
    "Examples:\n"
    "  vramtrack fleet scan --url http://prometheus:9090\n"
    "  vramtrack fleet scan --url http://prometheus:9090 --since 7d --only cluster=training\n"
    "  vramtrack fleet scan --url https://mimir/prometheus --header 'X-Scope-OrgID: gpu' --format json\n"
    "Exit: 0 no leak, 1 a leak was found and not withdrawn, 2 part of the data could not be read.",
    declare_scan};
const CommandInfo kExporters{"exporters", "Print the metrics and labels that are read, in the format of --exporters",
                             "Example:\n  vramtrack fleet exporters >exporters.toml", declare_exporters};
const CommandInfo* const kVerbs[] = {&kScan, &fleet_watch_command, &kExporters};

}  // namespace

const CommandInfo fleet_command{"fleet", "Judge all GPUs that a Prometheus-compatible server knows, without an agent",
                                "Examples:\n"
                                "  vramtrack fleet scan --url http://prometheus:9090 --since 24h\n"
                                "  vramtrack fleet exporters",
                                nullptr, kVerbs};

}  // namespace vramtrack::cli
