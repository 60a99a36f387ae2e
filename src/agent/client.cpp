#include "agent/client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "act/http_exchange.hpp"
#include "core/descriptor.hpp"
#include "core/json.hpp"
#include "core/percent.hpp"
#include "host/unix_socket.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using json = Json;

constexpr std::string_view kSystemSocket = "/run/vramtrack/agent.sock";

std::string folder_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool answers(const std::string& path) {
  return Descriptor(connect_unix(path)).get() >= 0 || errno == EAGAIN;
}

Result<json> parse_json(const std::string& text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return fail("the answer is not a JSON object");
  return value;
}

}  // namespace

std::string own_agent_socket(const AgentConfig& config) {
  if (config.socket == "none") return {};
  if (!config.socket.empty()) return config.socket;
  if (const std::string folder = folder_of_variable("RUNTIME_DIRECTORY"); !folder.empty())
    return folder + "/agent.sock";
  if (const std::string folder = folder_of_variable("XDG_RUNTIME_DIR"); !folder.empty())
    return folder + "/vramtrack/agent.sock";
  return ::geteuid() == 0 ? std::string(kSystemSocket) : std::string();
}

std::optional<std::string> find_agent(const AgentConfig& config) {
  const std::string own = own_agent_socket(config);
  if (!own.empty() && answers(own)) return own;
  if (!config.socket.empty()) return std::nullopt;  // the user configured this one
  if (own != kSystemSocket && answers(std::string(kSystemSocket))) return std::string(kSystemSocket);
  return std::nullopt;
}

Result<AgentClient::Answer> AgentClient::exchange(const std::string& path_and_query, const std::string& body,
                                                  std::string_view method) const {
  act::HttpCall call;
  call.unix_socket = socket_;
  call.url = {false, "localhost", 80, path_and_query};
  call.method = body.empty() ? method : "POST";
  if (!body.empty()) call.headers.emplace_back("Content-Type", "application/json");
  call.body = body;
  call.timeout_s = timeout_s_;
  act::HttpAnswer answer = act::http_exchange(call, {});
  if (answer.end == act::HttpEnd::complete) return Answer{answer.head.status, std::move(answer.body)};
  if (answer.end == act::HttpEnd::no_connection) answer.why += "; 'vramtrack " + program_ + "' starts one";
  return fail(Error{std::move(answer.why)}.during(doing()));
}

Result<std::string> AgentClient::ask(const std::string& path_and_query, const std::string& body,
                                     std::string_view method) const {
  auto answer = exchange(path_and_query, body, method);
  if (!answer) return fail(answer.error());
  if (answer->status == 200 || answer->status == 204) return std::move(answer->body);
  const json value = json::parse(answer->body).value_or(nullptr);
  const json* const error = value.find("error");
  const json* const message = error != nullptr ? error->find("message") : nullptr;
  const bool has_message = message != nullptr && message->is_string();
  return fail(Error{has_message ? message->text() : act::status_words("it", answer->status)}.during(doing()));
}

Result<SitesNow> AgentClient::sites(std::uint32_t pid) const {
  const auto answer = exchange(fmt::format("/api/v1/sites?pid={}", pid), {}, "GET");
  if (!answer) return fail(answer.error());
  using State = SitesNow::State;
  if (answer->status == 403 || answer->status == 404) return SitesNow{State::not_probed};
  if (answer->status == 429 || answer->status == 503) return SitesNow{State::not_yet};
  if (answer->status != 200) return fail(Error{act::status_words("it", answer->status)}.during(doing()));
  auto report = parse_sites_json(answer->body);
  if (!report) return fail(report.error().during(doing()));
  return SitesNow{State::known, std::move(*report)};
}

Status AgentClient::mark(const std::vector<std::vector<std::uint32_t>>& pids, const std::string& mark) const {
  // An older agent accepts only one pid.
  const bool is_one = pids.size() == 1 && pids.front().size() == 1;
  const json body = is_one ? json{{"pid", pids.front().front()}, {"mark", mark}} : json{{"pids", pids}, {"mark", mark}};
  const auto answer = ask("/api/v1/marks", json_text(body));
  if (!answer) return fail(answer.error());
  return {};
}

Result<View> AgentClient::view() const {
  const auto text = ask("/api/v1/view");
  if (!text) return fail(text.error());
  return parse_view_json(*text);
}

