#include "act/outbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/incident.hpp"
#include "core/text_hash.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostHeadlines = 10;

/// Prefix of member names, so that a leak and another problem of one series are two incidents.
std::string prefix(AlertKind kind) {
  return kind == AlertKind::leak ? "" : fmt::format("{} ", to_string(kind));
}

std::string member_name(AlertKind kind, const SeriesKey& key) {
  return fmt::format("{}{}{}/{}/{}/{}", prefix(kind), to_string(key.metric), key.host.empty() ? "" : '@' + key.host,
                     key.device_id, key.pid, key.pid_start_ticks);
}

std::vector<std::string> member_names(const Note& note) {
  std::vector<std::string> out;
  for (const SeriesKey& key : note.incident) out.push_back(member_name(note.kind, key));
  if (out.empty()) out.push_back(member_name(note.kind, note.key));
  return out;
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// The series of a leak's member_name(); nullopt for other problems, and for what a file holds instead of a name.
std::optional<SeriesKey> series_of(std::string_view member) {
  const std::size_t first = member.find('/');
  const std::size_t last = member.rfind('/');
  const std::size_t pid = last == std::string_view::npos || last == 0 ? last : member.rfind('/', last - 1);
  if (first == std::string_view::npos || pid == std::string_view::npos || first >= pid) return std::nullopt;
  const std::string_view head = member.substr(0, first);
  const auto metric = parse_metric(head.substr(0, head.find('@')));
  SeriesKey key;
  if (!metric || !read_number(member.substr(pid + 1, last - pid - 1), key.pid) ||
      !read_number(member.substr(last + 1), key.pid_start_ticks))
    return std::nullopt;
  key.metric = *metric;
  key.device_id = member.substr(first + 1, pid - first - 1);
  if (const std::size_t at = head.find('@'); at != std::string_view::npos) key.host = head.substr(at + 1);
  return key;
}

bool share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

/// For an incident of an earlier run, whose alerts nobody has grouped with those of this run.
bool show_one_leak_again(const std::vector<std::string>& earlier, const std::vector<std::string>& now) {
  const auto same = [](const std::string& a, const std::string& b) {
    const auto was = series_of(a);
    const auto is = series_of(b);
    return was && is && show_one_leak(*was, *is);
  };
  return std::any_of(earlier.begin(), earlier.end(), [&](const std::string& a) {
    return std::any_of(now.begin(), now.end(), [&](const std::string& b) { return same(a, b); });
  });
}

}  // namespace

