#include "core/incident.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/series_text.hpp"

// A new metric must be placed here.
#pragma GCC diagnostic error "-Wswitch"

namespace vramtrack {
namespace {

/// How much of a device a series covers: of several that show one leak, the lowest represents the others.
int speaking_rank(Metric metric) {
  switch (metric) {
    case Metric::device_used:
      return 0;
    case Metric::process_used:
      return 1;
    case Metric::allocator_allocated:
      return 2;
    case Metric::allocator_reserved:
      return 3;
    case Metric::device_reserved:
    case Metric::device_unattributed:
    case Metric::probe_live:
    case Metric::device_busy:  // facts are not memory: no alert is about one
    case Metric::device_received:
    case Metric::process_busy:
    case Metric::process_read:
    case Metric::process_clients:
    case Metric::process_age:
    case Metric::host_resident:
    case Metric::host_pinned:
    case Metric::host_available:
    case Metric::host_anonymous:  // it speaks for itself
      break;
  }
  return 4;
}

/// One change of an alert, which is identified by its place.
struct Step {
  Timestamp time;
  std::size_t alert;
  AlertNews news;
};

/// The incidents of alerts that name none: the names that an engine would have given them.
std::vector<std::string> names_of(const std::vector<AlertOf>& alerts) {
  std::vector<std::string> names;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    names.push_back(alerts[i].alert.incident);
    if (!names.back().empty()) continue;
    steps.push_back({alerts[i].alert.raised, i, AlertNews::raised});
    if (alerts[i].alert.cleared) steps.push_back({*alerts[i].alert.cleared, i, AlertNews::cleared});
  }
  // An alert that ends when another begins belongs to the same incident.
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return std::pair(a.time, a.news) < std::pair(b.time, b.news); });
  Incidents incidents;
  std::map<std::string, std::string> renamed;
  for (const Step& step : steps) {
    const AlertOf& one = alerts[step.alert];
    Alert alert = one.alert;
    if (step.news == AlertNews::raised) {
      incidents.raise(one.key, alert);
      names[step.alert] = alert.incident;
    }
    const IncidentChange change = incidents.report(one.key, alert, step.news);
    for (const std::string& also : change.also) renamed[also] = change.id;
  }
  for (std::string& name : names)
    for (auto it = renamed.find(name); it != renamed.end(); it = renamed.find(name)) name = it->second;
  return names;
}

/// Standing ones come first, then those that cover more, then older ones.
auto rank_of(const AlertOf& one) {
  return std::tuple(one.alert.ended != AlertEnd::standing, speaking_rank(one.key.metric), one.alert.raised);
}

}  // namespace

bool speaks_for(const SeriesKey& whole, const SeriesKey& part) {
  if (is_of_host(whole.metric) || is_of_host(part.metric)) return false;
  if (speaking_rank(whole.metric) >= speaking_rank(part.metric) || device_key(whole) != device_key(part)) return false;
  return whole.metric == Metric::device_used || (!is_of_device(part.metric) && process_key(whole) == process_key(part));
}

std::vector<Incident> incidents_of(const std::vector<AlertOf>& alerts) {
  const std::vector<std::string> names = names_of(alerts);
  std::vector<Incident> out;
  std::map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    const Alert& alert = alerts[i].alert;
    const auto [known, is_new] = place.try_emplace(names[i], out.size());
    if (is_new) out.push_back({names[i], alert.kind, alert.severity, alert.raised, alert.cleared, i, {}});
    Incident& incident = out[known->second];
    incident.severity = std::max(incident.severity, alert.severity);
    incident.begin = std::min(incident.begin, alert.raised);
    incident.end = incident.end && alert.cleared ? std::max(incident.end, alert.cleared) : std::nullopt;
    if (rank_of(alerts[i]) < rank_of(alerts[incident.speaks])) incident.speaks = i;
    incident.members.push_back(i);
  }
  std::sort(out.begin(), out.end(), [](const Incident& a, const Incident& b) { return a.speaks < b.speaks; });
  return out;
}

std::vector<Incident> incidents_of(const std::vector<const SeriesView*>& series) {
  std::vector<AlertOf> alerts;
  for (const SeriesView* s : series)
    for (const Alert& alert : s->alerts) alerts.push_back({s->key, alert});
  return incidents_of(alerts);
}

std::size_t standing(const std::vector<Incident>& incidents) {
  return static_cast<std::size_t>(
      std::count_if(incidents.begin(), incidents.end(), [](const Incident& i) { return !i.end; }));
}

