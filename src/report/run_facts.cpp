#include "report/run_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/end_words.hpp"
#include "core/format.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMaxRuns = 10;
constexpr double kBriefRun_s = 60;  ///< shorter runs are counted
/// The engine keeps this many runs of a device; with as many, earlier ones may be missing.
constexpr std::size_t kMostKept = 256;

/// "2026-01-01T08:00:00Z to 2026-01-01T09:32:00Z, 1h 32m: +186 MiB/min, 24.0/24.0 GiB at most, ran out of memory, pid
/// 4242; first alert 56m before its end"
std::string run_words(const Run& run, const SeriesView& s, const View& view) {
  const auto peak = static_cast<double>(run.peak_bytes);
  std::string out = fmt::format("{} to {}", view.moment(run.begin), run.end ? view.moment(*run.end) : "the end");
  const auto until = run.end ? run.end : s.last;
  if (until) out += ", " + view.scale.duration(seconds_between(run.begin, *until));
  out += ": ";
  if (run.growth_bytes_per_s) out += view.scale.rate(*run.growth_bytes_per_s) + ", ";
  out += fmt::format("peak {}, ", s.device.capacity_bytes
                                      ? view.scale.bytes_of(peak, static_cast<double>(*s.device.capacity_bytes))
                                      : view.scale.bytes(peak));
  if (!run.end)
    return out + "still running" + (run.first_alert ? "; first alert " + view.moment(*run.first_alert) : std::string());
  out += words_of_end(run.how).plain;
  if (run.pid != 0) out += fmt::format(", pid {}", run.pid);
  if (const auto lead = run_lead_s(run))
    out += fmt::format("; first alert {} before its end", view.scale.duration(*lead));
  return out;
}

}  // namespace

std::vector<Fact> run_facts(const View& view, const SeriesView& s) {
  std::vector<Fact> out;
  if (s.runs.size() < 2) return out;
  std::vector<const Run*> words;
  std::size_t brief = 0;
  for (const Run& run : s.runs)
    if (run.end && seconds_between(run.begin, *run.end) < kBriefRun_s)
      ++brief;
    else
      words.push_back(&run);
  const auto add = [&out](std::string text) { out.push_back({"runs", std::move(text)}); };
  const bool all = s.runs.size() < kMostKept;
  add(all ? fmt::format("{} in all, oldest first", s.runs.size())
          : fmt::format("the last {}, oldest first", s.runs.size()));
  const std::size_t from = words.size() > kMaxRuns ? words.size() - kMaxRuns : 0;
  for (std::size_t i = from; i < words.size(); ++i) add(run_words(*words[i], s, view));
  std::vector<std::string> more;
  if (from > 0) more.push_back(fmt::format("{} earlier run{}", from, from == 1 ? "" : "s"));
  if (brief > 0) more.push_back(fmt::format("{} run{} shorter than a minute", brief, brief == 1 ? "" : "s"));
  if (!more.empty())
    add(fmt::format("... and {}; JSON lists {}", fmt::join(more, " and "), all ? "all" : "the last 256"));
  return out;
}

}  // namespace vramtrack
