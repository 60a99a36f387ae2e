#include "actuate/webhook.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.hpp"
#include "core/printable.hpp"
#include "report/view_json.hpp"

namespace vramtrack::actuate {
namespace {

constexpr std::size_t kMostShown = 80;  ///< bytes of a foreign value shown in a message

std::string shown(const Json& value) {
  std::string text = json_text(value);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return printable(text);
}

/// Reads members of objects; the error names the first invalid one.
class Reader {
 public:
  [[nodiscard]] const std::string& error() const { return error_; }

  const Json* member(const Json& in, const std::string& place, const char* name, bool is_required = true) {
    const Json* const at = in.find(name);
    if (at == nullptr && is_required) wrong(fmt::format("{}{} is missing", place, name));
    return at;
  }

  std::string text(const Json& in, const std::string& place, const char* name, bool is_required = true) {
    const Json* value = member(in, place, name, is_required);
    if (value == nullptr) return {};
    if (!value->is_string()) return wrong(fmt::format("{}{}: expected a string, got {}", place, name, shown(*value)));
    return value->get<std::string>();
  }

  Labels labels(const Json& in, const std::string& place, const char* name, bool is_required) {
    const Json* value = member(in, place, name, is_required);
    Labels out;
    if (value == nullptr) return out;
    if (!value->is_object()) {
      wrong(fmt::format("{}{}: expected an object of strings, got {}", place, name, shown(*value)));
      return out;
    }
    if (value->size() > kMostLabels) {
      wrong(fmt::format("{}{}: {} of them; at most {} are accepted", place, name, value->size(), kMostLabels));
      return out;
    }
    for (const auto& [key, one] : value->items()) {
      if (!one.is_string()) {
        wrong(fmt::format("{}{}.{}: expected a string, got {}", place, name, printable(key), shown(one)));
        return out;
      }
      out[key] = one.get<std::string>().substr(0, kLongestLabel);
    }
    return out;
  }

  std::string wrong(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return {};
  }

 private:
  std::string error_;
};

bool is_fingerprint(const std::string& text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

WebhookAlert read_alert(const Json& in, const std::string& place, Reader& reader) {
  WebhookAlert alert;
  if (!in.is_object()) {
    reader.wrong(fmt::format("{}: expected an object, got {}", place.substr(0, place.size() - 1), shown(in)));
    return alert;
  }
  const std::string status = reader.text(in, place, "status");
  if (status != "firing" && status != "resolved")
    reader.wrong(fmt::format("{}status: expected \"firing\" or \"resolved\", got {}", place, shown(Json(status))));
  alert.is_firing = status == "firing";
  alert.fingerprint = reader.text(in, place, "fingerprint");
  if (!is_fingerprint(alert.fingerprint))
    reader.wrong(
        fmt::format("{}fingerprint: expected hexadecimal digits, got {}", place, shown(Json(alert.fingerprint))));
  if (const auto starts = parse_rfc3339(reader.text(in, place, "startsAt")))
    alert.starts_at = *starts;
  else
    reader.wrong(fmt::format("{}startsAt: {}", place, starts.error().message));
  alert.labels = reader.labels(in, place, "labels", true);
  alert.annotations = reader.labels(in, place, "annotations", false);
  return alert;
}

}  // namespace

Result<Timestamp> parse_rfc3339(const std::string& text) {
  const auto fail_here = [&] {
    return fail(fmt::format("expected a time such as \"2026-01-02T03:04:05.123Z\", got {}", shown(Json(text))));
  };
  if (text.size() > 40) return fail_here();
  if (text.ends_with('Z')) {
    const auto time = parse_exact_time(text);
    return time ? Result<Timestamp>(*time) : fail_here();
  }
  if (text.size() < 7) return fail_here();
  const std::string offset = text.substr(text.size() - 6);
  const auto digit = [&offset](std::size_t i) { return offset[i] - '0'; };
  const bool is_offset =
      (offset[0] == '+' || offset[0] == '-') && offset[3] == ':' &&
      std::all_of(offset.begin() + 1, offset.end(), [](char c) { return c == ':' || (c >= '0' && c <= '9'); });
  const auto time = parse_exact_time(text.substr(0, text.size() - 6) + 'Z');
  if (!is_offset || !time) return fail_here();
  const std::chrono::minutes ahead(60 * (10 * digit(1) + digit(2)) + 10 * digit(4) + digit(5));
  if (ahead > std::chrono::hours(24)) return fail_here();
  return offset[0] == '+' ? *time - ahead : *time + ahead;
}

Result<Webhook> parse_webhook(std::string_view body) {
  const auto parsed = Json::parse(body);
  if (!parsed) return fail("the body is not JSON; expected what Alertmanager posts to a webhook");
  const Json& in = *parsed;
  if (!in.is_object()) return fail(fmt::format("expected an object, got {}", shown(in)));
  Reader reader;
  Webhook out;
  const std::string version = reader.text(in, "", "version");
  if (version != "4") reader.wrong(fmt::format("version: expected \"4\", got {}", shown(Json(version))));
  out.receiver = reader.text(in, "", "receiver", false);
  out.group_key = reader.text(in, "", "groupKey", false);
  if (const Json* truncated = reader.member(in, "", "truncatedAlerts", false); truncated != nullptr) {
    if (truncated->is_number_unsigned())
      out.truncated = truncated->get<std::uint64_t>();
    else
      reader.wrong(fmt::format("truncatedAlerts: expected a number, 0 or greater, got {}", shown(*truncated)));
  }
  const Json* alerts = reader.member(in, "", "alerts");
  if (alerts != nullptr && !alerts->is_array())
    reader.wrong(fmt::format("alerts: expected an array, got {}", shown(*alerts)));
  if (!reader.error().empty()) return fail(reader.error());
  if (alerts->size() > kMostAlerts)
    return fail(fmt::format("alerts: {} of them; at most {} are accepted: set max_alerts of the webhook",
                            alerts->size(), kMostAlerts));
  for (std::size_t i = 0; i < alerts->size() && reader.error().empty(); ++i)
    out.alerts.push_back(read_alert((*alerts)[i], fmt::format("alerts[{}].", i), reader));
  if (!reader.error().empty()) return fail(reader.error());
  return out;
}

}  // namespace vramtrack::actuate
