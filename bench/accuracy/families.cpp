#include "families.hpp"

#include <vector>

#include "families_tables.hpp"

namespace vramtrack::accuracy {

std::span<const Family> families() {
  static const std::vector<Family> kAll = [] {
    std::vector<Family> all(leaking_families().begin(), leaking_families().end());
    all.insert(all.end(), healthy_families().begin(), healthy_families().end());
    return all;
  }();
  return kAll;
}

Trace make_trace(const Family& family, Split split, std::uint64_t seed, std::uint64_t number) {
  Trace trace;
  trace.family = family.name;
  trace.source = "generated";
  trace.apart = family.apart;
  trace.seed =
      sim::substream(sim::substream(sim::substream(seed, split == Split::tune ? "tune" : "test"), family.name), number);
  Draw draw{sim::Random(trace.seed), split};
  family.make(draw, trace);
  return trace;
}

}  // namespace vramtrack::accuracy
