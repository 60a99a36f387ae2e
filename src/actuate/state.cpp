#include "actuate/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/regular_file.hpp"
#include "report/view_json.hpp"

namespace vramtrack::actuate {
namespace {

constexpr double kHour_s = 3600;
constexpr std::size_t kMostBytes = 64U << 20U;

std::string path_in(const std::string& folder) {
  return folder + "/actuate.json";
}

}  // namespace

std::string Case::key() const {
  return fingerprint + '/' + exact_time(starts_at);
}

void trim(State& state) {
  while (state.cases.size() > kMostCases) {
    const auto last = std::min_element(state.cases.begin(), state.cases.end(), [](const auto& a, const auto& b) {
      if (a.second.is_closed != b.second.is_closed) return a.second.is_closed;
      return a.second.last_seen < b.second.last_seen;
    });
    state.cases.erase(last);
  }
}

void forget_dry_run(State& state) {
  if (!state.dry_run) return;
  for (auto& [key, one] : state.cases) {
    one.subject.clear();
    one.process = {};
    one.has_begun = one.is_closed = false;
    one.refusal.clear();
    one.why.clear();
  }
  state.acts.clear();
  state.breaker.reset();
}

Result<State> load_state(const std::string& folder) {
  const auto text = read_regular_file(path_in(folder), kMostBytes, Links::refused);
  if (!text) return fail(text.error());
  if (!*text) return State{};
  auto state = parse_state(**text);
  if (state) return state;
  return fail(fmt::format("{} cannot be used: {}; move it away, and look first at what was done (actuate.acts.jsonl)",
                          path_in(folder), state.error().message));
}

Status save_state(const State& state, const std::string& folder) {
  return replace_file(path_in(folder), state_json(state) + '\n');
}

std::int64_t nodes_allowed(const Limits& limits) {
  if (limits.share <= 0 || limits.fleet_nodes <= 0) return limits.nodes;
  const auto by_share =
      static_cast<std::int64_t>(std::floor(limits.share * static_cast<double>(limits.fleet_nodes) + 1e-9));
  return std::min(limits.nodes, std::max<std::int64_t>(1, by_share));
}

std::size_t nodes_acted_on(const State& state, const Limits& limits, Timestamp now) {
  std::set<std::string> nodes;
  for (const NodeAct& act : state.acts)
    if (seconds_between(act.time, now) < limits.window_s) nodes.insert(act.node);
  return nodes.size();
}

std::string take_act(State& state, const Limits& limits, const std::string& node, Timestamp now) {
  if (state.breaker)
    return fmt::format("the circuit breaker is open since {}: {}; 'vramtrack actuate reset --by NAME' closes it",
                       iso8601(state.breaker->since), state.breaker->why);
  const double kept_s = std::max(kHour_s, limits.window_s);
  std::erase_if(state.acts, [&](const NodeAct& act) { return seconds_between(act.time, now) >= kept_s; });
  const auto within = [&](double span_s) {
    return std::count_if(state.acts.begin(), state.acts.end(), [&](const NodeAct& act) {
      return act.node == node && seconds_between(act.time, now) < span_s;
    });
  };
  const std::int64_t allowed = nodes_allowed(limits);
  const std::size_t others = nodes_acted_on(state, limits, now);
  if (within(limits.window_s) == 0 && static_cast<std::int64_t>(others) + 1 > allowed) {
    state.breaker = OpenBreaker{
        now, fmt::format("{} would be node number {} within {}, but only {} allowed", printable(node), others + 1,
                         format_span(limits.window_s), allowed == 1 ? "1 is" : fmt::format("{} are", allowed))};
    return "the circuit breaker opens: " + state.breaker->why;
  }
  if (within(kHour_s) >= limits.acts_per_node_per_hour)
    return fmt::format("{} actions were taken on {} within the last hour (actuate.max-acts-per-node-per-hour)",
                       within(kHour_s), printable(node));
  state.acts.push_back({now, node});
  return {};
}

}  // namespace vramtrack::actuate
