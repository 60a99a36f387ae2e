#include "trace/trace_moments.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/number_text.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kMostMarks = 10'000;

}  // namespace

Result<MomentName> parse_moment(const std::string& text) {
  MomentName out;
  if (text.empty()) return fail("expected the name of a mark or a time");
  if (text.ends_with('s') && (text[0] >= '0' && text[0] <= '9')) {
    const auto seconds = parse_number<double>(std::string_view(text).substr(0, text.size() - 1));
    if (seconds && *seconds >= 0 && *seconds < 1e9) {
      out.time_us = static_cast<std::uint64_t>(std::llround(*seconds * 1e6));
      return out;
    }
  }
  const std::size_t at = text.rfind('#');
  out.mark = text.substr(0, at);
  if (at == std::string::npos) return out;
  out.number = parse_number<std::uint64_t>(std::string_view(text).substr(at + 1)).value_or(0);
  if (out.number == 0 || out.mark.empty())
    return fail(fmt::format("expected NAME, NAME#NUMBER or SECONDSs, not '{}'", text));
  return out;
}

std::vector<Held> held_by(const std::vector<CallSite>& sites) {
  std::vector<Held> out;
  out.reserve(sites.size());
  for (const CallSite& site : sites) out.push_back(site.live);
  return out;
}

void TraceMoments::take_until(std::uint64_t now_us, const std::vector<CallSite>& sites, std::int64_t live_bytes) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const auto& time_us = wanted_[i].time_us;
    if (time_us && *time_us <= now_us && !moments_[i])
      moments_[i] =
          TraceMark{fmt::format("{:.3f}s", static_cast<double>(*time_us) * 1e-6), *time_us, live_bytes, held_by(sites)};
  }
}

void TraceMoments::mark(const std::string& name, std::uint64_t time_us, const std::vector<CallSite>& sites,
                        std::int64_t live_bytes) {
  const std::uint64_t count = ++mark_counts_[name];
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    if (!wanted_[i].time_us && wanted_[i].mark == name && wanted_[i].number == count)
      moments_[i] = TraceMark{name, time_us, live_bytes, held_by(sites)};
  if (marks_.size() < kMostMarks) marks_.push_back({name, time_us, live_bytes, {}});
}

}  // namespace vramtrack::trace
