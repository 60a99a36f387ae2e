#include "act/outbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text_hash.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostHeadlines = 10;

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

/// Whether the note is about the incident, under its name or under a former name, before an alert merged two incidents.
bool Outbox::is_about(const Note& note, const Incident& incident) {
  return incident.id == note.incident || std::find(note.also.begin(), note.also.end(), incident.id) != note.also.end();
}

/// If two incidents turn out to be one, the first that was reported represents both.
std::deque<Outbox::Incident>::iterator Outbox::incident_of(const Note& note) {
  const auto notified = std::find_if(incidents_.begin(), incidents_.end(),
                                     [&](const Incident& i) { return i.notified && is_about(note, i); });
  return notified != incidents_.end()
             ? notified
             : std::find_if(incidents_.begin(), incidents_.end(), [&](const Incident& i) { return is_about(note, i); });
}

/// A policy's message does not open an incident. A known id means the same message again, after a crash.
void Outbox::announce(const Note& note, Timestamp now) {
  if (std::find(announced_.begin(), announced_.end(), note.act_id) != announced_.end()) return;
  announced_.push_back(note.act_id);
  if (announced_.size() > kMaxAnnounced) announced_.pop_front();
  ++revision_;
  if (!note.is_always_sent && !may_send(note)) return;
  Message m;
  m.id = note.act_id;
  m.incident = note.incident.empty() ? note.act_id : note.incident;
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
  if (note.news == AlertNews::cleared) {
    if (note.incident_is_over) close(note, now);
    return;
  }
  const auto incident = incident_of(note);
  if (incident == incidents_.end()) return open(note, now);
  if (incident->unconfirmed) ++revision_;
  incident->unconfirmed.reset();
  // An escalation under a silence must be reported when the silence ends, so the severity last reported is kept.
  if (note.silenced) return;
  if (incident->silenced) {
    incident->silenced = false;
    incident->severity = std::max(incident->severity, note.severity);
    ++revision_;
    if (incident->severity >= rules_.min_severity && !incident->notified) queue(*incident, "raised", note, now, true);
    return;
  }
  if (note.severity <= incident->severity) return;
  incident->severity = note.severity;
  ++revision_;
  if (note.severity >= rules_.min_severity)
    queue(*incident, incident->notified ? "escalated" : "raised", note, now, true);
}

void Outbox::open(const Note& note, Timestamp now) {
  Incident incident;
  incident.id = note.incident;
  incident.device = note.key.device_id;
  incident.pid = note.key.pid != 0 ? note.key.pid : note.suspect_pid;
  incident.severity = note.severity;
  incident.opened = note.time;
  incident.headline = headline(note.text);
  incident.silenced = note.silenced;
  incidents_.push_back(std::move(incident));
  ++revision_;
  if (note.severity >= rules_.min_severity && !note.silenced) queue(incidents_.back(), "raised", note, now, true);
  if (incidents_.size() > kMaxIncidents) incidents_.pop_front();
}

void Outbox::close(const Note& note, Timestamp now) {
  for (auto it = incidents_.begin(); it != incidents_.end();) {
    if (!is_about(note, *it)) {
      ++it;
      continue;
    }
    if (it->notified && rules_.resolved && !note.silenced) queue(*it, "resolved", note, now, false);
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

/// False: the message is one of those that are reported together later.
bool Outbox::may_send(const Note& note) {
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return true;
  }
  ++held_back_;
  if (held_headlines_.size() < kMostHeadlines) held_headlines_.emplace_back(headline(note.text));
  return false;
}

void Outbox::queue(Incident& incident, std::string_view event, const Note& note, Timestamp now, bool costs) {
  if (costs && !may_send(note)) return;
  incident.notified = true;
  Message m;
  // An incident that is replayed has the same id, but its messages need ids of their own.
  m.id = fmt::format("{}-{}", text_hash(fmt::format("{}/{}/{}", rules_.host, incident.id, iso8601(now))), next_++);
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

void Outbox::queue_held_back(Timestamp now) {
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
    if (it->notified && rules_.resolved) {
      Note note;
      note.time = now;
      note.text = fmt::format("PROBABLY OVER, not raised again since vramtrack was restarted: {}", it->headline);
      queue(*it, "resolved", note, now, false);
    }
    it = incidents_.erase(it);
    ++revision_;
  }
  if (held_back_ > 0 && tokens_ >= 1) queue_held_back(now);
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

/// The next message of a channel is due at once, unless the receiver keeps failing.
void Outbox::finished(Channel& c, std::string_view id) {
  const Message* first = first_of(c.name);
  if (first != nullptr && first->id == id) {
    c.attempts = 0;
    c.not_before = Timestamp{};
  }
}

void Outbox::take_outcome(std::string_view name, const std::string& id, const Outcome& outcome, Timestamp now) {
  Channel* c = channel(name);
  const auto it = std::find_if(messages_.begin(), messages_.end(), [&](const Message& m) { return m.id == id; });
  if (c == nullptr || it == messages_.end()) return;
  ++revision_;
  if (outcome.kind == Outcome::Kind::retry) {
    const double wait_s = std::min(kMaxRetry_s, rules_.retry_s * std::exp2(std::min(c->attempts, 30)));
    ++c->attempts;
    c->not_before = now + from_seconds(std::max(wait_s, std::min(outcome.retry_after_s.value_or(0), 4 * kMaxRetry_s)));
    if (c->failing.empty())
      warnings_.push_back(
          fmt::format("notification to {} failed: {}; it will be {}", name, outcome.why,
                      rules_.kept ? "kept and sent again" : "sent again for as long as vramtrack is running"));
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
