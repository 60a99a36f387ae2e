// Any bytes as what Alertmanager posts: an error that says what is wrong, or alerts that make cases which come back
// from the state as they were, and names of nodes that are one node each. Likewise as the state, the summary and a
// reset.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "actuate/documents.hpp"
#include "actuate/template.hpp"
#include "actuate/webhook.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack::actuate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(parse_reset(text));
  static_cast<void>(parse_version(text));
  if (const auto summary = parse_summary(text)) {
    if (summary_words(*summary).empty() || summary_metrics(*summary).empty()) std::abort();
  }
  if (const auto state = parse_state(text)) {
    const std::string written = state_json(*state);
    if (const auto again = parse_state(written); !again || state_json(*again) != written) std::abort();
  }
  const auto webhook = parse_webhook(text);
  if (!webhook) {
    if (webhook.error().message.empty()) std::abort();
    return 0;
  }
  State state;
  for (const WebhookAlert& alert : webhook->alerts) {
    Case one;
    one.fingerprint = alert.fingerprint;
    one.starts_at = alert.starts_at;
    one.labels = alert.labels;
    state.cases[one.key()] = one;
    const auto node = node_name("{Hostname}", alert.labels);
    if (node && node->find_first_of("[],") != std::string::npos) std::abort();
  }
  if (const auto again = parse_state(state_json(state)); !again || again->cases.size() != state.cases.size())
    std::abort();
  return 0;
}
