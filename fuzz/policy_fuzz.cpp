// Any bytes as the policies of a configuration: an error that says what is wrong, or rules that are described in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "act/policy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policies = vramtrack::act::parse_policies({reinterpret_cast<const char*>(data), size}, "policy.toml");
  if (!policies) {
    if (policies.error().message.empty()) std::abort();
    return 0;
  }
  const vramtrack::act::Subject subject;
  for (const vramtrack::act::Policy& policy : policies->rules) {
    if (explain(policy).empty()) std::abort();
    static_cast<void>(why_not(policy, {}, subject));
  }
  return 0;
}
