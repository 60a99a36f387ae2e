// Program: what is remembered about the finished runs of one program, and how its runs are recognised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// How a run went. `rising`: its floor was still rising when it ended, so it is unknown whether it would have become
/// flat.
enum class RunOutcome : std::uint8_t { settled, rising, leaked, out_of_memory };

std::string_view to_string(RunOutcome outcome);

/// One finished run of a program, on the device where it used the most memory.
struct FinishedRun {
  /// Ages at which the level is kept: 15 s, 30 s, 1 min, ... 5.7 days.
  static constexpr std::size_t kPoints = 16;
  static constexpr double kFirstAge_s = 15;
  static constexpr double age_s(std::size_t point) { return kFirstAge_s * static_cast<double>(1U << point); }

  Timestamp begin;
  Timestamp end;
  RunOutcome outcome = RunOutcome::settled;
  bool seen_from_start = true;  ///< if false, the curve means nothing, and only the levels are known
  double warm_up_s = 0;         ///< from its beginning until the floor last rose by a significant share
  double settled_bytes = 0;     ///< the highest floor
  double peak_bytes = 0;
  std::size_t points = 0;                    ///< in `floor_bytes`: the ages that the run reached, and the next one
  std::array<float, kPoints> floor_bytes{};  ///< the highest floor up to each age

  [[nodiscard]] double duration_s() const { return seconds_between(begin, end); }
  friend bool operator==(const FinishedRun&, const FinishedRun&) = default;
};

struct Program {
  static constexpr std::size_t kMostRuns = 10;  ///< kept individually

  std::string key;   ///< identifies the program; a hash where it is stored
  std::string name;  ///< for people: without arguments
  std::string user;
  Timestamp first;  ///< when the first run began
  Timestamp last;   ///< when the last one ended
  std::uint64_t runs = 0;
  std::uint64_t leaked = 0;         ///< how many of these runs leaked, including those that ran out of memory
  std::uint64_t out_of_memory = 0;  ///< how many of these runs did
  std::vector<FinishedRun> recent;  ///< the last kMostRuns, oldest first
  friend bool operator==(const Program&, const Program&) = default;
};

/// What makes two runs belong to one program.
struct ProgramIdentity {
  std::string text;  ///< host, user, image, job's name and normalised command; may hold secrets: never stored or shown
  std::string name;  ///< "python train.py": the executable's name, and its script's
  std::string user;
  bool is_bare = false;  ///< an interpreter without arguments, which could run anything
};

/// An empty text if too little is known about the process to recognise it. Pure.
ProgramIdentity program_identity(const ProcessInfo& process);

/// A command without the parts that change from run to run: digits in words, dates, UUIDs and other long hexadecimal
/// numbers, temporary paths, and the values of options that name a port, a rank, an output or a seed. Numbers that
/// stand alone are kept: a batch size matters. Pure.
std::string normalised_command(std::string_view command);

}  // namespace vramtrack
