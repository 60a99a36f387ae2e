// Endings: how runs end, as shown by a fall of their device's memory, by the end of their process, or by both
// (docs/design/0009-endings.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/verdict.hpp"
#include "engine/end_kind.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// How and why an alert ends.
struct WhyOver {
  AlertEnd end = AlertEnd::withdrawn;
  std::string reason;
  std::optional<EndKind> kind{};  ///< if it ends with its run

  void write_to(Alert& alert) && {
    alert.ended = end;
    alert.end_reason = std::move(reason);
    alert.end_kind = kind;
  }
};

WhyOver with_its_run(const End& end, const Scale& scale);

/// The functions of the engine that Endings calls.
class EndingsEngine {
 public:
  [[nodiscard]] virtual Verdict verdict(const SeriesState& series) const = 0;
  [[nodiscard]] virtual bool wants_leak(const SeriesState& series) const = 0;
  /// Ends the leak of the series and its alert; does nothing if there is neither.
  virtual void clear(SeriesState& series, WhyOver why) = 0;
  /// Queues the alert of the series for another decision at the end of the tick.
  virtual void queue(SeriesState& series) = 0;
  /// The process has ended; calls process_ends().
  virtual void end(SeriesState& process, std::optional<EndKind> reported) = 0;
  /// Adds something that people should read once.
  virtual void add_notice(Notice notice) = 0;

 protected:
  ~EndingsEngine() = default;
};

/// Follows the falls of each device's total until it is known which of them were ends, and closes the device's runs.
/// The `total` of a device is DeviceState::total(). Not thread-safe.
///
///   notice_fall()  ->  falls  ->  conclude_falls()  ->  last_end, runs, alerts that end
///   process_ends()  ───────────────────────────────────────^
class Endings {
 public:
  /// All must outlive this. `now`: the tick that is being processed.
  Endings(EndingsEngine& engine, const Config& config, const Catalog& catalog, SeriesTable& table, const Timestamp& now)
      : engine_(engine), config_(config), catalog_(catalog), table_(table), now_(now) {}

  /// Called before the series sees the sample. O(1) unless the total of a device falls.
  void notice_fall(SeriesState& series, const Sample& sample);
  /// Called once the tick is complete: only then is it known which processes are still listed.
  void conclude_falls();
  /// Called after a reading of the device, once the tick is complete: whether a run begins or ends with it.
  void note_run(SeriesState& total);
  /// A program reported that the memory of a device, or of some device of the host, ran out.
  void take_out_of_memory(const Event& event);
  /// Some program has ended, but it is unknown which: evidence about a fall at that time.
  void take_end(const Event& event);
  /// No sample follows: concludes what is still open. A device ended there if its process was not listed after a
  /// fall, or if its program reported after its last sample that memory ran out.
  void end_of_recording();
  /// Marks the series of a process as ended. `reported`: how, if the source or the kernel said so.
  void process_ends(SeriesState& series, std::optional<EndKind> reported);
  /// Whether a series of the host's memory grew until that ran out, judging by its last figures.
  [[nodiscard]] bool host_ran_out(const SeriesState& series) const;

  /// Whether the device's total has fallen and the meaning of that is still unknown.
  [[nodiscard]] bool is_falling(const SeriesState& total) const;
  /// A smaller rise does not count as growth, as in the detectors.
  [[nodiscard]] std::uint64_t no_growth_bytes() const;

 private:
  struct Reading {
    Timestamp time;
    std::uint64_t bytes = 0;
  };
  /// A device's total as it was before a sample that is far lower than the one before. A driver frees the memory of a
  /// process in one go or over many readings, so the fall is kept until it is known whether it was an end.
  struct Fall {
    SeriesId total{};
    Timestamp seen;  ///< the first lower sample
    Verdict before;
    End end;  ///< how it ended, and whose end it was, are determined later
    LastFigures last;
    bool kept_load = false;          ///< the run had never before lost a good part of what it had loaded
    std::uint64_t lowest_bytes = 0;  ///< since `seen`
    Timestamp lowest_at;             ///< the first reading with it
    Reading latest;                  ///< since `seen`
    Reading prior;                   ///< the one before; at `seen` the same
    bool over = false;               ///< whether its meaning is known
    bool is_rest = false;  ///< it follows a known end: it only remains to find out which processes ended with it
  };
  /// The meaning of a fall, as far as it is known.
  enum class Means : std::uint8_t { an_end, a_restart, no_end, not_known_yet };

  /// A process that held this share of the used memory is the run of its total.
  static constexpr double kMostOfIt = 0.5;

  void conclude(Fall& fall);
  void use_report(SeriesState& total, EndKind how);
  void end_beside(const SeriesState& total, EndKind how);
  void end_reported(SeriesState& total, const Verdict& verdict);
  [[nodiscard]] End end_of_leak(const SeriesState& series, const Verdict& verdict, EndKind how) const;
  static void take_growth(End& end, const SeriesState& series, const Finding& finding);
  /// The level from which the series has fallen in its last samples, and when that was: O(1), and an End of it, for
  /// which the detector weighs the rise.
  [[nodiscard]] Reading level_of(const SeriesState& series) const;
  [[nodiscard]] End end_at(const SeriesState& series) const;
  [[nodiscard]] bool is_rest_of_release(const SeriesState& total, Timestamp time) const;
  [[nodiscard]] bool may_still_hold(const SeriesState& process, const Fall& fall, const SeriesState& total) const;
  [[nodiscard]] bool is_gone(const SeriesState& process, const Fall& fall, const SeriesState& total,
                             double unexplained_bytes) const;
  [[nodiscard]] const SeriesState* ended_process(const Fall& fall, const SeriesState& total) const;
  [[nodiscard]] static bool all_taken_is_gone(const SeriesState& total, double used_bytes, double left_bytes);
  [[nodiscard]] static bool is_reported(const SeriesState& total, Timestamp seen);
  [[nodiscard]] static bool lost_its_load(const Fall& fall, const SeriesState& total);
  [[nodiscard]] bool began_anew(const Fall& fall, const SeriesState& total) const;
  [[nodiscard]] Means meaning_of(const Fall& fall, const SeriesState& total, End& end) const;
  void end_the_gone(const Fall& fall, const SeriesState& total);
  [[nodiscard]] End end_of_process(const SeriesState& process, std::optional<EndKind> reported) const;
  void end_device_with(SeriesState& total, const SeriesState& process, const End& its);
  [[nodiscard]] static EndKind kind_of(const SeriesState& series, const LastFigures& last);
  [[nodiscard]] LastFigures last_figures(const SeriesState& series, const End& end) const;
  void device_ends(SeriesState& total, End end, std::uint64_t process_bytes, Timestamp gone_at);
  void name(End& end, const SeriesState& process) const;
  void set_precedent(const SeriesState& total);
  void close_run(SeriesState& total, Timestamp gone_at);
  void judge_anew(SeriesState& total);

  EndingsEngine& engine_;
  const Config& config_;
  const Catalog& catalog_;
  SeriesTable& table_;
  const Timestamp& now_;
  std::vector<Fall> falls_;
  std::optional<Timestamp> out_of_memory_of_any_;  ///< the last out-of-memory message that named no device
  bool is_last_ = false;                           ///< no sample follows
};

}  // namespace vramtrack
