// Registries: the entries of a module's .def file, found by name or by how well they fit.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

namespace vramtrack {

/// The entry with that name; nullptr if there is none. O(entries).
template <class Info>
const Info* find_named(std::span<const Info* const> all, std::string_view name) {
  for (const Info* info : all)
    if (info->name == name) return info;
  return nullptr;
}

/// The entry of these lists with the highest `sureness(info)`, the first among equals; nullptr if none reaches `least`.
/// Costs one call per entry.
template <class Info, class Sureness>
const Info* surest(std::initializer_list<std::span<const Info* const>> lists, const Sureness& sureness, int least = 1) {
  const Info* best = nullptr;
  int highest = least - 1;
  for (const std::span<const Info* const> all : lists)
    for (const Info* info : all) {
      const int sure = sureness(*info);
      if (sure <= highest) continue;
      highest = sure;
      best = info;
    }
  return best;
}

}  // namespace vramtrack
