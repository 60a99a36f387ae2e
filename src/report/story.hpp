// One leak is one story for people, though two series show it: the device's and its process's.
#pragma once

#include <cstddef>
#include <vector>

#include "core/series.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

/// An alert and whose it is. Both must outlive it.
struct AlertOf {
  const SeriesKey& key;
  const Alert& alert;
};

/// Of each alert of a process the place of the alert of its device that tells the same leak, because they stood at the
/// same time; the place itself for all others. An alert that stands is never told with one that has ended. Pure; O(n)
/// for the alerts of processes, times the alerts of their device.
std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts);

}  // namespace vramtrack