std::string_view headline(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

Outbox::Outbox(OutboxRules rules, std::vector<std::string> channels)
    : rules_(std::move(rules)), tokens_(rules_.max_per_hour) {
  for (std::string& name : channels) channels_.push_back({std::move(name), 0, Timestamp{}, {}});
}

Outbox::Channel* Outbox::channel(std::string_view name) {
  for (Channel& c : channels_)
    if (c.name == name) return &c;
  return nullptr;
}

const Outbox::Channel* Outbox::channel(std::string_view name) const {
  for (const Channel& c : channels_)
    if (c.name == name) return &c;
  return nullptr;
}

const Message* Outbox::first_of(std::string_view name) const {
  for (const Message& m : messages_)
    if (std::find(m.channels.begin(), m.channels.end(), name) != m.channels.end()) return &m;
  return nullptr;
}

std::vector<std::string> Outbox::take_warnings() {
  if (overflowed_ > 0)
    warnings_.push_back(fmt::format("{} notification{} dropped: more than {} are waiting; check the receiver",
                                    overflowed_, overflowed_ == 1 ? "" : "s", kMaxMessages));
  overflowed_ = 0;
  return std::exchange(warnings_, {});
}

/// The incident that shares a series with the note's: which series belong together has been decided before. If two were
/// reported before something showed that they are one, the first speaks for both.
std::deque<Outbox::Incident>::iterator Outbox::incident_of(const Note& note, const std::vector<std::string>& members) {
  const auto first = [&](auto belongs) {
    const auto told =
        std::find_if(incidents_.begin(), incidents_.end(), [&](const Incident& i) { return i.told && belongs(i); });
    return told != incidents_.end() ? told : std::find_if(incidents_.begin(), incidents_.end(), belongs);
  };
  const auto known = first([&](const Incident& i) { return share(i.members, members); });
  if (known != incidents_.end() || note.kind != AlertKind::leak) return known;
  return first([&](const Incident& i) { return i.unconfirmed && show_one_leak_again(i.members, members); });
}

/// A policy's message does not open an incident. One with an id that is known is the same message: there was a crash.
void Outbox::announce(const Note& note, Timestamp now) {
  if (std::find(announced_.begin(), announced_.end(), note.act_id) != announced_.end()) return;
  announced_.push_back(note.act_id);
  if (announced_.size() > kMaxAnnounced) announced_.pop_front();
  ++revision_;
  if (!note.is_always_sent) {
    if (tokens_ < 1) {
      ++held_back_;
      if (held_headlines_.size() < kMostHeadlines) held_headlines_.emplace_back(headline(note.text));
      return;
    }
    tokens_ -= 1;
  }
  Message m;
  m.id = m.incident = note.act_id;
  m.event = "act";
  m.severity = note.severity;
  m.queued = now;
  m.time = note.time;
  m.device = note.key.device_id;
  m.pid = note.key.pid;
  m.text = note.text;
  put(std::move(m));
}

void Outbox::take(const Note& note, Timestamp now) {
  refill(now);
  if (!note.act_id.empty()) return announce(note, now);
  std::vector<std::string> members = member_names(note);
  if (note.news == AlertNews::cleared) {
    if (note.incident_is_over) close(note, members, now);
    return;
  }
  const auto incident = incident_of(note, members);
  if (incident == incidents_.end()) return open(note, std::move(members), now);
  std::erase_if(members, [&](const std::string& member) {
    return std::find(incident->members.begin(), incident->members.end(), member) != incident->members.end();
  });
  if (!members.empty() || incident->unconfirmed) ++revision_;
  incident->members.insert(incident->members.end(), members.begin(), members.end());
  incident->unconfirmed.reset();
  // An escalation under a silence is news when the silence has ended: the severity stays the one last reported.
  if (note.silenced) return;
  if (incident->silenced) {
    incident->silenced = false;
    incident->severity = std::max(incident->severity, note.severity);
    ++revision_;
    if (incident->severity >= rules_.min_severity && !incident->told) tell(*incident, "raised", note, now, true);
    return;
  }
  if (note.severity <= incident->severity) return;
  incident->severity = note.severity;
  ++revision_;
  if (note.severity >= rules_.min_severity) tell(*incident, incident->told ? "escalated" : "raised", note, now, true);
}

void Outbox::open(const Note& note, std::vector<std::string> members, Timestamp now) {
  Incident incident;
  incident.id =
      text_hash(fmt::format("{}/{}/{}/{}", rules_.host, member_name(note.kind, note.key), iso8601(now), next_));
  incident.members = std::move(members);
  incident.device = note.key.device_id;
  incident.pid = note.key.pid != 0 ? note.key.pid : note.suspect_pid;
  incident.severity = note.severity;
  incident.opened = note.time;
  incident.headline = headline(note.text);
  incident.silenced = note.silenced;
  incidents_.push_back(std::move(incident));
  ++revision_;
  if (note.severity >= rules_.min_severity && !note.silenced) tell(incidents_.back(), "raised", note, now, true);
  if (incidents_.size() > kMaxIncidents) incidents_.pop_front();
}

void Outbox::close(const Note& note, const std::vector<std::string>& members, Timestamp now) {
  for (auto it = incidents_.begin(); it != incidents_.end();) {
    if (!share(it->members, members)) {
      ++it;
      continue;
    }
    if (it->told && rules_.resolved && !note.silenced) tell(*it, "resolved", note, now, false);
    it = incidents_.erase(it);
    ++revision_;
  }
}

void Outbox::refill(Timestamp now) {
  const double passed_s = std::max(0.0, seconds_between(refilled_, now));
  if (refilled_ != Timestamp{})
    tokens_ = std::min(rules_.max_per_hour, tokens_ + passed_s * rules_.max_per_hour / 3600);
  refilled_ = now;
}

void Outbox::tell(Incident& incident, std::string_view event, const Note& note, Timestamp now, bool costs) {
  if (costs && tokens_ < 1) {
    ++held_back_;
    if (held_headlines_.size() < kMostHeadlines) held_headlines_.emplace_back(headline(note.text));
    return;
  }
  if (costs) tokens_ -= 1;
  incident.told = true;
  Message m;
  m.id = fmt::format("{}-{}", incident.id, next_++);
  m.incident = incident.id;
  m.event = event;
  m.severity = incident.severity;
  m.queued = now;
  m.time = note.time;
  m.device = incident.device;
  m.pid = incident.pid;
  m.ran_out = note.ran_out;
  m.text = note.text;
  m.alert_json = note.json;
  put(std::move(m));
}

void Outbox::put(Message message) {
  for (const Channel& c : channels_) message.channels.push_back(c.name);
  messages_.push_back(std::move(message));
  ++revision_;
  while (messages_.size() > kMaxMessages) {
    for (const std::string& name : messages_.front().channels)
      if (Channel* c = channel(name); c != nullptr) finished(*c, messages_.front().id);
    messages_.pop_front();
    ++overflowed_;
    ++dropped_;
  }
}

void Outbox::tell_held_back(Timestamp now) {
  tokens_ -= 1;
  Message m;
  m.incident = text_hash(fmt::format("{}/held back/{}/{}", rules_.host, iso8601(now), next_));
  m.id = fmt::format("{}-{}", m.incident, next_++);
  m.event = "held_back";
  m.queued = m.time = now;
  m.text = fmt::format("{} more alert{} held back: at most {:.0f} messages an hour are sent (notify.max-per-hour)",
                       held_back_, held_back_ == 1 ? " was" : "s were", rules_.max_per_hour);
  for (const std::string& line : held_headlines_) m.text += "\n    " + line;
  if (held_back_ > held_headlines_.size())
    m.text += fmt::format("\n    and {} more", held_back_ - held_headlines_.size());
  held_back_ = 0;
  held_headlines_.clear();
  put(std::move(m));
}

void Outbox::tick(Timestamp now) {
  refill(now);
  for (auto it = messages_.begin(); it != messages_.end();) {
    if (seconds_between(it->queued, now) < rules_.keep_s) {
      ++it;
      continue;
    }
    for (const std::string& name : it->channels) {
      ++dropped_;
      warnings_.push_back(fmt::format("notification dropped after {:.3g} h because {} did not accept it: {}",
                                      rules_.keep_s / 3600, name, headline(it->text)));
      if (Channel* c = channel(name); c != nullptr) finished(*c, it->id);
    }
    it = messages_.erase(it);
    ++revision_;
  }
  for (auto it = incidents_.begin(); it != incidents_.end();) {
    if (!it->unconfirmed || seconds_between(*it->unconfirmed, now) < kForget_s) {
      ++it;
      continue;
    }
    if (it->told && rules_.resolved) {
      Note note;
      note.time = now;
      note.text = fmt::format("PROBABLY OVER, not raised again since vramtrack was restarted: {}", it->headline);
      tell(*it, "resolved", note, now, false);
    }
    it = incidents_.erase(it);
    ++revision_;
  }
  if (held_back_ > 0 && tokens_ >= 1) tell_held_back(now);
}

const Message* Outbox::due(std::string_view name, Timestamp now) const {
  const Channel* c = channel(name);
  // A clock that was set back must not delay a message for years.
  if (c == nullptr || (c->not_before > now && seconds_between(now, c->not_before) <= 4 * kMaxRetry_s)) return nullptr;
  return first_of(name);
}

std::optional<Timestamp> Outbox::wake() const {
  std::optional<Timestamp> at;
  const auto consider = [&at](Timestamp time) { at = at ? std::min(*at, time) : time; };
  for (const Channel& c : channels_)
    if (first_of(c.name) != nullptr) consider(c.not_before);
  for (const Message& m : messages_) consider(m.queued + from_seconds(rules_.keep_s));
  for (const Incident& i : incidents_)
    if (i.unconfirmed) consider(*i.unconfirmed + from_seconds(kForget_s));
  if (held_back_ > 0)
    consider(refilled_ + from_seconds(std::max(0.0, 1 - tokens_) * 3600 / rules_.max_per_hour + 0.001));
  return at;
}

int Outbox::attempts(std::string_view name) const {
  const Channel* c = channel(name);
  return c == nullptr ? 0 : c->attempts;
}

/// The next message of a channel starts without waiting; only while the receiver fails does the waiting continue.
void Outbox::finished(Channel& c, std::string_view id) {
  const Message* first = first_of(c.name);
  if (first != nullptr && first->id == id) {
    c.attempts = 0;
    c.not_before = Timestamp{};
  }
}

void Outbox::settle(std::string_view name, const std::string& id, const Outcome& outcome, Timestamp now) {
  Channel* c = channel(name);
  const auto it = std::find_if(messages_.begin(), messages_.end(), [&](const Message& m) { return m.id == id; });
  if (c == nullptr || it == messages_.end()) return;
  ++revision_;
  if (outcome.kind == Outcome::Kind::retry) {
    const double wait_s = std::min(kMaxRetry_s, rules_.retry_s * std::exp2(std::min(c->attempts, 30)));
    ++c->attempts;
    c->not_before = now + from_seconds(std::max(wait_s, std::min(outcome.retry_after_s.value_or(0), 4 * kMaxRetry_s)));
    if (c->failing.empty())
      warnings_.push_back(fmt::format("notification to {} failed: {}; it will be {}", name, outcome.why,
                                      rules_.kept ? "kept and sent again" : "sent again as long as vramtrack runs"));
    c->failing = outcome.why.empty() ? "it failed" : outcome.why;
    return;
  }
  if (outcome.kind == Outcome::Kind::refused) {
    ++dropped_;
    warnings_.push_back(
        fmt::format("notification dropped because {} refused it: {}: {}", name, outcome.why, headline(it->text)));
  } else if (!c->failing.empty())
    warnings_.push_back(fmt::format("notifications to {} are delivered again", name));
  c->failing.clear();
  finished(*c, id);
  std::erase(it->channels, std::string(name));
  if (it->channels.empty()) messages_.erase(it);
}

}  // namespace vramtrack::act
