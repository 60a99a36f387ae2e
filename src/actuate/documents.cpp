#include "actuate/documents.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/view_json.hpp"

namespace vramtrack::actuate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStateSchema = "vramtrack.actuate.state.v1";
constexpr std::string_view kSummarySchema = "vramtrack.actuate.v1";
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestReason = 1000;

Json time_or_null(const std::optional<Timestamp>& time) {
  return time ? Json(exact_time(*time)) : Json(nullptr);
}

Timestamp time_at(const Json& in, const char* name) {
  const auto time = parse_exact_time(in.at(name).get<std::string>());
  if (!time) throw std::invalid_argument(std::string(name) + " is not a time");
  return *time;
}

std::optional<Timestamp> time_if(const Json& in, const char* name) {
  return in.contains(name) && in.at(name).is_string() ? std::optional(time_at(in, name)) : std::nullopt;
}

Json breaker_json(const std::optional<OpenBreaker>& breaker) {
  return breaker ? Json{{"since", exact_time(breaker->since)}, {"why", breaker->why}} : Json(nullptr);
}

std::optional<OpenBreaker> breaker_in(const Json& in) {
  if (!in.contains("breaker") || in.at("breaker").is_null()) return std::nullopt;
  const Json& breaker = in.at("breaker");
  return OpenBreaker{time_at(breaker, "since"), breaker.at("why").get<std::string>()};
}

Json case_json(const Case& one) {
  Json out;
  out["fingerprint"] = one.fingerprint;
  out["starts_at"] = exact_time(one.starts_at);
  out["labels"] = one.labels;
  out["first_seen"] = exact_time(one.first_seen);
  out["last_seen"] = exact_time(one.last_seen);
  out["resolved"] = one.is_resolved;
  out["subject"] = one.subject;
  out["process"] = {{"host", one.process.host}, {"pid", one.process.pid}, {"start_ticks", one.process.start_ticks}};
  out["begun"] = one.has_begun;
  out["closed"] = one.is_closed;
  out["refusal"] = one.refusal;
  out["why"] = one.why;
  return out;
}

Case case_in(const Json& in) {
  Case one;
  one.fingerprint = in.at("fingerprint").get<std::string>();
  one.starts_at = time_at(in, "starts_at");
  one.labels = in.at("labels").get<Labels>();
  one.first_seen = time_at(in, "first_seen");
  one.last_seen = time_at(in, "last_seen");
  one.is_resolved = in.at("resolved").get<bool>();
  one.subject = in.at("subject").get<std::string>();
  const Json& process = in.at("process");
  one.process.host = process.at("host").get<std::string>();
  one.process.pid = process.at("pid").get<std::uint32_t>();
  one.process.start_ticks = process.at("start_ticks").get<std::uint64_t>();
  one.has_begun = in.at("begun").get<bool>();
  one.is_closed = in.at("closed").get<bool>();
  one.refusal = in.at("refusal").get<std::string>();
  one.why = in.at("why").get<std::string>();
  return one;
}

/// What `read` makes of an object of that schema; what it throws is the error.
template <class T, class Read>
Result<T> parsed(std::string_view text, std::string_view schema, Read read) {
  const Json in = Json::parse(text, nullptr, false);
  if (!in.is_object()) return fail("it is not a JSON object");
  try {
    if (in.value("schema", "") != schema) return fail(fmt::format("its schema is not {}", schema));
    return read(in);
  } catch (const std::exception& e) {
    return fail(printable(e.what()));
  }
}

std::string text_in(const Json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_string() ? at->get<std::string>() : std::string();
}

const char* phase_of(const Case& one) {
  if (one.is_closed) return "closed";
  if (one.has_begun) return "acting";
  return one.is_resolved ? "resolved" : "open";
}

std::string label_of(const Case& one, const char* name) {
  const auto at = one.labels.find(name);
  return at == one.labels.end() ? "?" : printable(at->second);
}

}  // namespace

std::string state_json(const State& state) {
  Json out;
  out["schema"] = kStateSchema;
  out["dry_run"] = state.dry_run;
  out["last_webhook"] = time_or_null(state.last_webhook);
  out["breaker"] = breaker_json(state.breaker);
  out["acts"] = Json::array();
  for (const NodeAct& act : state.acts) out["acts"].push_back({{"time", exact_time(act.time)}, {"node", act.node}});
  out["cases"] = Json::array();
  for (const auto& [key, one] : state.cases) out["cases"].push_back(case_json(one));
  return json_text(out, 1);
}

