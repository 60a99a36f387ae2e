// The same programs with what else may be known: earlier runs of theirs, and siblings that run now.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "bench.hpp"

namespace vramtrack::accuracy {

/// What is known beside the trace.
enum class Known : std::uint8_t {
  nothing,  ///< the first run ever
  one,      ///< earlier runs; of a leaking program they were healthy
  three,
  ten,
  changed,        ///< three, and the command has changed since
  three_leaked,   ///< leaks only: three that leaked, too
  siblings,       ///< of a leaking program, they do not leak
  siblings_leak,  ///< leaks only: they do
};
inline constexpr std::size_t kKnown = 8;
inline constexpr std::size_t kSiblings = 3;

std::string_view name_of(Known known);

/// One program, judged once with each.
struct Beside {
  Trace trace;
  /// By what is known: as each mark.
  std::array<std::optional<std::array<Scored, kMarks.size()>>, kKnown> scored;
};

std::vector<Beside> run_beside(const std::vector<Trace>& traces, const Config& config, unsigned jobs);

/// Jobs of ranks: judged together, and the same device alone.
struct Ranks {
  Run together;
  Run alone;
};
std::vector<Ranks> run_ranks(const std::vector<Trace>& traces, const Config& config, unsigned jobs);

}  // namespace vramtrack::accuracy
