// The seeded generator: families of labelled scenarios. A trace is the text of a scenario file
// (docs/formats/scenario.md), so that every one of them can be looked at and played.
#pragma once

#include <span>
#include <string_view>

#include "draw.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

struct Family {
  std::string_view name;
  std::string_view help;
  bool leak = false;
  bool test_only = false;  ///< never seen while thresholds were chosen
  void (*make)(Draw& draw, Trace& trace) = nullptr;
  Group group = Group::usual;
};

/// Programs by themselves. Leaking families first.
std::span<const Family> families();

/// Jobs of eight ranks. Leaking ones first.
std::span<const Family> rank_families();
/// Leaks that come to their end, and what follows it.
std::span<const Family> crash_families();

/// Scenes of several programs, which have their own table. Leaking ones first.
std::span<const Family> part_families();

/// Loads of models: healthy. The label's life_s is how long the load takes.
std::span<const Family> load_families();

/// By kind of use, most with a leak and without. Leaking ones first.
std::span<const Family> use_families();

/// The family of that name, of all; nullptr: there is none.
const Family* find_family(std::string_view name);

/// The `number`-th trace of a family in a split. Deterministic.
Trace make_trace(const Family& family, Split split, std::uint64_t seed, std::uint64_t number);

}  // namespace vramtrack::accuracy
