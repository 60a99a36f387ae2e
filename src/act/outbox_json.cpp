// The outbox and its messages as JSON: the saved form and the bodies that are sent.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "act/outbox.hpp"
#include "core/json.hpp"
#include "core/markup.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {

using json = Json;

namespace {

constexpr std::string_view kSchema = "vramtrack.outbox.v1";
/// Slack cuts texts at 40000 characters, far more than anybody reads.
constexpr std::size_t kMostSlackBytes = 3000;

std::int64_t ns(Timestamp time) {
  return time.time_since_epoch().count();
}

constexpr std::array kSeverities = {Severity::ok, Severity::watch, Severity::warning, Severity::critical};

/// Reads fields of an untrusted object; names the first one that is missing or wrong.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) error_ = where_ + " is not an object";
  }
  template <class T>
  void get(const char* name, T& into) {
    const json* value = find(name);
    if (value == nullptr) return;
    if constexpr (std::is_same_v<T, std::string>) {
      if (!value->is_string()) return wrong(name, "a string");
      into = value->text();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value->is_boolean()) return wrong(name, "true or false");
      into = value->get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (!value->is_number()) return wrong(name, "a number");
      into = value->get<double>();
    } else {
      if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX))
        return wrong(name, "an integer");
      const auto number = value->get<std::int64_t>();
      if (!std::in_range<T>(number)) return wrong(name, "an integer within its range");
      into = static_cast<T>(number);
    }
  }
  void get(const char* name, Timestamp& into) {
    std::int64_t count = 0;
    get(name, count);
    // Waits are added to it: a time after the year 2200 would overflow, and this program never writes one.
    constexpr std::int64_t kLatest = 8'000'000'000'000'000'000;
    if (count < 0 || count > kLatest) return wrong(name, "a time");
    into = Timestamp{Duration{count}};
  }
  void get(const char* name, Severity& into) {
    std::string word;
    get(name, word);
    for (const Severity s : kSeverities)
      if (word == to_string(s)) return static_cast<void>(into = s);
    wrong(name, "a severity");
  }
  void get(const char* name, std::vector<std::string>& into) {
    const json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return wrong(name, "a list");
    for (const json& item : *value) {
      if (!item.is_string()) return wrong(name, "a list of strings");
      into.push_back(item.get<std::string>());
    }
  }
  [[nodiscard]] bool has(const char* name) const { return object_.find(name) != nullptr; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  const json* find(const char* name) {
    if (!error_.empty()) return nullptr;
    if (const json* const value = object_.find(name); value != nullptr) return value;
    error_ = fmt::format("{} has no \"{}\"", where_, name);
    return nullptr;
  }
  void wrong(const char* name, std::string_view expected) {
    if (error_.empty()) error_ = fmt::format("{}: \"{}\" is not {}", where_, name, expected);
  }

  const json& object_;
  std::string where_;
  std::string error_;
};

/// Builds an object's text field by field; JSON from elsewhere is inserted unchanged.
class Object {
 public:
  /// Adds a string, a number, a Boolean or null.
  template <class T>
  Object& put(std::string_view name, const T& value) {
    return raw(name, scalar(json(value)));
  }
  Object& put(std::string_view name, const std::vector<std::string>& texts) {
    std::string list;
    for (const std::string& text : texts) list += (list.empty() ? "" : ",") + scalar(json(text));
    return raw(name, '[' + list + ']');
  }
  /// Inserts JSON unchanged.
  Object& raw(std::string_view name, std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_ += scalar(json(name)) + ':';
    text_ += value;
    return *this;
  }
  [[nodiscard]] std::string text() const { return '{' + text_ + '}'; }

 private:
  static std::string scalar(const json& value) { return json_text(value); }
  std::string text_;
};

/// The list of the results of `text_of` for each item.
template <class Items, class TextOf>
std::string list_of(const Items& items, TextOf text_of) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ",") + text_of(item);
  return '[' + out + ']';
}

