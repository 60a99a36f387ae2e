#include "cli/live_sites.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_trace.hpp"
#include "core/format.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/trace_render.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::chrono::seconds kLeastPause{5};
constexpr int kPausePerReading = 10;  ///< at most a tenth of one core's time

std::string place(const trace::ReportSite& site, const trace::Symbols& symbols) {
  return site.line.is_known ? printable(trace::frame_words(symbols, site.line.frame)) : std::string(site.call);
}

/// What the line that probably keeps a finding holds besides its own: "model.py:20 forward (1.1 GiB) and 2 more lines".
std::string others_of(const trace::Finding& finding, const trace::TraceReport& report, const trace::Symbols& symbols) {
  constexpr std::size_t kNamed = 2;
  std::string out;
  for (std::size_t i = 1; i < finding.sites.size() && i <= kNamed; ++i) {
    const trace::ReportSite& site = report.sites[finding.sites[i]];
    out += fmt::format("{}{} ({})", i > 1 ? ", " : "", place(site, symbols), format_size(site.live.bytes));
  }
  if (finding.sites.size() > 1 + kNamed)
    out += fmt::format(" and {} more", format_count(finding.sites.size() - 1 - kNamed, "line"));
  return out;
}

}  // namespace

LiveSites::~LiveSites() {
  if (thread_.joinable()) thread_.join();
}

void LiveSites::look(const std::string& trace) {
  {
    const std::lock_guard lock(mutex_);
    if (is_reading_ || Clock::now() < next_) return;
    is_reading_ = true;
  }
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, trace] { read(trace); });
}

void LiveSites::read(const std::string& trace) {
  const Clock::time_point begin = Clock::now();
  auto sites = read_(trace);
  const Clock::time_point end = Clock::now();
  const std::lock_guard lock(mutex_);
  if (sites) newest_ = std::move(*sites);
  next_ = end + std::max<Clock::duration>(kLeastPause, kPausePerReading * (end - begin));
  is_reading_ = false;
}

std::vector<std::string> LiveSites::new_leaks() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  if (!newest_) return found;
  const std::set<std::string> before = reported_;  // a line in two leaks is news in both
  for (const FoundLeak& leak : newest_->leaks)
    if (!take_locked(leak.lines, before))
      found.push_back(fmt::format("{}; it began {} after the start", leak.words, format_span(leak.since_s)));
  return found;
}

bool LiveSites::take(const std::vector<std::string>& lines) {
  const std::lock_guard lock(mutex_);
  const std::set<std::string> before = reported_;
  return take_locked(lines, before);
}

/// A line that joins a reported leak is not news.
bool LiveSites::take_locked(const std::vector<std::string>& lines, const std::set<std::string>& before) {
  const bool is_reported =
      std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return before.contains(line); });
  reported_.insert(lines.begin(), lines.end());
  return is_reported;
}

std::string LiveSites::json() const {
  const std::lock_guard lock(mutex_);
  return newest_ ? newest_->json : std::string();
}

Result<SitesSoFar> sites_of_trace(const std::string& trace) {
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run({trace}, {}, symbols, native.get());
  if (!run) return fail(run.error());
  const trace::TraceReport report = trace::report_of((*run)->trace, *(*run)->names);
  SitesSoFar sites;
  sites.json = trace::trace_report_json(report, *(*run)->names);
  while (!sites.json.empty() && sites.json.back() == '\n') sites.json.pop_back();
  sites.verdict = (report.leak        ? "leaks: "
                   : report.suspected ? "suspected leak: "
                   : report.can_tell  ? "no leak: "
                                      : "cannot tell: ") +
                  report.because;
  const trace::Symbols& read = (*run)->names->symbols();
  for (const trace::Finding& finding : report.findings) {
    std::string held =
        fmt::format("{} in {}", format_size(finding.live.bytes),
                    format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, finding.live.blocks)), "block"));
    const std::string where = place(report.sites[finding.sites.front()], read);
    if (finding.keeper) held += ", kept by " + finding.keeper->words;
    if (finding.sites.size() > 1) held += ", with " + others_of(finding, report, read);
    if (finding.leak) {
      FoundLeak& leak = sites.leaks.emplace_back();
      leak.words =
          fmt::format("{}: {}/s, {}", where, format_size(static_cast<std::int64_t>(finding.growth_bytes_per_s)), held);
      leak.since_s = std::max(0.0, report.duration_s - finding.oldest_s);
      for (const std::size_t site : finding.sites) leak.lines.push_back(place(report.sites[site], read));
    } else {
      sites.suspected.push_back(fmt::format("{}: {}", where, held));
    }
  }
  return sites;
}

}  // namespace vramtrack::cli
