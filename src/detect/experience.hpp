// Experience: what is known of a series besides its samples, and what that shows about a rise. Pure: no clock, no I/O.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/program.hpp"
#include "core/scale.hpp"
#include "detect/days.hpp"

namespace vramtrack {

/// Adds a finished run to what is known of its program. Runs that began together are ranks or replicas of one job and
/// count once, with the highest of their levels. Only the last Program::kMostRuns are kept individually. Pure.
void add_run(Program& program, const FinishedRun& run);

/// `program` as it was known at `time`: without the runs that ended later. nullopt if nothing was known. Pure.
std::optional<Program> as_known_at(const Program& program, Timestamp time);

/// A rise of a series' floor.
struct Rise {
  Timestamp start;
  Timestamp end;
  double start_bytes = 0;
  double net_bytes = 0;
};

/// What experience shows about a rise. With R the sum of the weights of a leak's rivals, of which `chance` is that of
/// no rise at all, P = 1 / (1 + chance + (R - chance) / odds + familiar). See docs/detectors/judge.md.
struct ExperienceWord {
  enum class Kind : std::uint8_t {
    none,      ///< no run was seen at that age, or no run at all
    inside,    ///< its healthy predecessors rose like this
    below,     ///< they did not rise then, but reached higher levels
    left,      ///< above all of them
    leaked,    ///< most of them leaked
    like_days  ///< it rose like this on earlier days, and fell again
  };
  Kind kind = Kind::none;
  double familiar = 0;  ///< weight of "as always", relative to a leak's 1; at most 16
  double odds = 1;      ///< Bayes factor for a leak against its rivals, from 1/8 to 16
  int runs = 0;         ///< number of runs that it is based on

  /// Whether the rise is as expected of a healthy run.
  [[nodiscard]] bool explains() const { return kind == Kind::inside || kind == Kind::like_days; }
};

/// The probability P given the word. `chance`: as above. Pure.
double with_experience(double probability, double chance, const ExperienceWord& word);

/// The envelope of a program's runs. Immutable, so that the series of its processes share one.
class ProgramExperience {
 public:
  explicit ProgramExperience(const Program& program);

  /// `begin`: when the run of the rise began; nullopt: unknown. O(1).
  [[nodiscard]] ExperienceWord word(const Rise& rise, std::optional<Timestamp> begin) const;
  /// "; 3 earlier runs of this program settled at 12.0 GiB after 9 min"; empty if the word decides nothing.
  [[nodiscard]] std::string describe(const ExperienceWord& word, const Scale& scale) const;

  /// The known runs, however they ended.
  [[nodiscard]] int runs() const { return runs_; }

 private:
  struct Point {
    double highest_bytes = 0;
    double tolerance_bytes = 0;
    int runs = 0;  ///< healthy runs that reached the age
  };

  std::array<Point, FinishedRun::kPoints> points_{};
  int runs_ = 0;
  int healthy_ = 0;
  int leaked_ = 0;
  double leak_probability_ = 0;  ///< of the next run, before it is seen
  double highest_bytes_ = 0;     ///< of all healthy runs, at any age
  double highest_tolerance_bytes_ = 0;
  double longest_warm_up_s_ = 0;
  double usual_warm_up_s_ = 0;
  double usual_settled_bytes_ = 0;
};

/// What is known of one series: owned by the engine, read by its detector.
class Experience {
 public:
  void set_program(std::shared_ptr<const ProgramExperience> program) { program_ = std::move(program); }
  [[nodiscard]] const ProgramExperience* program() const { return program_.get(); }
  void set_begin(std::optional<Timestamp> begin) { begin_ = begin; }
  /// For a device that one process fills: what is known of that process, and how much less than the device it holds.
  /// Null: no process.
  void follow(const Experience* process, double offset_bytes) {
    process_ = process;
    offset_bytes_ = offset_bytes;
  }

  [[nodiscard]] Days& days() { return days_; }

  [[nodiscard]] ExperienceWord word(const Rise& rise) const;
  /// Whether experience shows that the rise is not the first morning of a daily load: the series was seen at this
  /// time of an earlier day, or earlier runs of its program were seen at this age (or leaked).
  [[nodiscard]] bool knows_days(const Rise& rise) const;
  [[nodiscard]] std::string describe(const ExperienceWord& word, const Scale& scale) const;
  /// For a rise that its word explains: "rose 9.1 GiB in 8 min; 3 earlier runs of this program settled at ...".
  [[nodiscard]] std::string because(const Rise& rise, const Scale& scale) const;

 private:
  std::shared_ptr<const ProgramExperience> program_;
  std::optional<Timestamp> begin_;
  Days days_;
  const Experience* process_ = nullptr;
  double offset_bytes_ = 0;
};

}  // namespace vramtrack
