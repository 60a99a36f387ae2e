// POSTs each message to an incoming webhook of Slack; Mattermost and Rocket.Chat accept the same format.
#include <array>

#include "act/channel.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kSettings = {ChannelSetting{"slack", true}};

Result<Deliver> make(const ChannelContext& context) {
  auto target = http_target("slack", context.config.slack, context.config);
  if (!target) return fail(target.error());
  return [target = *target, &rules = context.rules, &stop = context.stop](const Message& m) {
    return http_post(target, m.id, slack_body(m, rules), stop);
  };
}

}  // namespace

extern const ChannelInfo slack_channel;
const ChannelInfo slack_channel{
    .name = "slack",
    .settings = kSettings,
    .configured = [](const NotifyConfig& config) { return !config.slack.empty(); },
    .make = make,
};

}  // namespace vramtrack::act
