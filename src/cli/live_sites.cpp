#include "cli/live_sites.hpp"

#include <fmt/format.h>

#include "cli/cmd_trace.hpp"
#include "core/format.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/trace_render.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::chrono::seconds kLeastPause{5};
constexpr int kPausePerReading = 10;  ///< at most a tenth of one core's time

/// The part before the figures, which identifies a line.
std::string place_of(const std::string& leak) {
  return leak.substr(0, leak.find(": "));
}

std::string place(const trace::ReportSite& site, const trace::Symbols& symbols) {
  return site.line.is_known ? printable(trace::frame_words(symbols, site.line.frame)) : std::string(site.call);
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
  for (const std::string& leak : newest_->leaks)
    if (told_.insert(place_of(leak)).second) found.push_back(leak);
  return found;
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
  for (const trace::ReportSite& site : report.sites) {
    const std::string held = fmt::format("{} in {} block{}", format_bytes(static_cast<double>(site.live.bytes)),
                                         site.live.blocks, site.live.blocks == 1 ? "" : "s");
    const std::string where = place(site, (*run)->names->symbols());
    if (site.leak)
      sites.leaks.push_back(
          fmt::format("{}: {}/s, {}", where, format_size(static_cast<std::int64_t>(site.growth_bytes_per_s)), held));
    if (site.suspected) sites.suspected.push_back(fmt::format("{}: {}", where, held));
  }
  return sites;
}

}  // namespace vramtrack::cli
