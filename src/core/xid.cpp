#include "core/xid.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

constexpr XidInfo kXids[] = {
#define VRAMTRACK_XID(code, cause, severity, meaning, advice) \
  {code, XidCause::cause, XidSeverity::severity, meaning, advice},
#include "core/xid.def"
#undef VRAMTRACK_XID
};

static_assert(std::is_sorted(std::begin(kXids), std::end(kXids),
                             [](const XidInfo& a, const XidInfo& b) { return a.code <= b.code; }),
              "xid.def is in the order of the numbers, each once");

}  // namespace

std::span<const XidInfo> known_xids() {
  return kXids;
}

const XidInfo* find_xid(std::uint64_t code) {
  const auto* const at = std::lower_bound(std::begin(kXids), std::end(kXids), code,
                                          [](const XidInfo& info, std::uint64_t wanted) { return info.code < wanted; });
  return at != std::end(kXids) && at->code == code ? at : nullptr;
}

std::string describe_xid(std::uint64_t code) {
  if (const XidInfo* info = find_xid(code)) return fmt::format("XID {}: {}", code, info->meaning);
  return fmt::format("XID {}: see NVIDIA's list of XID errors", code);
}

}  // namespace vramtrack
