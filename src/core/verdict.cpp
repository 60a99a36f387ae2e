#include "core/verdict.hpp"

namespace vramtrack {
namespace {

template <std::size_t N, class E>
std::string_view name_of(const std::array<std::string_view, N>& names, E value) {
  return names[static_cast<std::size_t>(value)];
}

constexpr std::array<std::string_view, 9> kStates = {"steady",      "warming_up", "cycling", "growing",  "leaking",
                                                     "slow_growth", "spiked",     "falling", "too_short"};
constexpr std::array<std::string_view, 6> kPatterns = {"none",   "gradual_leak",  "sudden_spike",
                                                       "cyclic", "step_increase", "unknown"};
constexpr std::array<std::string_view, 3> kOutcomes = {"none", "stabilised", "still_growing"};
constexpr std::array<std::string_view, 4> kSeverities = {"ok", "watch", "warning", "critical"};
constexpr std::array<std::string_view, 4> kEnds = {"standing", "released", "process_ended", "withdrawn"};
constexpr std::array<std::string_view, 3> kNews = {"raised", "escalated", "cleared"};

}  // namespace

std::string_view to_string(State state) {
  return name_of(kStates, state);
}
std::string_view to_string(Pattern pattern) {
  return name_of(kPatterns, pattern);
}
std::string_view to_string(SpikeOutcome outcome) {
  return name_of(kOutcomes, outcome);
}
std::string_view to_string(Severity severity) {
  return name_of(kSeverities, severity);
}
std::string_view to_string(AlertEnd end) {
  return name_of(kEnds, end);
}
std::string_view to_string(AlertNews news) {
  return name_of(kNews, news);
}

}  // namespace vramtrack
