// Shape: one component of a simulated process's memory (a leak, a sawtooth, a warm-up ...), its parameters
// and the curve it draws. A new shape is one ShapeKind in a shapes_*.cpp and one line in shapes.def.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "source/sim/random.hpp"

namespace vramtrack::sim {

/// How a parameter is written: a plain number in the unit that its name states, or a string with a unit.
enum class Unit {
  bytes,        ///< "512MiB"; a plain factor if the shape multiplies
  seconds,      ///< "90s", "2h"
  interval_s,   ///< seconds between events; with the duration, it bounds their number
  bytes_per_s,  ///< "12.4MiB/min"
  per_s,        ///< events per second, "3/min"
  ratio,        ///< a plain number
  count,        ///< a whole number
  word,         ///< one of `words`
};

inline constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

struct Parameter {
  std::string_view key;
  Unit unit = Unit::ratio;
  double fallback = kRequired;  ///< NaN: required. For a word: its index
  double min = 0;
  double max = 1e18;
  std::string_view words = {};  ///< "regular|jittered|random"
  [[nodiscard]] bool required() const { return fallback != fallback; }
};

/// The memory that a shape contributes, in bytes, `t_s` seconds after its onset. REQUIRES: t_s >= 0, and never less
/// than in the previous call. The events of event-like shapes do not depend on how often it is called.
using Curve = std::function<double(double t_s)>;

struct ShapeKind;

/// One shape of a scenario, as parsed. Times are in seconds since its process started.
struct ShapeSpec {
  const ShapeKind* kind = nullptr;
  std::vector<double> values;  ///< in the order of kind->parameters
  bool multiply = false;       ///< the curve is a factor on the sum of the shapes before it
  bool cached = false;         ///< held by the allocator, not by live tensors
  double onset_s = 0;          ///< contributes nothing before this
  double until_s = std::numeric_limits<double>::infinity();    ///< constant from here on
  double release_s = std::numeric_limits<double>::infinity();  ///< gives everything back here
  double release_every_s = 0;  ///< interval at which it gives back `release_share` of what it holds; 0: never
  double release_share = 0;
  int only_rank = -1;  ///< only in this rank (position in `devices`) of a one_per_device process

  /// The value of parameter `key`. REQUIRES: the kind has it.
  [[nodiscard]] double operator[](std::string_view key) const;
};

struct ShapeKind {
  std::string_view name;
  std::string_view help;
  std::span<const Parameter> parameters;
  Curve (*make)(const ShapeSpec& spec, Random random);
};

/// Every kind, in the order of shapes.def. find_shape_kind() returns nullptr for an unknown name.
std::span<const ShapeKind* const> shape_kinds();
const ShapeKind* find_shape_kind(std::string_view name);

/// A curve with the common keys of ShapeSpec applied (onset, until, releases); it takes the seconds since the process
/// started. A shape that contributes nothing is 1 if it multiplies and 0 if it adds.
Curve make_curve(const ShapeSpec& spec, Random random);

}  // namespace vramtrack::sim
