// A conclusion on its way to a Verdict. Each stage is a type made from the stage before it, so that stages in the
// wrong order do not compile; Engine::Core::verdict() runs them.
//
//   Found -> Explained -> Limited -> Attributed -> Decided -> Verdict
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/verdict.hpp"

namespace vramtrack {

/// A verdict without the parts that follow from its finding: its severity, and the advice.
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
/// Adds what else is known of the series: its standstill, its allocator, other runs of its program.
struct Explained : DraftAfter<Found> {
  using DraftAfter::DraftAfter;
};
/// Adds the limits that end it before its device does, and the others that fill them.
struct Limited : DraftAfter<Explained> {
  using DraftAfter::DraftAfter;
};
/// For a device: adds what its parts show.
struct Attributed : DraftAfter<Limited> {
  using DraftAfter::DraftAfter;
};
/// Adds what holds whatever grows now: levels that were there before, and an alert that is kept active.
struct Decided : DraftAfter<Attributed> {
  using DraftAfter::DraftAfter;
  std::optional<Severity> severity;  ///< of an alert that a policy keeps active; nullopt: the finding's own
};

}  // namespace vramtrack