std::string message_json(const Message& m) {
  Object out;
  out.put("id", m.id).put("incident", m.incident).put("event", m.event).put("severity", to_string(m.severity));
  out.put("queued_ns", ns(m.queued)).put("time_ns", ns(m.time)).put("device", m.device).put("pid", m.pid);
  if (m.ran_out) out.put("ran_out", true);
  out.put("text", m.text).put("alert_json", m.alert_json).put("channels", m.channels);
  return out.text();
}

}  // namespace

/// Access to the outbox's private parts, for this file only.
struct OutboxJson {
  static std::string incident(const Outbox::Incident& i) {
    Object out;
    out.put("id", i.id).put("device", i.device).put("pid", i.pid);
    out.put("severity", to_string(i.severity)).put("opened_ns", ns(i.opened));
    out.put("headline", i.headline).put("told", i.notified);
    if (i.silenced) out.put("silenced", true);
    if (i.unconfirmed) out.put("unconfirmed_ns", ns(*i.unconfirmed));
    return out.text();
  }

  static std::string channel(const Outbox::Channel& c) {
    Object out;
    out.put("name", c.name).put("attempts", c.attempts).put("not_before_ns", ns(c.not_before));
    return out.text();
  }

  static std::string save(const Outbox& o) {
    Object out;
    out.put("schema", kSchema).put("next", o.next_).put("tokens", o.tokens_).put("refilled_ns", ns(o.refilled_));
    out.put("held_back", o.held_back_).put("held_headlines", o.held_headlines_);
    out.put("announced", std::vector<std::string>(o.announced_.begin(), o.announced_.end()));
    out.raw("incidents", list_of(o.incidents_, incident));
    out.raw("messages", list_of(o.messages_, message_json));
    out.raw("channels", list_of(o.channels_, channel));
    return printable_json(out.text()) + '\n';
  }

  static std::string read_incident(const json& in, Outbox::Incident& i, Timestamp now) {
    Fields f(in, "an incident");
    f.get("id", i.id);
    f.get("device", i.device);
    f.get("pid", i.pid);
    f.get("severity", i.severity);
    f.get("opened_ns", i.opened);
    f.get("headline", i.headline);
    f.get("told", i.notified);
    if (f.has("silenced")) f.get("silenced", i.silenced);
    Timestamp since = now;
    if (f.has("unconfirmed_ns")) f.get("unconfirmed_ns", since);
    i.unconfirmed = since;
    return f.error();
  }

  static std::string read_message(const json& in, Message& m) {
    Fields f(in, "a message");
    f.get("id", m.id);
    f.get("incident", m.incident);
    f.get("event", m.event);
    f.get("severity", m.severity);
    f.get("queued_ns", m.queued);
    f.get("time_ns", m.time);
    f.get("device", m.device);
    f.get("pid", m.pid);
    if (f.has("ran_out")) f.get("ran_out", m.ran_out);
    f.get("text", m.text);
    f.get("alert_json", m.alert_json);
    f.get("channels", m.channels);
    if (f.error().empty() && !m.alert_json.empty() && !json::parse(m.alert_json))
      return "a message's alert_json is not JSON";
    return f.error();
  }

  /// The list called `name` in `in`; an error if it is not a list.
  static const json* list(const json& in, const char* name, std::string& error) {
    const json* const it = in.find(name);
    if (it != nullptr && it->is_array()) return it;
    error = fmt::format("the file has no list \"{}\"", name);
    return nullptr;
  }

