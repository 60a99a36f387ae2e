#include "act/limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/format.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

std::string words(const Limit& limit, const ActAhead& act, std::size_t done) {
  switch (limit.of) {
    case Limit::Of::acts:
      return fmt::format("{} actions were taken within the last hour ({})", done, limit.setting);
    case Limit::Of::acts_on_node:
      return fmt::format("{} actions were taken on {} within the last hour ({})", done, printable(act.node),
                         limit.setting);
    case Limit::Of::restarts:
      return fmt::format("giving up: {} was started again {} times within 24 hours and leaks again ({})",
                         printable(act.work), done, limit.setting);
    case Limit::Of::nodes:
      return fmt::format("{} would be node number {} within {}, but only {} allowed", printable(act.node), done + 1,
                         format_span(limit.window_s), limit.most == 1 ? "1 is" : fmt::format("{} are", limit.most));
  }
  return {};
}

}  // namespace

std::size_t Limits::count(const Limit& limit, const ActAhead& act, Timestamp now) const {
  std::set<std::string_view> nodes;
  std::size_t acts = 0;
  for (const Done& done : done_) {
    if (seconds_between(done.time, now) >= limit.window_s) continue;
    if (done.work.empty() != (limit.of != Limit::Of::restarts)) continue;
    if (limit.of == Limit::Of::acts_on_node && done.node != act.node) continue;
    if (limit.of == Limit::Of::restarts && done.work != act.work) continue;
    ++acts;
    if (!done.node.empty()) nodes.insert(done.node);
  }
  if (limit.of != Limit::Of::nodes) return acts;
  return nodes.contains(act.node) ? 0 : nodes.size();  // a machine that already counts adds none
}

Limits::Answer Limits::ask(const ActAhead& act, Timestamp now) {
  const auto forbidding = [&](const std::vector<Limit>& limits) -> Answer {
    for (const Limit& limit : limits) {
      if (limit.of == Limit::Of::restarts && act.work.empty()) continue;
      const std::size_t done = count(limit, act, now);
      if (done >= static_cast<std::size_t>(std::max<std::int64_t>(0, limit.most)))
        return {words(limit, act, done), limit.then, limit.then == Limit::Then::open_breaker};
    }
    return {};
  };
  Answer answer = forbidding(own_);
  if (!answer.why.empty()) return answer;
  if (breaker_)
    return {fmt::format("the circuit breaker has been open since {}: {}; 'vramtrack actuate reset --by NAME' closes it",
                        iso8601(breaker_->since), breaker_->why)};
  answer = forbidding(more_);
  if (!answer.opens) return answer;
  breaker_ = Breaker{now, answer.why};
  answer.why = "the circuit breaker opens: " + answer.why;
  return answer;
}

void Limits::forget_old(Timestamp now) {
  const double kept_s = longest_window_s();
  std::erase_if(done_, [&](const Done& done) { return seconds_between(done.time, now) >= kept_s; });
}

void Limits::close_breaker() {
  breaker_.reset();
  for (Done& done : done_) done.node.clear();
}

const Limit* Limits::breaker_limit() const {
  const auto at = std::find_if(more_.begin(), more_.end(),
                               [](const Limit& limit) { return limit.then == Limit::Then::open_breaker; });
  return at == more_.end() ? nullptr : &*at;
}

std::size_t Limits::nodes_acted_on(Timestamp now) const {
  const Limit* limit = breaker_limit();
  return limit == nullptr ? 0 : count(*limit, {}, now);
}

double Limits::longest_window_s() const {
  double longest_s = 0;
  for (const auto* limits : {&own_, &more_})
    for (const Limit& limit : *limits) longest_s = std::max(longest_s, limit.window_s);
  return longest_s;
}

}  // namespace vramtrack::act
