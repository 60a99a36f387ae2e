// The stage a generated leak or healthy program plays on: the card, its neighbours, how it is sampled. Writes the
// scenario's text.
#pragma once

#include <string>

#include "core/units.hpp"
#include "draw.hpp"

namespace vramtrack::accuracy {

inline constexpr std::uint32_t kVictim = 4242;  ///< pid of the program the trace is about

struct Stage {
  double capacity_bytes = 0;
  double period_s = 0;
  double duration_s = 0;
  double base_bytes = 0;  ///< what the program needs to live
  double free_bytes = 0;  ///< never used by anybody but by what the family adds
  bool swings = false;    ///< its work rises and falls: a leak under it may be called cyclic
  double load_s = 0;      ///< the program's start takes this long
  std::string shapes;     ///< of the program, so far
  std::string tail;       ///< neighbours, faults
  std::string device;
  std::string command = "python app.py";  ///< says nothing about what kind of program it is
  std::string program_keys;               ///< of the program, beside its shapes

  /// Adds `kind = ...` and lines of keys to the program.
  void shape(const std::string& kind, const std::string& keys);
};

/// A card and a sampling that suit a trace of `duration_s`: at most about 20 000 samples. The program loads its base
/// and then works in one of the usual ways (noise, batches, evaluation, requests), whose peak is accounted for;
/// `quiet` leaves that out. Neighbours come with half of the stages.
Stage set_stage(Draw& draw, double duration_s, bool quiet = false);

/// A stage of which at least `least_free` of the card is left to the family.
Stage roomy_stage(Draw& draw, double duration_s, bool quiet, double least_free);

/// The scenario's text.
std::string write_scenario(Draw& draw, const Stage& stage, std::uint64_t seed, const std::string& name);

}  // namespace vramtrack::accuracy
