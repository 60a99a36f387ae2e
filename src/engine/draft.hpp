// A conclusion on its way to a Verdict. Each stage is a type that is made from the stage before it, so that stages in a
// wrong order do not compile; Engine::Core::verdict() runs them.
//
//   Found -> Explained -> Limited -> Attributed -> Decided -> Verdict
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/verdict.hpp"

namespace vramtrack {

/// A verdict without what follows from its finding: its severity, and what people may do.
struct Draft {
  Timestamp time;
  SeriesId series{};
  Finding finding;
  std::vector<Finding> dissent;
  std::optional<Suspect> suspect;
  std::optional<End> end;
};

template <class Before>
struct DraftAfter : Draft {
  explicit DraftAfter(Before&& before) : Draft(std::move(before)) {}
};

/// What the detectors find in the curve, without what belongs to a run that is over.
struct Found : Draft {};
/// With what else is known of the series: its standstill, its allocator, other runs of its program.
struct Explained : DraftAfter<Found> {
  using DraftAfter::DraftAfter;
};
/// With the limits that end it before its device does, and the others that fill them.
struct Limited : DraftAfter<Explained> {
  using DraftAfter::DraftAfter;
};
/// Of a device: with what its parts show.
struct Attributed : DraftAfter<Limited> {
  using DraftAfter::DraftAfter;
};
/// With what holds whatever grows now: levels that were there before, and an alert that is kept active.
struct Decided : DraftAfter<Attributed> {
  using DraftAfter::DraftAfter;
  std::optional<Severity> severity;  ///< of an alert that a policy keeps active; nullopt: that of the finding
};

}  // namespace vramtrack
