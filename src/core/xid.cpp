#include "core/xid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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

/// Whether `line` has the word: not "nonfatal", "non-fatal" or a part of a name such as GPU_FATAL_TIMEOUT.
bool says_fatal(std::string_view line) {
  constexpr std::string_view kWord = "fatal";
  std::string low(line);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is_letter = [&](std::size_t at) {
    return at < low.size() && (low[at] == '_' || std::isalnum(static_cast<unsigned char>(low[at])) != 0);
  };
  for (std::size_t at = low.find(kWord); at != std::string::npos; at = low.find(kWord, at + 1)) {
    const bool is_word = (at == 0 || !is_letter(at - 1)) && !is_letter(at + kWord.size());
    if (is_word && !std::string_view(low).substr(0, at).ends_with("non-")) return true;
  }
  return false;
}

}  // namespace

std::span<const XidInfo> known_xids() {
  return kXids;
}

const XidInfo* find_xid(std::uint64_t code) {
  const auto* const at = std::lower_bound(std::begin(kXids), std::end(kXids), code,
                                          [](const XidInfo& info, std::uint64_t wanted) { return info.code < wanted; });
  return at != std::end(kXids) && at->code == code ? at : nullptr;
}

XidSeverity xid_severity(std::uint64_t code, std::string_view line) {
  const XidInfo* const info = find_xid(code);
  const bool is_programs = info != nullptr && info->cause == XidCause::application;
  if (!is_programs && says_fatal(line)) return XidSeverity::critical;
  return info != nullptr ? info->severity : XidSeverity::warning;
}

std::string_view xid_advice(std::uint64_t code) {
  const XidInfo* const info = find_xid(code);
  return info != nullptr ? info->advice
                         : "look it up in NVIDIA's list of XID errors (docs.nvidia.com/deploy/xid-errors)";
}

std::string describe_xid(std::uint64_t code) {
  if (const XidInfo* info = find_xid(code)) return fmt::format("XID {}: {}", code, info->meaning);
  return fmt::format("XID {}: see NVIDIA's list of XID errors", code);
}

}  // namespace vramtrack
