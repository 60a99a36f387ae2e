// SiteTable: finds the call sites of a process from the records of their allocations.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/address_table.hpp"
#include "trace/call_site.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// probe::info_of() in constant time; null if there is no such call.
const probe::CallInfo* call_info(probe::Call call);

class SiteTable {
 public:
  /// The number of the site that allocates, which may be a new one. REQUIRES: call_info(). O(1).
  std::uint32_t number_of(const probe::Slot& slot) {
    const std::uint64_t key = slot.head & kKey;
    if (key != last_key_) last_ = find_or_add(key, slot);
    last_key_ = key;
    return last_;
  }
  CallSite& operator[](std::uint32_t number) { return all_[number]; }
  std::vector<CallSite>& all() { return all_; }
  [[nodiscard]] const std::vector<CallSite>& all() const { return all_; }

 private:
  static constexpr std::uint64_t kKey = 0xffffffff00ffff00;  ///< mask of a slot's head: call, device and stack
  std::uint32_t find_or_add(std::uint64_t key, const probe::Slot& slot);

  std::vector<CallSite> all_;
  IdTable ids_;
  std::uint64_t last_key_ = ~std::uint64_t{0};
  std::uint32_t last_ = 0;
};

}  // namespace vramtrack::trace
