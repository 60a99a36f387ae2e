#include "act/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace vramtrack::act {

#define VRAMTRACK_CHANNEL(name) extern const ChannelInfo name##_channel;
#include "act/channels.def"
#undef VRAMTRACK_CHANNEL

namespace {

constexpr std::array kChannels = {
#define VRAMTRACK_CHANNEL(name) &name##_channel,
#include "act/channels.def"
#undef VRAMTRACK_CHANNEL
};

}  // namespace

std::span<const ChannelInfo* const> channels() {
  return kChannels;
}

bool is_channel_secret(std::string_view setting) {
  constexpr std::string_view kSection = "notify.";
  if (!setting.starts_with(kSection)) return false;
  const std::string_view key = setting.substr(kSection.size());
  return std::any_of(kChannels.begin(), kChannels.end(), [&](const ChannelInfo* channel) {
    return std::any_of(channel->settings.begin(), channel->settings.end(),
                       [&](const ChannelSetting& s) { return s.secret && s.key == key; });
  });
}

Result<HttpTarget> http_target(std::string_view key, const std::string& address, const NotifyConfig& config) {
  auto url = parse_url(address);
  if (!url) return fail(url.error().during(fmt::format("notify.{}", key)));
  if (const Status can = can_post(*url); !can) return fail(can.error().during(fmt::format("notify.{}", key)));
  return HttpTarget{std::move(*url), {}, config.ca_file, config.timeout_seconds};
}

}  // namespace vramtrack::act
