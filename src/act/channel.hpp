// Channels: the ways to deliver a notification to its receiver. Each is one line in channels.def.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string_view>

#include "act/http_post.hpp"
#include "act/outbox.hpp"
#include "core/config.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// One attempt to deliver a message. Blocks for up to the time limit in the configuration.
using Deliver = std::function<Outcome(const Message&)>;

/// A setting of [notify] that belongs to one channel.
struct ChannelSetting {
  std::string_view key;
  bool secret = false;  ///< whether the API must hide its value
};

struct ChannelContext {
  const NotifyConfig& config;
  const OutboxRules& rules;       ///< must outlive what `make` returns
  const std::atomic<bool>& stop;  ///< ends an attempt in progress; likewise
};

struct ChannelInfo {
  const char* name = "";  ///< in the queue file and in warnings
  std::span<const ChannelSetting> settings;
  bool (*configured)(const NotifyConfig& config) = nullptr;
  /// REQUIRES: configured. Errors: a bad address, a token that cannot be read, no program.
  Result<Deliver> (*make)(const ChannelContext& context) = nullptr;
};

/// All channels.
std::span<const ChannelInfo* const> channels();
/// Whether the value of a setting ("notify.webhook") is the secret of a channel.
bool is_channel_secret(std::string_view setting);

/// The target that the address in a setting (`key` of [notify]) refers to. Errors name the setting.
Result<HttpTarget> http_target(std::string_view key, const std::string& address, const NotifyConfig& config);

}  // namespace vramtrack::act