Result<AgentVersion> AgentClient::version() const {
  const auto text = ask("/api/v1/version");
  if (!text) return fail(text.error());
  const auto value = parse_json(*text);
  if (!value) return fail(value.error());
  try {
    AgentVersion version{value->get<std::string>("version"), value->get<std::string>("host"),
                         value->get<std::uint32_t>("pid"),
                         parse_exact_time(value->get<std::string>("started")).value_or(Timestamp{}), ""};
    // An older agent does not report it.
    if (const json* const it = value->find("simulated"); it != nullptr && it->is_string())
      version.simulated = it->text();
    return version;
  } catch (const JsonMismatch& e) {
    return fail(fmt::format("reading the agent's version: {}", e.what()));
  }
}

Result<std::vector<AgentPoint>> AgentClient::history(const SeriesKey& key, Timestamp from, Timestamp to,
                                                     std::size_t points) const {
  const auto text = ask(fmt::format("/api/v1/history?series={}&from={}&to={}&points={}",
                                    percent_encoded(series_key_text(key)), exact_time(from), exact_time(to), points));
  if (!text) return fail(text.error());
  const auto value = parse_json(*text);
  if (!value) return fail(value.error());
  try {
    std::vector<AgentPoint> out;
    const json& columns = value->at("series").at(0);
    const json& times = columns.at("t");
    for (std::size_t i = 0; i < times.size(); ++i)
      out.push_back({Timestamp{std::chrono::milliseconds{std::llround(times[i].get<double>() * 1000)}},
                     columns.at("min").at(i).get<std::uint64_t>(), columns.at("mean").at(i).get<double>(),
                     columns.at("max").at(i).get<std::uint64_t>()});
    return out;
  } catch (const JsonMismatch& e) {
    return fail(fmt::format("reading a history from the agent: {}", e.what()));
  }
}

Result<std::vector<AgentAlert>> AgentClient::alerts() const {
  const auto text = ask("/api/v1/alerts");
  if (!text) return fail(text.error());
  const auto value = parse_json(*text);
  if (!value) return fail(value.error());
  try {
    std::vector<AgentAlert> out;
    for (const json& a : value->at("alerts").list()) {
      AgentAlert alert;
      alert.id = a.get<std::string>("id");
      alert.key = parse_series_key(a.get<std::string>("key")).value_or(SeriesKey{});
      auto parsed = parse_alert_object_json(json_text(a));
      if (!parsed) return fail(parsed.error());
      alert.alert = std::move(*parsed);
      const json& device = a.at("device");
      alert.device.id = device.get<std::string>("id");
      if (device.at("index").is_number_integer()) alert.device.index = device.get<int>("index");
      alert.device.name = device.get<std::string>("name");
      if (a.at("process").is_string()) alert.process = a.get<std::string>("process");
      if (const json& ack = a.at("acknowledged"); ack.is_object()) {
        alert.acknowledged = true;
        alert.acknowledged_by = ack.get<std::string>("by");
        alert.note = ack.get<std::string>("note");
      }
      if (const json* const it = a.find("silenced"); it != nullptr && it->is_object())  // older agents do not
        if (auto silence = parse_silence(json_text(*it))) alert.silenced = std::move(*silence);
      out.push_back(std::move(alert));
    }
    return out;
  } catch (const JsonMismatch& e) {
    return fail(fmt::format("reading the agent's alerts: {}", e.what()));
  }
}

Result<std::vector<Silence>> AgentClient::silences() const {
  const auto text = ask("/api/v1/silences");
  if (!text) return fail(text.error());
  const auto value = parse_json(*text);
  if (!value) return fail(value.error());
  const json* const list = value->find("silences");
  if (list == nullptr || !list->is_array()) return fail("reading the agent's silences: there is no list of them");
  std::vector<Silence> out;
  for (const json& one : *list) {
    auto silence = parse_silence(json_text(one));
    if (!silence) return fail(silence.error().during("reading the agent's silences"));
    out.push_back(std::move(*silence));
  }
  return out;
}

Result<Silence> AgentClient::silence(const Silence& silence) const {
  const auto answer = ask("/api/v1/silences", silence_json(silence));
  if (!answer) return fail(answer.error());
  return parse_silence(*answer);
}

Status AgentClient::end_silence(const std::string& id) const {
  const auto answer = ask("/api/v1/silences/" + percent_encoded(id), {}, "DELETE");
  if (!answer) return fail(answer.error());
  return {};
}

Status AgentClient::acknowledge(const std::string& id, const std::string& note) const {
  const json body = {{"note", note}};
  const auto answer = ask("/api/v1/alerts/" + percent_encoded(id) + "/acknowledge", json_text(body));
  if (!answer) return fail(answer.error());
  return {};
}

}  // namespace vramtrack::agent
