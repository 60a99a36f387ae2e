#include "act/otlp_push.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "act/http_post.hpp"
#include "core/percent.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostAnswer = 64 * 1024;
constexpr const char* kSpoken = "http/json";

/// A variable for metrics takes precedence over the one for all signals.
struct Given {
  std::string name;
  std::string value;
};
Given given(const Environment& environment, const char* what) {
  for (const char* prefix : {"OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_"}) {
    Given out{std::string(prefix) + what, {}};
    out.value = environment(out.name.c_str());
    if (!out.value.empty()) return out;
  }
  return {};
}

/// "a=b,c=d"
Result<std::map<std::string, std::string>> pairs_of(const Given& variable) {
  std::map<std::string, std::string> out;
  std::string_view rest = variable.value;
  while (!rest.empty()) {
    const std::string_view whole = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), whole.size() + 1));
    const std::string_view part = trimmed(whole);
    if (part.empty()) continue;
    const std::size_t is = part.find('=');
    // The value may be a secret.
    if (is == 0 || is == std::string_view::npos)
      return fail(fmt::format("{}: expected NAME=VALUE, with commas between them", variable.name));
    out[percent_decoded(trimmed(part.substr(0, is)))] = percent_decoded(trimmed(part.substr(is + 1)));
  }
  return out;
}

Result<double> seconds_of(const Given& variable, double otherwise_s) {
  if (variable.value.empty()) return otherwise_s;
  double ms = 0;
  const char* end = variable.value.data() + variable.value.size();
  if (std::from_chars(variable.value.data(), end, ms).ptr != end || ms < 1 || ms > 86'400'000)
    return fail(fmt::format("{}: expected milliseconds, from 1 to 86400000, got '{}'", variable.name,
                            printable(variable.value)));
  return ms / 1000;
}

bool is_header_safe(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != 0x7f; });
}

}  // namespace

Result<std::optional<OtlpTarget>> otlp_target(const Environment& environment) {
  if (environment("OTEL_SDK_DISABLED") == "true" || environment("OTEL_METRICS_EXPORTER") == "none") return std::nullopt;
  const Given endpoint = given(environment, "ENDPOINT");
  if (endpoint.value.empty()) return std::nullopt;
  const Given protocol = given(environment, "PROTOCOL");
  if (!protocol.value.empty() && protocol.value != kSpoken)
    return fail(
        fmt::format("{}={}: vramtrack sends {} only, which a collector accepts on its port for HTTP (4318) beside "
                    "http/protobuf; set "
                    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL={}",
                    protocol.name, printable(protocol.value), kSpoken, kSpoken));
  std::string address = endpoint.value;
  if (endpoint.name == "OTEL_EXPORTER_OTLP_ENDPOINT") address += address.ends_with('/') ? "v1/metrics" : "/v1/metrics";
  OtlpTarget out;
  auto url = parse_url(address);
  if (!url) return fail(url.error().during(endpoint.name));
  out.url = std::move(*url);
  const Given header_list = given(environment, "HEADERS");
  auto headers = pairs_of(header_list);
  if (!headers) return fail(headers.error());
  for (auto& [name, value] : *headers) {
    if (!is_header_safe(name) || !is_header_safe(value))
      return fail(fmt::format("{}: a name or a value has control characters", header_list.name));
    out.headers.emplace_back(name, value);
  }
  auto attributes = pairs_of({"OTEL_RESOURCE_ATTRIBUTES", environment("OTEL_RESOURCE_ATTRIBUTES")});
  if (!attributes) return fail(attributes.error());
  out.attributes = std::move(*attributes);
  out.service = environment("OTEL_SERVICE_NAME");
  out.ca_file = given(environment, "CERTIFICATE").value;
  const auto every = seconds_of({"OTEL_METRIC_EXPORT_INTERVAL", environment("OTEL_METRIC_EXPORT_INTERVAL")}, 60);
  if (!every) return fail(every.error());
  const auto timeout = seconds_of(given(environment, "TIMEOUT"), 10);
  if (!timeout) return fail(timeout.error());
  out.every_s = *every;
  out.timeout_s = *timeout;
  return out;
}

Result<std::optional<OtlpTarget>> otlp_target() {
  return otlp_target([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  });
}

OtlpPush::OtlpPush(OtlpTarget target, std::function<std::string()> body, std::function<void(const std::string&)> log)
    : target_(std::move(target)), body_(std::move(body)), log_(std::move(log)) {}

Result<std::unique_ptr<OtlpPush>> OtlpPush::start(OtlpTarget target, std::function<std::string()> body,
                                                  std::function<void(const std::string&)> log) {
  if (const Status can = can_post(target.url); !can) return fail(can.error());
  std::unique_ptr<OtlpPush> out(new OtlpPush(std::move(target), std::move(body), std::move(log)));
  try {
    out->thread_ = std::thread([push = out.get()] { push->live(); });
  } catch (const std::system_error& e) {
    return fail(fmt::format("no thread can be started to export metrics: {}", e.what()));
  }
  return out;
}

OtlpPush::~OtlpPush() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OtlpPush::live() {
  const auto every =
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(target_.every_s));
  auto next = std::chrono::steady_clock::now() + every;
  std::string trouble;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, next, [this] { return stop_.load(); })) {
    lock.unlock();
    // Metrics that could not be sent are dropped: counters are cumulative, so the next push contains them.
    if (std::string body = body_(); !body.empty()) {
      const std::string why = send(std::move(body));
      if (why != trouble && !stop_)
        log_(why.empty() ? fmt::format("metrics are exported to {} again", target_.url.origin())
                         : fmt::format("metrics are not exported: {}; trying again", printable(why)));
      trouble = why;
    }
    next = std::max(next + every, std::chrono::steady_clock::now());
    lock.lock();
  }
}

/// Why the collector did not accept it; empty if it did.
std::string OtlpPush::send(std::string body) const {
  HttpCall call;
  call.url = target_.url;
  call.method = "POST";
  call.headers = target_.headers;
  call.headers.emplace_back("Content-Type", "application/json");
  call.body = std::move(body);
  call.ca_file = target_.ca_file;
  call.timeout_s = target_.timeout_s;
  call.most_answer_bytes = kMostAnswer;
  call.is_cancelled = [this] { return stop_.load(); };
  const HttpAnswer answer = http_exchange(call, "set OTEL_EXPORTER_OTLP_CERTIFICATE");
  const std::string origin = target_.url.origin();
  if (answer.end != HttpEnd::complete) return fmt::format("{}: {}", origin, answer.why);
  if (answer.head.status >= 200 && answer.head.status < 300) return {};
  constexpr std::size_t kMostText = 200;
  return status_words(origin, answer.head.status, std::string_view(answer.body).substr(0, kMostText));
}

}  // namespace vramtrack::act
