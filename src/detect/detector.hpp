// Detector: one opinion about one series, fed sample by sample. Pure: no I/O, no clock, no look-ahead; the same samples
// always give the same findings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

class Experience;
class Facts;
class Siblings;

/// The confidence before anything is known. Not zero: there may be a leak.
inline constexpr double kUnknownConfidence = 0.02;

/// Earlier runs of a series that grew until memory ran out.
struct Precedent {
  int ran_out = 0;
  int ended = 0;                  ///< all runs that have ended, including these
  double growth_bytes_per_s = 0;  ///< their median growth
};

/// The basis, besides its curve, on which a growth was judged a leak. In rising order: std::max is the strongest.
enum class Basis : std::uint8_t { curve, siblings, runs, lifetimes, allocator };

/// The growth that is followed now, whatever explains it.
struct FollowedRise {
  std::uint32_t number = 0;  ///< counts the growths of a series: another number, another growth
  Timestamp since{};
  double from_bytes = 0;
};

/// One instance per series; memory bounded whatever the length of the series. Not thread-safe.
class Detector {
 public:
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;
  virtual ~Detector() = default;

  /// Takes the next sample. Times must not decrease (the engine ensures this); an equal time replaces
  /// the value before it. O(1) amortised.
  virtual void observe(Timestamp time, double used_bytes) = 0;

  /// The level at which memory ends for this series, in its own bytes (of a device: its capacity; of a process: what it
  /// holds now plus the device's free memory at its peaks). May change between samples; nullopt if unknown: there is
  /// then no ETA.
  virtual void set_limit(std::optional<double> limit_bytes) = 0;

  /// What is known of the series besides its samples, updated as that changes; it must outlive the detector. Null, and
  /// before the first call: nothing is known. A detector may ignore it.
  virtual void set_experience(const Experience* /*experience*/) {}

  /// The series of other ranks or replicas of its job, with the same rules.
  virtual void set_siblings(const Siblings* /*siblings*/) {}

  /// What its program reads, and how busy it is, with the same rules.
  virtual void set_facts(const Facts* /*facts*/) {}

  /// Its program began at `time`, before the first sample that the detector got, when `bytes` were in use.
  /// Call it after that sample.
  virtual void set_begin(Timestamp /*time*/, double /*bytes*/) {}

  /// How earlier runs of the series ended; nullopt, and before the first call: none ran out of memory.
  virtual void set_precedent(const std::optional<Precedent>& /*precedent*/) {}

  /// Whether a leak is confirmed after the last sample; whether that raises an alert is decided by engine/paging.hpp.
  /// Cheap: called for every sample.
  [[nodiscard]] virtual bool alerting() const = 0;

  /// Whether it suspects a leak that it may not have confirmed yet: finding().stage. Also cheap.
  [[nodiscard]] virtual bool suspecting() const { return alerting(); }

  /// nullopt: nothing rises, or the detector does not follow the rise. Cheap: called for every sample.
  [[nodiscard]] virtual std::optional<FollowedRise> rise() const { return std::nullopt; }

  /// What the finding is based on. May cost microseconds.
  [[nodiscard]] virtual Basis basis() const { return Basis::curve; }

  /// The series is a recording and has ended: confirms a suspicion that is certain enough. Returns whether it did.
  virtual bool confirm_at_end() { return false; }

  /// For a leak that it suspects or has confirmed by the lows of cycles: the time between two lows; 0: by every sample.
  [[nodiscard]] virtual double cycle_s() const { return 0; }

  /// An upper bound on how much a suspected or confirmed rise still rises, if its rate is certainly falling; nullopt if
  /// it is not. May cost microseconds.
  [[nodiscard]] virtual std::optional<double> most_left_bytes() const { return std::nullopt; }

  /// Whether the present rise is a load, or may be one as far as is known: if memory runs out, the program did not fit.
  [[nodiscard]] virtual bool may_be_loading() const { return false; }

  /// Whether more than the curve shows that a rise of `net_bytes` since `start` is not a leak, or may be none: a load,
  /// memory that is released, earlier runs or siblings.
  [[nodiscard]] virtual bool denies(Timestamp /*start*/, double /*net_bytes*/) const { return false; }

  /// The opinion after the last sample. May cost microseconds.
  [[nodiscard]] virtual Finding finding() const = 0;

  /// After `alerting()` went from true to false: why, and whether the memory was released.
  [[nodiscard]] virtual AlertEnd last_end() const { return AlertEnd::withdrawn; }
  [[nodiscard]] virtual std::string last_end_reason() const { return {}; }
  /// Whether more than the curve showed it: it then ends the alert even near a full memory.
  [[nodiscard]] virtual bool last_end_is_sure() const { return false; }

  /// Every gate and figure behind the finding, one line each, for --explain.
  [[nodiscard]] virtual std::vector<std::string> explain() const { return {}; }
};

/// A detector as registered in detectors.def.
struct DetectorInfo {
  std::string_view name;  ///< as in detectors.def
  std::string_view help;  ///< one line: what it looks for
  /// `figures` formats the figures of its sentences; it must outlive the detector.
  std::unique_ptr<Detector> (*make)(const DetectionConfig& config, const Scale& figures);
};

/// The registered detectors in the order of detectors.def. The first is the default.
std::span<const DetectorInfo* const> detectors();
/// Detectors whose findings are kept beside the verdict when another one decides, in the same order.
std::span<const DetectorInfo* const> dissenters();
/// nullptr for an unknown name.
const DetectorInfo* find_detector(std::string_view name);

}  // namespace vramtrack
