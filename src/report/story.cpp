#include "report/story.hpp"

#include <algorithm>
#include <unordered_map>

namespace vramtrack {
namespace {

bool stood_together(const Alert& a, const Alert& b) {
  return (!b.cleared || a.raised <= *b.cleared) && (!a.cleared || b.raised <= *a.cleared);
}

bool same_leak(const Alert& device, const Alert& process) {
  return device.finding.leak && process.finding.leak && stood_together(device, process) &&
         (device.ended == AlertEnd::standing || process.ended != AlertEnd::standing);
}

}  // namespace

std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts) {
  std::unordered_map<DeviceKey, std::vector<std::size_t>, KeyHash> of_device;
  for (std::size_t i = 0; i < alerts.size(); ++i)
    if (alerts[i].key.metric == Metric::device_used) of_device[device_key(alerts[i].key)].push_back(i);
  std::vector<std::size_t> out(alerts.size());
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    out[i] = i;
    const auto device = of_device.find(device_key(alerts[i].key));
    if (alerts[i].key.metric == Metric::device_used || device == of_device.end()) continue;
    for (const std::size_t k : device->second)
      if (same_leak(alerts[k].alert, alerts[i].alert)) out[i] = k;
  }
  return out;
}

std::size_t standing_count(const std::vector<const SeriesView*>& series) {
  std::vector<AlertOf> standing;
  for (const SeriesView* s : series)
    for (const Alert& alert : s->alerts)
      if (alert.ended == AlertEnd::standing) standing.push_back({s->key, alert});
  const std::vector<std::size_t> with = told_with(standing);
  std::size_t count = 0;
  for (std::size_t i = 0; i < with.size(); ++i)
    if (with[i] == i) ++count;
  return count;
}

std::optional<AlertNews> Stories::begin(const SeriesKey& key, const Alert& alert) {
  const bool is_device = key.metric == Metric::device_used;
  Story story{device_key(key), {alert.series}, is_device, alert.finding.leak, alert.kind, alert.severity};
  // A device speaks for all its parts; a part speaks for itself until its device does.
  const auto joins = [&](const Story& s) {
    return s.leak && story.leak && s.device == story.device && (is_device || s.has_device);
  };
  std::optional<Severity> told;
  for (const Story& s : standing_) {
    if (!joins(s)) continue;
    told = std::max(told, std::optional(s.severity));
    story.members.insert(story.members.end(), s.members.begin(), s.members.end());
    story.has_device = story.has_device || s.has_device;
  }
  std::erase_if(standing_, joins);
  story.severity = std::max(story.severity, told.value_or(story.severity));
  standing_.push_back(std::move(story));
  if (!told) return AlertNews::raised;
  return alert.severity > *told ? std::optional(AlertNews::escalated) : std::nullopt;
}

std::optional<AlertNews> Stories::news(const SeriesKey& key, const Alert& alert, AlertNews news) {
  const auto story = std::find_if(standing_.begin(), standing_.end(), [&](const Story& s) {
    return s.kind == alert.kind && std::find(s.members.begin(), s.members.end(), alert.series) != s.members.end();
  });
  if (story == standing_.end()) return news == AlertNews::raised ? begin(key, alert) : news;
  if (news == AlertNews::cleared) {
    std::erase(story->members, alert.series);
    if (!story->members.empty()) return std::nullopt;
    standing_.erase(story);
    return news;
  }
  if (alert.severity <= story->severity) return std::nullopt;
  story->severity = alert.severity;
  return AlertNews::escalated;
}

}  // namespace vramtrack
