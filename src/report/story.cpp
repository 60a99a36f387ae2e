#include "report/story.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "core/incident.hpp"

namespace vramtrack {
namespace {

bool stood_together(const Alert& a, const Alert& b) {
  return (!b.cleared || a.raised <= *b.cleared) && (!a.cleared || b.raised <= *a.cleared);
}

bool same_leak(const Alert& whole, const Alert& part) {
  return whole.finding.leak && part.finding.leak && stood_together(whole, part) &&
         (whole.ended == AlertEnd::standing || part.ended != AlertEnd::standing);
}

}  // namespace

std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts) {
  std::unordered_map<DeviceKey, std::vector<std::size_t>, KeyHash> of_device;
  std::unordered_map<ProcessKey, std::vector<std::size_t>, KeyHash> of_process;
  for (std::size_t i = 0; i < alerts.size(); ++i)
    if (alerts[i].key.metric == Metric::device_used)
      of_device[device_key(alerts[i].key)].push_back(i);
    else if (!is_of_device(alerts[i].key.metric))
      of_process[process_key(alerts[i].key)].push_back(i);
  std::vector<std::size_t> out(alerts.size());
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    out[i] = i;
    const auto look_among = [&](const std::vector<std::size_t>& others) {
      for (const std::size_t k : others)
        if (speaks_for(alerts[k].key, alerts[i].key) && same_leak(alerts[k].alert, alerts[i].alert) &&
            speaking_rank(alerts[k].key.metric) <= speaking_rank(alerts[out[i]].key.metric))
          out[i] = k;
    };
    look_among(of_device[device_key(alerts[i].key)]);
    if (!is_of_device(alerts[i].key.metric)) look_among(of_process[process_key(alerts[i].key)]);
  }
  // Who speaks may be told with another alert itself. Each step is to a lower rank, so the steps end.
  for (std::size_t& with : out)
    while (out[with] != with) with = out[with];
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

StoryNews Stories::begin(const SeriesKey& key, const Alert& alert) {
  Story story{{key}, {alert.series}, alert.finding.leak, alert.kind, alert.severity};
  // A device speaks for all its parts; a part speaks for itself until its device does.
  const auto joins = [&](const Story& s) {
    return s.leak && story.leak &&
           std::any_of(s.keys.begin(), s.keys.end(), [&](const SeriesKey& other) { return show_one_leak(other, key); });
  };
  std::optional<Severity> told;
  for (const Story& s : standing_) {
    if (!joins(s)) continue;
    told = std::max(told, std::optional(s.severity));
    story.members.insert(story.members.end(), s.members.begin(), s.members.end());
    std::copy_if(s.keys.begin(), s.keys.end(), std::back_inserter(story.keys), [&](const SeriesKey& other) {
      return std::find(story.keys.begin(), story.keys.end(), other) == story.keys.end();
    });
  }
  std::erase_if(standing_, joins);
  story.severity = std::max(story.severity, told.value_or(story.severity));
  standing_.push_back(std::move(story));
  const std::vector<SeriesKey>& keys = standing_.back().keys;
  if (!told) return {AlertNews::raised, keys};
  return {alert.severity > *told ? std::optional(AlertNews::escalated) : std::nullopt, keys};
}

StoryNews Stories::news(const SeriesKey& key, const Alert& alert, AlertNews news) {
  const auto story = std::find_if(standing_.begin(), standing_.end(), [&](const Story& s) {
    return s.kind == alert.kind && std::find(s.members.begin(), s.members.end(), alert.series) != s.members.end();
  });
  if (story == standing_.end()) return news == AlertNews::raised ? begin(key, alert) : StoryNews{news, {key}};
  StoryNews out{std::nullopt, story->keys};
  if (news == AlertNews::cleared) {
    std::erase(story->members, alert.series);
    if (!story->members.empty()) return out;
    standing_.erase(story);
    out.news = news;
  } else if (alert.severity > story->severity) {
    story->severity = alert.severity;
    out.news = AlertNews::escalated;
  }
  return out;
}

}  // namespace vramtrack
