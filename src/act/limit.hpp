// Limits: how much may be done, to all, to one machine, to one piece of work and to how many machines. They are a list,
// and a step that changes something is taken only if every one of them allows it. Pure.
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
    restarts,      ///< how often the same work was started again
    nodes,         ///< machines that were acted on, this one included
  };
  /// What becomes of a step that is one too many.
  enum class Then : std::uint8_t {
    wait,          ///< it is taken when it fits
    refuse,        ///< its ladder does not continue
    open_breaker,  ///< no step is taken anywhere until a person closes the breaker
  };
  Of of = Of::acts;
  Then then = Then::wait;
  std::int64_t most = 0;
  double window_s = 3600;
  std::string_view setting;  ///< that sets it, for people
};

/// The circuit breaker, while it is open.
struct Breaker {
  Timestamp since;
  std::string why;
};

/// A step that is about to be taken.
struct ActAhead {
  std::string node;  ///< of the subject; empty: this machine
  std::string work;  ///< that it starts again; empty: none
};

/// What was done, as far as a limit needs it. Copies are independent.
class Limits {
 public:
  /// The limits of every program that acts, which are asked first; and those of a fleet, after the breaker.
  void use(std::vector<Limit> own) { own_ = std::move(own); }
  void add(std::vector<Limit> more) { more_ = std::move(more); }

  /// Why the step may not be taken now; `then` of the limit that forbids it, and `opens` if that opens the breaker.
  struct Answer {
    std::string why;  ///< empty: it may
    Limit::Then then = Limit::Then::wait;
    bool opens = false;
  };
  Answer ask(const ActAhead& act, Timestamp now);
  /// It is taken.
  void count_act(Timestamp time, const std::string& node) { done_.push_back({time, node, {}}); }
  /// Work was started again.
  void count_restart(Timestamp time, const std::string& work) { done_.push_back({time, {}, work}); }
  void forget_old(Timestamp now);

  [[nodiscard]] const std::optional<Breaker>& breaker() const { return breaker_; }
  void open_breaker(Breaker breaker) { breaker_ = std::move(breaker); }
  /// Earlier acts no longer count, or it would open again at once.
  void close_breaker();

  /// The limit that opens the breaker, and how many machines count now; nullptr: there is none.
  [[nodiscard]] const Limit* breaker_limit() const;
  [[nodiscard]] std::size_t nodes_acted_on(Timestamp now) const;
  /// For this long an act counts.
  [[nodiscard]] double longest_window_s() const;

 private:
  struct Done {
    Timestamp time;
    std::string node;
    std::string work;  ///< of a restart; empty: an act
  };
  [[nodiscard]] std::size_t count(const Limit& limit, const ActAhead& act, Timestamp now) const;

  std::vector<Limit> own_;
  std::vector<Limit> more_;
  std::deque<Done> done_;
  std::optional<Breaker> breaker_;
};

}  // namespace vramtrack::act
