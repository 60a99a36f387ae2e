// Regimes: the levels that a series has reached and left. A fall by a fifth begins a new regime; what came before is
// evidence about the program, not a ceiling on it (docs/detectors/judge.md, section 3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vramtrack {

/// The regimes of one time scale, by the floors of its buckets, in fixed memory. Times are slots: widths of a bucket.
class Regimes {
 public:
  /// Takes the next bucket's floor. Returns whether a new regime has begun. O(1).
  bool push(std::int32_t slot, float floor_bytes);
  /// The series fell by more than any regime can show: the next bucket begins a new one.
  void fall();
  void clear() { *this = Regimes{}; }

  /// The first slot of the present regime.
  [[nodiscard]] std::int32_t begins() const { return begins_; }
  /// How often the series has fallen.
  [[nodiscard]] int falls() const { return falls_; }
  /// The chance that a series that continues falling as often as it did before `until` does not fall for `slots`: with
  /// a Poisson rate of which nothing else is known, (1 + slots / seen)^-(falls + 1) (Gelman et al., Bayesian Data
  /// Analysis, 2013, section 2.6).
  [[nodiscard]] double chance_of_no_fall(std::int32_t until, double slots) const;
  /// The highest level of an earlier regime that counts against a rise that has lasted for `slots`; 0 if none does. A
  /// level counts while the rise may be another climb to it, as in a cycle; and, if the series falls often, until
  /// the rise has outlasted three times the mean time between falls.
  [[nodiscard]] double held_against(double slots) const;

 private:
  /// How a regime reached its highest level.
  struct Ascent {
    float high_bytes = 0;
    std::int32_t climb_slots = 0;  ///< from the last bucket near the lowest level to the first near the highest
  };
  static constexpr std::size_t kAscents = 4;

  void begin(std::int32_t slot, float floor_bytes);
  void record();

  std::array<Ascent, kAscents> ascents_{};  ///< the latest first; the last one represents itself and all earlier ones
  std::size_t size_ = 0;
  bool any_ = false;         ///< whether a bucket was seen
  bool has_fallen_ = false;  ///< by fall(): the next bucket begins a regime
  std::int32_t first_ = 0;
  std::int32_t begins_ = 0;
  std::int32_t last_fall_ = 0;
  std::int32_t low_until_ = 0;  ///< last slot near the lowest level
  std::int32_t high_from_ = 0;  ///< first slot near the highest level
  float low_bytes_ = 0;
  float high_bytes_ = 0;
  float near_high_bytes_ = 0;  ///< at `high_from_`
  int falls_ = 0;
};

}  // namespace vramtrack
