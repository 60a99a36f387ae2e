#include "families.hpp"

#include <algorithm>
#include <vector>

#include "families_tables.hpp"

namespace vramtrack::accuracy {

std::span<const Family> families() {
  static const std::vector<Family> kAll = [] {
    std::vector<Family> all;
    for (const auto& some : {leaking_families(), work_families(), other_leaking_families(), day_families(),
                             healthy_families(), other_healthy_families()})
      all.insert(all.end(), some.begin(), some.end());
    std::stable_partition(all.begin(), all.end(), [](const Family& family) { return family.leak; });
    return all;
  }();
  return kAll;
}

const Family* find_family(std::string_view name) {
  for (const auto& some :
       {families(), rank_families(), crash_families(), part_families(), load_families(), use_families()})
    for (const Family& family : some)
      if (family.name == name) return &family;
  return nullptr;
}

Trace make_trace(const Family& family, Split split, std::uint64_t seed, std::uint64_t number) {
  Trace trace;
  trace.family = family.name;
  trace.source = "generated";
  trace.group = family.group;
  trace.seed =
      sim::substream(sim::substream(sim::substream(seed, split == Split::tune ? "tune" : "test"), family.name), number);
  Draw draw{sim::Random(trace.seed), split};
  family.make(draw, trace);
  return trace;
}

}  // namespace vramtrack::accuracy
