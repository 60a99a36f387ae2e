// Limits: how much may be done in all, on one machine, to one piece of work, and on how many machines. They form a
// list, and a step that changes something is taken only if every limit allows it. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.hpp"

namespace vramtrack::act {

struct Limit {
  /// What is counted within the window.
  enum class Of : std::uint8_t {
    acts,          ///< every act
    acts_on_node,  ///< those on the subject's machine
    restarts,      ///< restarts of the same work
    nodes,         ///< machines that were acted on, including this one
  };
  /// What happens to a step that exceeds the limit.
  enum class Then : std::uint8_t {
    wait,          ///< it is taken when the limit allows it
    refuse,        ///< its ladder does not continue
    open_breaker,  ///< no step is taken anywhere until a person closes the breaker
  };
  Of of = Of::acts;
  Then then = Then::wait;
  std::int64_t most = 0;
  double window_s = 3600;
  std::string_view setting;  ///< the setting of this limit, for people
};

/// The circuit breaker, while it is open.
struct Breaker {
  Timestamp since;
  std::string why;
};

/// A step that is about to be taken.
struct ActAhead {
  std::string node;  ///< the subject's node; empty: this machine
  std::string work;  ///< the work that the step restarts; empty: none
};

/// The acts so far, as far as a limit needs them. Copies are independent.
class Limits {
 public:
  /// use(): the limits of every acting program, which are checked first. add(): those of a fleet, after the breaker.
  void use(std::vector<Limit> own) { own_ = std::move(own); }
  void add(std::vector<Limit> more) { more_ = std::move(more); }

  /// Why the step may not be taken now; `then` of the limit that forbids it, and `opens` if that opens the breaker.
  struct Answer {
    std::string why;  ///< empty: the step is allowed
    Limit::Then then = Limit::Then::wait;
    bool opens = false;
  };
  Answer ask(const ActAhead& act, Timestamp now);
  /// Counts a step that is taken.
  void count_act(Timestamp time, const std::string& node) { done_.push_back({time, node, {}}); }
  /// Counts a restart of work.
  void count_restart(Timestamp time, const std::string& work) { done_.push_back({time, {}, work}); }
  void forget_old(Timestamp now);

  [[nodiscard]] const std::optional<Breaker>& breaker() const { return breaker_; }
  void open_breaker(Breaker breaker) { breaker_ = std::move(breaker); }
  /// Earlier acts no longer count; otherwise the breaker would open again at once.
  void close_breaker();

  /// The limit that opens the breaker, and the number of machines that count now; nullptr: there is none.
  [[nodiscard]] const Limit* breaker_limit() const;
  [[nodiscard]] std::size_t nodes_acted_on(Timestamp now) const;
  /// How long an act counts at most.
  [[nodiscard]] double longest_window_s() const;

 private:
  struct Done {
    Timestamp time;
    std::string node;
    std::string work;  ///< for a restart; empty: an act
  };
  [[nodiscard]] std::size_t count(const Limit& limit, const ActAhead& act, Timestamp now) const;

  std::vector<Limit> own_;
  std::vector<Limit> more_;
  std::deque<Done> done_;
  std::optional<Breaker> breaker_;
};

}  // namespace vramtrack::act
