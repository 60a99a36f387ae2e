// --gpu for commands that read recordings: selects GPUs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "core/result.hpp"
#include "core/view.hpp"

namespace vramtrack::cli {

/// --gpu: indices or ids.
void add_gpus(Arguments& arguments, std::vector<std::string>& into);

/// The ids of those devices of `series` that `gpus` names; naming a partitioned GPU includes its instances. Error: no
/// GPU has that name; the message lists those there are.
Result<std::set<std::string>> chosen_gpus(const std::vector<const SeriesView*>& series,
                                          const std::vector<std::string>& gpus);

/// Keeps the elements that `gpus` names, or all if it is empty. `view_of` returns the SeriesView of an element.
template <class Element, class ViewOf>
Status keep_gpus(std::vector<Element>& all, const std::vector<std::string>& gpus, ViewOf view_of) {
  if (gpus.empty()) return {};
  std::vector<const SeriesView*> series;
  for (const Element& each : all) series.push_back(&view_of(each));
  const auto chosen = chosen_gpus(series, gpus);
  if (!chosen) return fail(chosen.error());
  std::erase_if(all, [&](const Element& each) {
    const SeriesView& s = view_of(each);
    return !chosen->contains(s.key.device_id) && !chosen->contains(s.device.parent_id);
  });
  return {};
}

}  // namespace vramtrack::cli
