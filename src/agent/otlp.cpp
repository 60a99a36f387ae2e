#include "agent/otlp.hpp"

#include "live/clock.hpp"

namespace vramtrack::agent {

Result<std::unique_ptr<act::OtlpPush>> open_otlp(OtlpResource resource,
                                                 std::function<std::shared_ptr<const std::string>()> text,
                                                 std::function<void(const std::string&)> log) {
  auto target = act::otlp_target();
  if (!target) return fail(target.error());
  if (!*target) return nullptr;
  resource.attributes = (*target)->attributes;
  if (!(*target)->service.empty()) resource.attributes["service.name"] = (*target)->service;
  const auto body = [resource, text = std::move(text)]() mutable {
    const auto now = text();
    resource.now = time_of_day();
    return now ? otlp_json(*now, resource) : std::string();
  };
  return act::OtlpPush::start(std::move(**target), body, std::move(log));
}

}  // namespace vramtrack::agent
