#include "act/http_post.hpp"

#include <fmt/format.h>

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostAnswer = 64 * 1024;

Outcome outcome_of(const Url& url, const HttpHead& head) {
  if (head.status >= 200 && head.status < 300) return {Outcome::Kind::delivered, {}, {}};
  const std::string why = status_words(url.origin(), head.status);
  for (const int refusal : {400, 413, 415, 422})
    if (head.status == refusal) return {Outcome::Kind::refused, why, {}};
  return {Outcome::Kind::retry, why, head.retry_after_s > 0 ? std::optional<double>(head.retry_after_s) : std::nullopt};
}

}  // namespace

Status can_post(const Url& url) {
  if (url.https && !has_https())
    return fail(
        "this build does not support https, because its cpp-httplib was built without OpenSSL; use notify.exec with "
        "curl");
  return {};
}

Outcome http_post(const HttpTarget& target, const std::string& id, const std::string& body,
                  const std::atomic<bool>& stop) {
  HttpCall call;
  call.url = target.url;
  call.method = "POST";
  call.headers = {{"Content-Type", "application/json"}, {"Idempotency-Key", id}};
  if (!target.token.empty()) call.headers.emplace_back("Authorization", "Bearer " + target.token);
  call.body = body;
  call.ca_file = target.ca_file;
  call.timeout_s = target.timeout_s;
  call.most_answer_bytes = kMostAnswer;
  // Ignores the process's interrupt: the last messages are delivered while it ends.
  call.is_cancelled = [&stop] { return stop.load(); };
  bool has_body = false;
  const HttpAnswer answer = http_exchange(call, "set notify.ca-file", [&has_body](std::string_view, const HttpHead&) {
    has_body = true;
    return true;
  });
  // The status line has arrived, so later errors do not matter.
  if (answer.end == HttpEnd::complete || has_body) return outcome_of(target.url, answer.head);
  if (answer.end == HttpEnd::cancelled) return {Outcome::Kind::retry, "it was cancelled because vramtrack ended", {}};
  return {Outcome::Kind::retry, fmt::format("{}: {}", target.url.origin(), answer.why), {}};
}

}  // namespace vramtrack::act