  static std::string load(const json& in, Outbox& o, Timestamp now) {
    Fields f(in, "the file");
    std::string schema;
    f.get("schema", schema);
    f.get("next", o.next_);
    f.get("tokens", o.tokens_);
    f.get("refilled_ns", o.refilled_);
    f.get("held_back", o.held_back_);
    f.get("held_headlines", o.held_headlines_);
    std::vector<std::string> announced;
    if (f.has("announced")) f.get("announced", announced);
    o.announced_.assign(announced.begin(), announced.end());
    if (!f.error().empty()) return f.error();
    if (schema != kSchema) return fmt::format("its schema is \"{}\", not {}", schema, kSchema);
    o.tokens_ = std::clamp(o.tokens_, 0.0, o.rules_.max_per_hour);
    // Otherwise, a clock set back since then would hold up all messages until it has caught up.
    o.refilled_ = std::min(o.refilled_, now);
    std::string error;
    const json* incidents = list(in, "incidents", error);
    const json* messages = list(in, "messages", error);
    const json* channels = list(in, "channels", error);
    if (!error.empty()) return error;
    if (incidents->size() > Outbox::kMaxIncidents || messages->size() > Outbox::kMaxMessages) return "it is too long";
    for (const json& item : *incidents) {
      error = read_incident(item, o.incidents_.emplace_back(), now);
      if (!error.empty()) return error;
    }
    for (const json& item : *messages) {
      error = read_message(item, o.messages_.emplace_back());
      if (!error.empty()) return error;
    }
    for (const json& item : *channels) {
      Outbox::Channel read;
      Fields c(item, "a channel");
      c.get("name", read.name);
      c.get("attempts", read.attempts);
      c.get("not_before_ns", read.not_before);
      if (!c.error().empty()) return c.error();
      if (read.attempts < 0) return "a channel's attempts are negative";
      // Retry at once, whatever the wait was: people often restart to correct the receiver's address.
      if (Outbox::Channel* known = o.channel(read.name); known != nullptr) known->attempts = 0;
    }
    return {};
  }
};

std::string Outbox::save() const {
  return OutboxJson::save(*this);
}

Status Outbox::load(std::string_view text, Timestamp now) {
  const auto in = json::parse(text);
  if (!in) return fail("it is not JSON");
  std::vector<std::string> names;
  for (const Channel& c : channels_) names.push_back(c.name);
  Outbox read(rules_, names);
  if (const std::string error = OutboxJson::load(*in, read, now); !error.empty()) return fail(error);
  read.drop_taken();
  read.revision_ = revision_ + 1;
  *this = std::move(read);
  return {};
}

/// Drops messages for channels that no longer exist.
void Outbox::drop_taken() {
  std::size_t lost = 0;
  for (Message& m : messages_)
    std::erase_if(m.channels, [this](const std::string& name) { return channel(name) == nullptr; });
  for (auto it = messages_.begin(); it != messages_.end();) {
    if (!it->channels.empty()) {
      ++it;
      continue;
    }
    ++lost;
    it = messages_.erase(it);
  }
  if (lost > 0)
    warnings_.push_back(fmt::format("{} notification{} of an earlier run dropped: the receiver is no longer configured",
                                    lost, lost == 1 ? "" : "s"));
}

std::string webhook_body(const Message& m, const OutboxRules& rules) {
  Object out;
  const auto put_known = [&out](std::string_view name, std::string_view text) {
    text.empty() ? out.put(name, nullptr) : out.put(name, text);
  };
  out.put("schema", "vramtrack.notification.v1").put("id", m.id).put("incident", m.incident).put("event", m.event);
  out.put("time", iso8601(m.time)).put("host", rules.host);
  put_known("severity", m.event == "held_back" ? std::string_view() : to_string(m.severity));
  put_known("device", m.device);
  m.pid != 0 ? out.put("pid", m.pid) : out.put("pid", nullptr);
  put_known("simulated", rules.simulated);
  out.put("headline", headline(m.text)).put("text", m.text);
  out.raw("alert", json::parse(m.alert_json) ? m.alert_json : "null");
  return printable_json(out.text());
}

std::string slack_body(const Message& m, const OutboxRules& rules) {
  std::string text = m.ran_out ? ":x: " : m.event == "resolved" ? ":white_check_mark: " : ":rotating_light: ";
  if (!rules.simulated.empty()) text += "[simulated] ";
  text += '*';
  text += escape_markup(rules.host, Markup::slack) + "* ";
  text += escape_markup(m.text.substr(0, kMostSlackBytes), Markup::slack);
  return printable_json(Object().put("text", text).text());
}

}  // namespace vramtrack::act