Result<State> parse_state(std::string_view text) {
  return parsed<State>(text, kStateSchema, [](const Json& in) {
    State state;
    state.dry_run = in.at("dry_run").get<bool>();
    state.last_webhook = time_if(in, "last_webhook");
    state.breaker = breaker_in(in);
    for (const Json& act : in.at("acts"))
      state.acts.push_back({time_at(act, "time"), act.at("node").get<std::string>()});
    for (const Json& one : in.at("cases")) {
      Case read = case_in(one);
      state.cases[read.key()] = std::move(read);
    }
    return state;
  });
}

std::string summary_json(const Summary& summary, std::size_t most) {
  Json out;
  out["schema"] = kSummarySchema;
  out["dry_run"] = summary.dry_run;
  out["policies"] = summary.policies;
  out["breaker"] = breaker_json(summary.breaker);
  out["nodes_acted_on"] = summary.nodes_acted_on;
  out["nodes_allowed"] = summary.nodes_allowed;
  out["climbing"] = summary.climbing;
  out["last_webhook"] = time_or_null(summary.last_webhook);
  out["cases"] = Json::array();
  for (std::size_t i = 0; i < summary.cases.size() && i < most; ++i)
    out["cases"].push_back(case_json(summary.cases[i]));
  return json_text(out);
}

Result<Summary> parse_summary(std::string_view text) {
  return parsed<Summary>(text, kSummarySchema, [](const Json& in) {
    Summary out;
    out.dry_run = in.at("dry_run").get<bool>();
    out.policies = in.at("policies").get<std::vector<std::string>>();
    out.breaker = breaker_in(in);
    out.nodes_acted_on = in.at("nodes_acted_on").get<std::size_t>();
    out.nodes_allowed = in.at("nodes_allowed").get<std::int64_t>();
    out.climbing = in.at("climbing").get<std::size_t>();
    out.last_webhook = time_if(in, "last_webhook");
    for (const Json& one : in.at("cases")) out.cases.push_back(case_in(one));
    return out;
  });
}

std::string summary_words(const Summary& summary) {
  std::string out = fmt::format("{} with {} polic{}\n", summary.dry_run ? "dry run: nothing is done" : "acting",
                                summary.policies.size(), summary.policies.size() == 1 ? "y" : "ies");
  if (summary.breaker)
    out += fmt::format("circuit breaker: OPEN since {}: {}\n", iso8601(summary.breaker->since), summary.breaker->why);
  else
    out += fmt::format("circuit breaker: closed; {} of {} nodes acted on\n", summary.nodes_acted_on,
                       summary.nodes_allowed);
  out += fmt::format("last webhook: {}\n", summary.last_webhook ? iso8601(*summary.last_webhook) : "none yet");
  for (const Case& one : summary.cases)
    out += fmt::format("{}  {:8}  {} {}{}{}{}\n", iso8601(one.starts_at), phase_of(one), label_of(one, "alertname"),
                       one.process.host.empty() ? label_of(one, "Hostname") : one.process.host,
                       one.process.pid != 0 ? fmt::format(" pid {}", one.process.pid) : "", one.why.empty() ? "" : ": ",
                       one.why);
  return printable_lines(out);
}

Result<ResetRequest> parse_reset(std::string_view body) {
  const Json in = Json::parse(body, nullptr, false);
  if (!in.is_object()) return fail(R"(expected {"by": "NAME", "reason": "TEXT"})");
  ResetRequest out{text_in(in, "by"), text_in(in, "reason")};
  if (out.by.empty() || out.by.size() > kLongestName)
    return fail(fmt::format("'by' must name the person who closes the breaker, in at most {} bytes", kLongestName));
  if (out.reason.size() > kLongestReason) return fail(fmt::format("'reason' has more than {} bytes", kLongestReason));
  return out;
}

std::string reset_json(const ResetRequest& request) {
  return json_text(Json{{"by", request.by}, {"reason", request.reason}});
}

AgentVersion parse_version(std::string_view text) {
  const Json in = Json::parse(text, nullptr, false);
  if (!in.is_object()) return {};
  const std::string node = text_in(in, "node");
  return {node.empty() ? text_in(in, "host") : node, text_in(in, "simulated")};
}

}  // namespace vramtrack::actuate
