#include "report/sites.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/finite.hpp"
#include "core/json.hpp"
#include "core/order.hpp"

namespace vramtrack {
namespace {

using json = Json;

constexpr std::string_view kSchema = "vramtrack.trace_report.v1";
constexpr std::size_t kMostNotes = 16;
/// Memory that a line allocated this long ago and still holds is its growth.
constexpr double kGrowthOver_s = 900;
/// Unless it has allocated nothing for this long.
constexpr double kStopped_s = 120;

/// A member of `object`; null if there is none with that name. A run's answer may come from another version and from
/// another user, so nothing is taken for granted.
const json& member(const json& object, const char* name) {
  static const json none;
  const json* const at = object.find(name);
  return at == nullptr ? none : *at;
}

std::string text_of(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_string()) return {};
  const std::string& text = value.text();
  if (text.size() <= kMostNameBytes) return text;
  std::size_t end = kMostNameBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  return text.substr(0, end) + "…";
}

double number_of(const json& object, const char* name) {
  const json& value = member(object, name);
  return value.is_number() ? finite(value.get<double>()) : 0;
}

std::int64_t whole_of(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_number_integer()) return 0;
  return value.is_number_unsigned() ? static_cast<std::int64_t>(value.get<std::uint64_t>()) : value.get<std::int64_t>();
}

bool flag_of(const json& object, const char* name) {
  const json& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

MemorySite site_of(const json& value) {
  MemorySite site;
  site.leak = flag_of(value, "leak");
  site.site = text_of(value, "site");
  site.call = text_of(value, "call");
  site.live_bytes = whole_of(value, "live_bytes");
  site.live_count = whole_of(value, "live_count");
  site.growth_bytes_per_s = number_of(value, "growth_bytes_per_s");
  site.oldest_s = number_of(value, "oldest_s");
  site.share = number_of(value, "share");
  if (const json& frames = member(value, "frames"); frames.is_array())
    for (const json& frame : frames) {
      if (site.frames.size() == kMostSiteFrames) break;
      const std::int64_t line = whole_of(frame, "line");
      site.frames.push_back({text_of(frame, "function"), text_of(frame, "file"),
                             static_cast<std::uint32_t>(std::clamp<std::int64_t>(line, 0, UINT32_MAX)),
                             flag_of(frame, "python")});
    }
  return site;
}

std::size_t bytes_of(const MemorySite& site) {
  std::size_t bytes = 128 + site.site.size() + site.call.size();
  for (const SiteFrame& frame : site.frames) bytes += 64 + frame.function.size() + frame.file.size();
  return bytes;
}

/// Those that deserve a line, in their order.
std::vector<const json*> chosen(const json& sites) {
  std::vector<const json*> leaking;
  std::vector<const json*> others;
  for (const json& site : sites) (flag_of(site, "leak") ? leaking : others).push_back(&site);
  if (leaking.size() > kMostLeakingSites) leaking.resize(kMostLeakingSites);
  std::stable_sort(others.begin(), others.end(), [](const json* a, const json* b) {
    return whole_of(*a, "live_bytes") > whole_of(*b, "live_bytes");
  });
  if (others.size() > kMostOtherSites) others.resize(kMostOtherSites);
  leaking.insert(leaking.end(), others.begin(), others.end());
  return leaking;
}

}  // namespace

