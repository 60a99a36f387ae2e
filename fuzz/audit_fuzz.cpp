// Any bytes as the record of acts: lines are read or refused, what is read is written and read the same, and a ladder
// takes up whatever an earlier run may have left.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "act/audit.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack::act;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<AuditEntry> entries;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
    auto entry = parse_audit(line);
    if (!entry) continue;
    const std::string text = audit_json(*entry);
    if (const auto again = parse_audit(text); !again || audit_json(*again) != text) std::abort();
    static_cast<void>(note_of(*entry));
    entries.push_back(std::move(*entry));
  }
  Ladder ladder({}, {}, "user");
  static_cast<void>(recover(entries, "boot", vramtrack::Timestamp{std::chrono::hours{500000}}, ladder));
  return 0;
}
