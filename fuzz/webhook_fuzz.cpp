// Any bytes as what Alertmanager posts: an error that says what is wrong, or alerts whose claims come back from the
// record as they were, and names of nodes that are one node each. Likewise as the summary and a reset.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "act/audit.hpp"
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
  const auto webhook = parse_webhook(text);
  if (!webhook) {
    if (webhook.error().message.empty()) std::abort();
    return 0;
  }
  for (const WebhookAlert& alert : webhook->alerts) {
    vramtrack::act::AuditEntry entry;
    entry.event = "claim";
    entry.claim = vramtrack::act::Claim{alert.fingerprint, alert.starts_at, alert.labels, {}, {}};
    entry.climb = entry.claim->id();
    const auto again = vramtrack::act::parse_audit(vramtrack::act::audit_json(entry));
    if (!again || !again->claim || again->claim->id() != entry.climb || again->claim->labels != alert.labels)
      std::abort();
    const auto node = node_name("{Hostname}", alert.labels);
    if (node && node->find_first_of("[],") != std::string::npos) std::abort();
  }
  return 0;
}