/// A device represents all its parts; a part represents itself until its device does. The ranks of one job, and its
/// runs, leak as one.
bool Incidents::belongs(const Open& open, const Open& news, const SeriesKey& key) {
  if (open.kind != news.kind) return false;
  const bool is_leak = news.kind == AlertKind::leak;
  if (is_leak && std::any_of(news.works.begin(), news.works.end(), [&](const std::string& work) {
        return std::find(open.works.begin(), open.works.end(), work) != open.works.end();
      }))
    return true;
  return std::any_of(open.keys.begin(), open.keys.end(), [&](const SeriesKey& other) {
    return other == key || (is_leak && (speaks_for(other, key) || speaks_for(key, other)));
  });
}

/// Merges incidents that belong together: into one of an earlier watch, whose name people know, else into the oldest.
std::vector<SeriesKey> Incidents::join(const SeriesKey& key, Alert& alert, Open&& incident) {
  std::vector<Open> others;
  const auto belongs_here = [&](const Open& one) { return belongs(one, incident, key); };
  std::copy_if(open_.begin(), open_.end(), std::back_inserter(others), belongs_here);
  std::erase_if(open_, belongs_here);
  others.push_back(std::move(incident));
  const auto known = std::find_if(others.begin(), others.end(), [](const Open& one) { return one.adopted; });
  Open joined;
  joined.id = known == others.end() ? others.front().id : known->id;
  joined.kind = alert.kind;
  joined.adopted = known != others.end();
  std::vector<SeriesKey> renamed;
  for (const Open& one : others) {
    joined.reported = std::max(joined.reported, one.reported);
    // Nobody knows the name of an incident that has not been reported.
    if (one.id != joined.id && (one.reported || one.adopted)) joined.also.push_back(one.id);
    if (one.id != joined.id) renamed.insert(renamed.end(), one.standing.begin(), one.standing.end());
    joined.also.insert(joined.also.end(), one.also.begin(), one.also.end());
    joined.standing.insert(joined.standing.end(), one.standing.begin(), one.standing.end());
    for (const SeriesKey& of_it : one.keys)
      if (std::find(joined.keys.begin(), joined.keys.end(), of_it) == joined.keys.end()) joined.keys.push_back(of_it);
    for (const std::string& work : one.works)
      if (std::find(joined.works.begin(), joined.works.end(), work) == joined.works.end()) joined.works.push_back(work);
    if (one.until) joined.until = one.until;
  }
  if (!joined.standing.empty()) joined.until.reset();
  alert.incident = joined.id;
  open_.push_back(std::move(joined));
  std::erase(renamed, key);
  return renamed;
}

std::vector<SeriesKey> Incidents::raise(const SeriesKey& key, Alert& alert, const std::string& work) {
  std::erase_if(open_, [&](const Open& one) { return one.until && *one.until < alert.raised; });
  Open incident{alert_id(key, alert.raised), {}, alert.kind, {key}, {key}, {}};
  if (!work.empty()) incident.works = {work};
  return join(key, alert, std::move(incident));
}

IncidentChange Incidents::report(const SeriesKey& key, const Alert& alert, AlertNews news) {
  const auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
    return one.kind == alert.kind && std::find(one.standing.begin(), one.standing.end(), key) != one.standing.end();
  });
  if (open == open_.end()) return {alert.incident, {}, news};
  IncidentChange out{open->id, open->also, {}};
  if (news == AlertNews::cleared) {
    open->standing.erase(std::find(open->standing.begin(), open->standing.end(), key));
    if (!open->standing.empty()) return out;
    out.news = news;
    if (open->works.empty()) {
      open_.erase(open);
      return out;
    }
    // The next leak on its devices is another incident, unless it is the same work.
    open->keys.clear();
    open->also.clear();
    open->reported.reset();
    open->until = alert.cleared.value_or(alert.raised) + from_seconds(kSameWork_s);
    return out;
  }
  if (open->reported && alert.severity <= *open->reported) return out;
  out.news = open->reported ? AlertNews::escalated : AlertNews::raised;
  open->reported = alert.severity;
  return out;
}

std::vector<SeriesKey> Incidents::adopt(const SeriesKey& key, Alert& alert, bool stands, Timestamp until,
                                        const std::string& work) {
  const bool is_member = std::any_of(open_.begin(), open_.end(), [&](const Open& one) {
    return one.kind == alert.kind && std::find(one.standing.begin(), one.standing.end(), key) != one.standing.end();
  });
  Open incident;
  incident.id = alert.incident;
  incident.kind = alert.kind;
  incident.keys = {key};
  if (stands && !is_member) incident.standing = {key};
  if (stands) incident.reported = alert.severity;
  incident.adopted = true;
  if (!work.empty()) incident.works = {work};
  incident.until = until;
  return join(key, alert, std::move(incident));
}

}  // namespace vramtrack
