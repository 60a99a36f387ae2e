#include "top/site_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/command.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"

namespace vramtrack::top {
namespace {

/// `vramtrack trace report` shows more.
constexpr std::size_t kMostRows = 12;

std::string rate(double bytes_per_s) {
  constexpr double kMost = 9e18;  // a run may report anything
  return bytes_per_s == 0 ? "-" : format_size(static_cast<std::int64_t>(std::clamp(bytes_per_s, -kMost, kMost))) + "/s";
}

std::string conclusion(const SitesReport& report) {
  const auto leaking = std::count_if(report.sites.begin(), report.sites.end(), [](const auto& s) { return s.leak; });
  if (leaking > 0)
    return fmt::format("{} line{} leak{}, {}: {}", leaking, leaking == 1 ? "" : "s", leaking == 1 ? "s" : "",
                       rate(report.growth_bytes_per_s), printable(report.because));
  return fmt::format("{}: {}",
                     report.suspected  ? "a line may leak"
                     : report.can_tell ? "no line leaks"
                                       : "too early to tell",
                     printable(report.because));
}

std::string name_of(const MemorySite& site) {
  return printable(site.site.empty() ? site.call : site.site);
}

}  // namespace

std::string leaking_line(const SitesReport& report, const Scale& scale) {
  if (report.sites.empty() || !report.sites.front().leak) return {};
  const MemorySite& site = report.sites.front();
  return fmt::format("{}, {}", name_of(site), scale.rate(site.growth_bytes_per_s));
}

std::vector<SiteRow> site_rows(const SitesNow& now) {
  using State = SitesNow::State;
  if (now.state == State::not_yet)
    return {{"it runs under 'vramtrack run'; its first report comes within a few seconds", Role::faint}};
  if (now.state != State::known) return {};
  const SitesReport& report = now.report;
  std::vector<SiteRow> rows = {{conclusion(report), report.leak ? Role::bad : Role::plain}};
  if (report.sites.empty()) return rows;
  rows.push_back({fmt::format("{:>12}  {:>10}  {:>7}  {}", "GROWTH", "LIVE", "BLOCKS", "LINE"), Role::faint, true});
  const std::size_t shown = std::min(kMostRows, report.sites.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const MemorySite& site = report.sites[i];
    rows.push_back({fmt::format("{:>12}  {:>10}  {:>7}  {}{}", rate(site.growth_bytes_per_s),
                                format_size(site.live_bytes), site.live_count, site.leak ? "LEAK " : "", name_of(site)),
                    site.leak ? Role::bad : Role::plain, true});
  }
  const std::size_t more = report.sites.size() - shown + report.sites_left_out;
  if (more > 0)
    rows.push_back(
        {fmt::format("and {} more: {} on the run's trace shows all", more, command_hint("vramtrack trace report")),
         Role::faint});
  return rows;
}

}  // namespace vramtrack::top
