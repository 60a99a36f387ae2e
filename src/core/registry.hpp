// Registries: what a module's .def file lists, found by its name or by how well it fits.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

namespace vramtrack {

/// The entry with that name; nullptr: there is none. O(entries).
template <class Info>
const Info* find_named(std::span<const Info* const> all, std::string_view name) {
  for (const Info* info : all)
    if (info->name == name) return info;
  return nullptr;
}

/// The entry of these lists for which `sureness(info)` is highest, the first of equals; nullptr: none has `least`.
/// Costs a call for each entry.
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
