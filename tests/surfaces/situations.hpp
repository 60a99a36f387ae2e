// The situations that every surface is driven through: one GPU and its job, made by hand, so that no detector decides
// what is tested here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/view.hpp"

namespace vramtrack::surfaces {

struct Situation {
  std::string name;
  View view;  ///< the device first, then its processes
  /// What has just become of the device's alert; nullopt: nobody is notified.
  std::optional<AlertNews> news;
};

std::vector<Situation> situations();

}  // namespace vramtrack::surfaces