SitesReport sites_of(const SeriesView& series) {
  SitesReport report;
  const Finding& finding = series.verdict.finding;
  if (series.process) report.program = series.process->command.empty() ? series.process->name : series.process->command;
  if (series.first && series.last) report.duration_s = seconds_between(*series.first, *series.last);
  report.suspected = finding.stage == Stage::suspected;
  report.can_tell = finding.state != State::too_short;
  report.because = finding.because;
  report.notes = {"traced while running: what it allocated before is not in these figures"};
  double grown = 0;
  for (const SiteLifetimes& lifetimes : series.sites) {
    MemorySite site;
    site.site = lifetimes.site;
    site.live_bytes = std::llround(lifetimes.live_bytes);
    site.live_count = std::llround(lifetimes.live_blocks);
    double lately_s = 0, lately_bytes = 0;
    for (const AgedBytes& age : lifetimes.ages) {
      if (site.oldest_s == 0 && age.live_bytes > 0) site.oldest_s = age.oldest_s;
      if (age.oldest_s > kGrowthOver_s) continue;
      lately_s = std::max(lately_s, age.oldest_s);
      lately_bytes += age.live_bytes;
    }
    if (lately_s > 0 && lifetimes.idle_s < kStopped_s) site.growth_bytes_per_s = lately_bytes / lately_s;
    grown += site.growth_bytes_per_s;
    report.sites.push_back(std::move(site));
  }
  for (MemorySite& site : report.sites) site.share = grown > 0 ? site.growth_bytes_per_s / grown : 0;
  order(report.sites,
        [](const MemorySite& a, const MemorySite& b) { return a.growth_bytes_per_s > b.growth_bytes_per_s; });
  if (finding.leak && !report.sites.empty() && report.sites.front().growth_bytes_per_s > 0) {
    report.leak = report.sites.front().leak = true;
    report.growth_bytes_per_s = report.sites.front().growth_bytes_per_s;
  }
  return report;
}

Result<SitesReport> parse_sites_json(std::string_view text) {
  const json value = json::parse(text).value_or(nullptr);
  if (!value.is_object() || text_of(value, "schema") != kSchema || !member(value, "sites").is_array())
    return fail(fmt::format("this is not a report of sites ({})", kSchema));
  SitesReport report;
  report.program = text_of(value, "program");
  report.duration_s = number_of(value, "duration_s");
  const json& verdict = member(value, "verdict");
  report.leak = flag_of(verdict, "leak");
  report.suspected = flag_of(verdict, "suspected");
  report.can_tell = flag_of(verdict, "can_tell");
  report.because = text_of(verdict, "because");
  report.next_step = text_of(verdict, "next_step");
  report.growth_bytes_per_s = number_of(verdict, "growth_bytes_per_s");
  report.residual_grows = flag_of(verdict, "residual_grows");
  if (const json& notes = member(verdict, "notes"); notes.is_array())
    for (const json& note : notes)
      if (note.is_string() && report.notes.size() < kMostNotes)
        report.notes.push_back(text_of({{"note", note}}, "note"));
  if (member(value, "residual_bytes").is_number_integer()) report.residual_bytes = whole_of(value, "residual_bytes");
  const json& sites = member(value, "sites");
  std::size_t bytes = 0;
  for (const json* one : chosen(sites)) {
    MemorySite site = site_of(*one);
    bytes += bytes_of(site);
    if (bytes > kMostSitesBytes) break;
    report.sites.push_back(std::move(site));
  }
  const auto before =
      static_cast<std::size_t>(std::clamp<std::int64_t>(whole_of(value, "sites_left_out"), 0, INT32_MAX));
  report.sites_left_out = before + sites.size() - report.sites.size();
  return report;
}

std::string sites_json(const SitesReport& report) {
  json sites = json::array();
  for (const MemorySite& site : report.sites) {
    json frames = json::array();
    for (const SiteFrame& frame : site.frames)
      frames.push_back(
          {{"function", frame.function}, {"file", frame.file}, {"line", frame.line}, {"python", frame.python}});
    sites.push_back({{"leak", site.leak},
                     {"site", site.site},
                     {"call", site.call},
                     {"live_bytes", site.live_bytes},
                     {"live_count", site.live_count},
                     {"growth_bytes_per_s", site.growth_bytes_per_s},
                     {"oldest_s", site.oldest_s},
                     {"share", site.share},
                     {"frames", std::move(frames)}});
  }
  const json verdict = {{"leak", report.leak},
                        {"suspected", report.suspected},
                        {"can_tell", report.can_tell},
                        {"because", report.because},
                        {"next_step", report.next_step},
                        {"growth_bytes_per_s", report.growth_bytes_per_s},
                        {"residual_grows", report.residual_grows},
                        {"notes", report.notes}};
  return json_text(json{{"schema", kSchema},
                        {"program", report.program},
                        {"duration_s", report.duration_s},
                        {"verdict", verdict},
                        {"residual_bytes", report.residual_bytes ? json(*report.residual_bytes) : json(nullptr)},
                        {"sites", std::move(sites)},
                        {"sites_left_out", report.sites_left_out}});
}

}  // namespace vramtrack
