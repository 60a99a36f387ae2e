// Any bytes as the queue of notifications: read without fault, and what is read is saved and read the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "act/outbox.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using vramtrack::act::Outbox;
  const vramtrack::Timestamp now{std::chrono::hours{500000}};
  Outbox outbox({}, {"webhook", "exec"});
  if (!outbox.load({reinterpret_cast<const char*>(data), size}, now)) return 0;
  outbox.tick(now);
  static_cast<void>(outbox.wake());
  const std::string text = outbox.save();
  Outbox again({}, {"webhook", "exec"});
  if (!again.load(text, now) || again.save() != text) std::abort();
  for (const auto& message : outbox.messages()) {
    static_cast<void>(webhook_body(message, {}));
    static_cast<void>(slack_body(message, {}));
  }
  return 0;
}
