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

/// Confidence before anything is known. Not zero: a leak may be there.
inline constexpr double kUnknownConfidence = 0.02;

/// Earlier runs of a series that grew until memory ran out.
struct Precedent {
  int ran_out = 0;
  int ended = 0;                  ///< all that have ended, including these
  double growth_bytes_per_s = 0;  ///< their median
};

/// What has decided that a growth is a leak, besides its curve. In rising order: std::max is what says most.
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

  /// Takes the next sample. Times must not decrease (the engine sees to it); an equal time replaces
  /// the value before it. O(1) amortised.
  virtual void observe(Timestamp time, double used_bytes) = 0;

  /// The level at which memory ends for this series, in its own bytes (a device: its capacity; a process: what it holds
  /// now plus what the device has free at its peaks). May change between samples; nullopt if unknown: then there is no
  /// ETA.
  virtual void set_limit(std::optional<double> limit_bytes) = 0;

  /// What is known of the series besides its samples, updated as that changes; it must outlive the detector. Null, and
  /// before the first call: nothing is known. A detector may ignore it.
  virtual void set_experience(const Experience* /*experience*/) {}

  /// The series of other ranks or replicas of its job, likewise.
  virtual void set_siblings(const Siblings* /*siblings*/) {}

  /// What its program reads, and how busy it is, likewise.
  virtual void set_facts(const Facts* /*facts*/) {}

  /// Its program began at `time`, when `bytes` were in use, which is before the first sample that the detector got.
  /// Call it after that sample.
  virtual void set_begin(Timestamp /*time*/, double /*bytes*/) {}

  /// How earlier runs of the series ended; nullopt, and before the first call: none ran out of memory.
  virtual void set_precedent(const std::optional<Precedent>& /*precedent*/) {}

  /// Whether a leak is confirmed after the last sample; whether that raises an alert is decided by engine/paging.hpp.
  /// Cheap: called for every sample.
  [[nodiscard]] virtual bool alerting() const = 0;

  /// Whether it suspects a leak that it may not have confirmed yet: finding().stage. Cheap as well.
  [[nodiscard]] virtual bool suspecting() const { return alerting(); }

  /// nullopt: nothing rises, or the detector does not follow what does. Cheap: called for every sample.
  [[nodiscard]] virtual std::optional<FollowedRise> rise() const { return std::nullopt; }

  /// What the finding is based on. May cost microseconds.
  [[nodiscard]] virtual Basis basis() const { return Basis::curve; }

  /// The series is a recording and has ended: confirms a suspicion that is certain enough. Returns whether it did.
  virtual bool confirm_at_end() { return false; }

  /// Of what it suspects or has confirmed by the lows of cycles: the time from one low to the next; 0: by every sample.
  [[nodiscard]] virtual double cycle_s() const { return 0; }

  /// How much what it suspects or has confirmed still rises at most, where its rate falls for certain; nullopt: it does
  /// not. May cost microseconds.
  [[nodiscard]] virtual std::optional<double> most_left_bytes() const { return std::nullopt; }

  /// Whether what rises now is a load, or may be one as far as is known: if memory runs out, the program did not fit.
  [[nodiscard]] virtual bool may_be_loading() const { return false; }

  /// Whether more than the curve shows that a rise of `net_bytes` since `start` is not a leak, or may be none: a load,
  /// what is released, what earlier runs or siblings did.
  [[nodiscard]] virtual bool denies(Timestamp /*start*/, double /*net_bytes*/) const { return false; }

  /// The opinion after the last sample. May cost microseconds.
  [[nodiscard]] virtual Finding finding() const = 0;

  /// After `alerting()` went from true to false: why, and whether the memory came back.
  [[nodiscard]] virtual AlertEnd last_end() const { return AlertEnd::withdrawn; }
  [[nodiscard]] virtual std::string last_end_reason() const { return {}; }
  /// Whether more than the curve showed it: near a full memory as well, it ends what people were notified of.
  [[nodiscard]] virtual bool last_end_is_sure() const { return false; }

  /// Every gate and figure behind the finding, one line each, for --explain.
  [[nodiscard]] virtual std::vector<std::string> explain() const { return {}; }
};

/// A detector as registered in detectors.def.
struct DetectorInfo {
  std::string_view name;  ///< as in detectors.def
  std::string_view help;  ///< one line: what it looks at
  /// `figures` writes the figures of its sentences; it must outlive the detector.
  std::unique_ptr<Detector> (*make)(const DetectionConfig& config, const Scale& figures);
};

/// The registered detectors in the order of detectors.def. The first is the default.
std::span<const DetectorInfo* const> detectors();
/// Those whose opinions are kept beside the verdict when another one decides, in the same order.
std::span<const DetectorInfo* const> dissenters();
/// nullptr for an unknown name.
const DetectorInfo* find_detector(std::string_view name);

}  // namespace vramtrack
