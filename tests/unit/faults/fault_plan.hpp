// FaultPlan: which of the calls that a shim sees fails. As in SQLite's own tests: the Nth call fails, once or from then
// on, for N = 1, 2, ... until a run ends with no call left to fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

// Sanitizers replace the same calls as the shims.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VRAMTRACK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VRAMTRACK_SANITIZED 1
#endif
#endif

namespace vramtrack::testing {

/// One per shim; calls may come from any thread.
class FaultPlan {
 public:
  enum class How : std::uint8_t { once, from_then_on };

  /// From now on, the `nth` call (from 1) that counts fails. `kinds`: a mask of the shim's kinds of calls.
  void arm(std::uint32_t kinds, std::int64_t nth, How how) {
    seen_ = 0;
    injected_ = 0;
    nth_ = nth;
    how_ = how;
    kinds_ = kinds;
  }
  void disarm() { kinds_ = 0; }
  /// While false, no call counts, so that a test's own calls do not fail.
  void let(bool count) { counts_ = count; }
  /// The shim calls this at each call.
  bool fails(std::uint32_t kind) {
    if ((kinds_ & kind) == 0 || !counts_) return false;
    const std::int64_t n = ++seen_;
    const bool now = n == nth_ || (n > nth_ && how_ == How::from_then_on);
    if (now) ++injected_;
    return now;
  }
  [[nodiscard]] std::int64_t injected() const { return injected_; }
  [[nodiscard]] std::int64_t seen() const { return seen_; }

 private:
  std::atomic<std::uint32_t> kinds_{0};
  std::atomic<bool> counts_{true};
  std::atomic<std::int64_t> seen_{0};
  std::atomic<std::int64_t> injected_{0};
  std::atomic<std::int64_t> nth_{0};
  std::atomic<How> how_{How::once};
};

/// Arms the plan while it lives.
class Armed {
 public:
  Armed(FaultPlan& plan, std::uint32_t kinds, std::int64_t nth, FaultPlan::How how) : plan_(plan) {
    plan_.arm(kinds, nth, how);
  }
  ~Armed() { plan_.disarm(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  FaultPlan& plan_;
};

/// The result of `call`, the only part of a test in which calls count.
template <class Call>
auto under(FaultPlan& plan, Call call) {
  struct Counting {
    explicit Counting(FaultPlan& p) : plan(p) { plan.let(true); }
    ~Counting() { plan.let(false); }
    FaultPlan& plan;
  } const counting(plan);
  return call();
}

/// `make test` tries some of the calls, spread over all of them; VRAMTRACK_FAULTS=all tries each one.
inline bool every_call() {
  const char* const wish = std::getenv("VRAMTRACK_FAULTS");
  return wish != nullptr && std::string(wish) == "all";
}
/// The number of rounds of a random test: VRAMTRACK_FAULT_ROUNDS, else `usual`.
inline int fault_rounds(int usual) {
  const char* const wish = std::getenv("VRAMTRACK_FAULT_ROUNDS");
  return wish != nullptr ? std::atoi(wish) : usual;
}
/// The call to fail after the `n`th: the first forty one by one, then with growing steps.
inline std::int64_t after(std::int64_t n) {
  return every_call() || n < 40 ? n + 1 : n + 1 + n / 12;
}

}  // namespace vramtrack::testing
