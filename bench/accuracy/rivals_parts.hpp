// What the rivals share: an evaluation each minute of trace time, and their factories. For bench/accuracy/rivals*.cpp
// alone; everybody else includes rivals.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/units.hpp"
#include "rivals.hpp"

namespace vramtrack::accuracy {

/// A sample kept.
struct Reading {
  double t_s = 0;
  double y = 0;
};

/// The number of the stretch of `width_s` that holds `t_s`.
inline std::int64_t slot_of(double t_s, double width_s) {
  return static_cast<std::int64_t>(std::floor(t_s / width_s));
}

/// A rule that a server evaluates by the clock: here at the first sample of each minute, over what came until then.
class Polled : public Rival {
 public:
  void observe(double t_s, double used_bytes) final {
    const bool replaces = started_ && t_s == last_t_s_;
    const bool due = !started_ || slot_of(t_s, kEverySeconds) > slot_of(evaluated_t_s_, kEverySeconds);
    started_ = true;
    last_t_s_ = t_s;
    take(t_s, used_bytes, replaces);
    if (due) {
      evaluated_t_s_ = t_s;
      before_ = alarm_;
    } else if (!replaces || t_s != evaluated_t_s_) {
      return;
    }
    // A value that replaces the one just evaluated is evaluated from the state before it.
    alarm_ = evaluate(t_s, used_bytes, before_);
  }

  [[nodiscard]] bool alarming() const final { return alarm_.on; }

  [[nodiscard]] std::optional<double> oom_in_s() const final {
    if (!alarm_.on || !alarm_.full_at_s) return std::nullopt;
    return std::fmax(*alarm_.full_at_s - last_t_s_, 0);
  }

 protected:
  struct Alarm {
    bool on = false;
    std::optional<double> true_since_s;  ///< the condition, for rules that must hold for a while
    std::optional<double> full_at_s;     ///< when the memory ends, where the rule says
  };

  static constexpr double kEverySeconds = 60;

  /// Each sample; `replaces`: it has the time of the one before. Cheap.
  virtual void take(double t_s, double used_bytes, bool replaces) = 0;
  /// The state after an evaluation at `t_s`, of the sample just taken. Depends on `before` and the samples alone.
  [[nodiscard]] virtual Alarm evaluate(double t_s, double used_bytes, const Alarm& before) = 0;

 private:
  bool started_ = false;
  double last_t_s_ = 0;
  double evaluated_t_s_ = 0;
  Alarm before_;
  Alarm alarm_;
};

// rivals_gpulse.cpp
std::unique_ptr<Rival> make_gpulse_linear(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_linear_low(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_linear_bare(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_linear_bare_low(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_spike(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_spike_followed(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_composite(double capacity_bytes);
std::unique_ptr<Rival> make_gpulse_composite_followed(double capacity_bytes);
// rivals_gpumemprof.cpp
std::unique_ptr<Rival> make_gpumemprof_trend(double capacity_bytes);
std::unique_ptr<Rival> make_gpumemprof_leak(double capacity_bytes);
// rivals_prometheus.cpp
std::unique_ptr<Rival> make_predict_linear(double capacity_bytes);
std::unique_ptr<Rival> make_predict_linear_for10m(double capacity_bytes);
std::unique_ptr<Rival> make_deriv_for10m(double capacity_bytes);
std::unique_ptr<Rival> make_deriv_low_for10m(double capacity_bytes);
std::unique_ptr<Rival> make_static_90(double capacity_bytes);
// rivals_published.cpp
std::unique_ptr<Rival> make_node_mixin_warning(double capacity_bytes);
std::unique_ptr<Rival> make_node_mixin_critical(double capacity_bytes);
std::unique_ptr<Rival> make_kubernetes_mixin(double capacity_bytes);
std::unique_ptr<Rival> make_gpu_leak_1h(double capacity_bytes);
std::unique_ptr<Rival> make_gpu_oom_30m(double capacity_bytes);
std::unique_ptr<Rival> make_gpu_leak_deriv(double capacity_bytes);
std::unique_ptr<Rival> make_elastic_90(double capacity_bytes);
std::unique_ptr<Rival> make_gpu_85_for5m(double capacity_bytes);
std::unique_ptr<Rival> make_gpu_95_for2m(double capacity_bytes);
std::unique_ptr<Rival> make_hami_90_for10m(double capacity_bytes);
std::unique_ptr<Rival> make_vllm_98_for10m(double capacity_bytes);
// rivals_netdata.cpp, rivals_coroot.cpp, rivals_traceml.cpp
std::unique_ptr<Rival> make_netdata(double capacity_bytes);
std::unique_ptr<Rival> make_coroot(double capacity_bytes);
std::unique_ptr<Rival> make_traceml(double capacity_bytes);

}  // namespace vramtrack::accuracy
