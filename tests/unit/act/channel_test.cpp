#include "act/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/settings.hpp"

namespace vramtrack::act {
namespace {

TEST(Channels, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const ChannelInfo* channel : channels()) EXPECT_TRUE(names.insert(channel->name).second) << channel->name;
  EXPECT_FALSE(names.empty());
}

TEST(Channels, TheirSettingsAreThoseOfNotify) {
  for (const ChannelInfo* channel : channels())
    for (const ChannelSetting& own : channel->settings)
      EXPECT_TRUE(std::any_of(settings().begin(), settings().end(),
                              [&](const Setting& s) { return s.section == "notify" && s.key == own.key; }))
          << channel->name << ": " << own.key;
}

// An address may contain a secret, and so may a program's arguments.
TEST(Channels, TheAddressOfAReceiverIsASecret) {
  for (const Setting& s : settings())
    if (s.section == "notify" && (s.unit == "URL" || s.unit == "program and arguments")) {
      EXPECT_TRUE(is_channel_secret(s.name())) << s.name();
    }
  EXPECT_FALSE(is_channel_secret("notify.retry-seconds"));
  EXPECT_FALSE(is_channel_secret("agent.webhook"));
}

TEST(Channels, ABadAddressNamesItsSetting) {
  NotifyConfig config;
  config.slack = "ftp://example.org";
  const OutboxRules rules;
  const std::atomic<bool> stop{false};
  for (const ChannelInfo* channel : channels()) {
    if (!channel->configured(config)) continue;
    const auto deliver = channel->make({config, rules, stop});
    ASSERT_FALSE(deliver);
    EXPECT_EQ(deliver.error().message.rfind("notify.slack: ", 0), 0U) << deliver.error().message;
    return;
  }
  FAIL() << "no channel is configured by notify.slack";
}

}  // namespace
}  // namespace vramtrack::act
