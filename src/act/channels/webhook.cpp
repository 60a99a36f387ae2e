// POSTs each message as JSON (vramtrack.notification.v1).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "act/channel.hpp"
#include "core/regular_file.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kSettings = {ChannelSetting{"webhook", true}, ChannelSetting{"webhook-token-file", true}};

/// The first line of the file.
Result<std::string> read_token(const std::string& path) {
  const auto text = read_regular_file(path, 64 * 1024, Links::of_owner);
  if (!text) return fail(text.error().during("notify.webhook-token-file"));
  std::string token = text->value_or("");
  token.resize(std::min(token.size(), token.find('\n')));
  if (token.empty())
    return fail(fmt::format(
        "notify.webhook-token-file {}: cannot be read or is empty; put the token into its first line", path));
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty() || std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c == 0x7f; }))
    return fail(fmt::format("notify.webhook-token-file {}: its first line is not a token", path));
  return token;
}

Result<Deliver> make(const ChannelContext& context) {
  auto target = http_target("webhook", context.config.webhook, context.config);
  if (!target) return fail(target.error());
  if (!context.config.webhook_token_file.empty()) {
    auto token = read_token(context.config.webhook_token_file);
    if (!token) return fail(token.error());
    target->token = std::move(*token);
  }
  return [target = *target, &rules = context.rules, &stop = context.stop](const Message& m) {
    return http_post(target, m.id, webhook_body(m, rules), stop);
  };
}

}  // namespace

extern const ChannelInfo webhook_channel;
const ChannelInfo webhook_channel{
    .name = "webhook",
    .settings = kSettings,
    .configured = [](const NotifyConfig& config) { return !config.webhook.empty(); },
    .make = make,
};

}  // namespace vramtrack::act
