// PyTorch's memory snapshots: which stacks grew from one to the next.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "trace/diff.hpp"
#include "trace/format.hpp"
#include "trace/profile.hpp"

namespace vramtrack::python {
namespace {

/// (name, file, line, live bytes, growth, the frames from the innermost outwards)
using GrownSite =
    std::tuple<std::string, std::string, std::uint32_t, std::int64_t, std::int64_t, std::vector<std::string>>;

std::span<const std::uint8_t> bytes_of(const nb::bytes& bytes) {
  return {static_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

Result<std::vector<GrownSite>> growing_sites(std::span<const std::uint8_t> before, std::span<const std::uint8_t> after,
                                             std::size_t limit, std::optional<std::uint32_t> device) {
  trace::Symbols symbols;
  std::vector<trace::Snapshot> snapshots;
  for (const auto& [bytes, name] : {std::pair(before, "the first snapshot"), std::pair(after, "the second snapshot")}) {
    auto snapshot = [&, from = bytes, as = name]() -> Result<trace::Snapshot> {
      auto input = trace::open_trace(from, as);
      if (!input) return fail(input.error());
      return trace::read_trace(std::move(*input), symbols, {false});
    }();
    if (!snapshot) return fail(snapshot.error());
    snapshots.push_back(std::move(*snapshot));
  }
  trace::GrowthOptions options;
  options.device = device;
  std::vector<GrownSite> sites;
  for (const trace::SiteGrowth& site : trace::growth_of(snapshots, options).sites) {
    if (sites.size() >= limit || site.growth_bytes() <= 0) break;
    const auto line = trace::site_of(symbols, site.stack);
    if (!line) continue;
    const auto frames = symbols.stack(site.stack);
    std::vector<std::string> stack;
    for (const trace::FrameId frame : frames)
      stack.push_back(std::string(symbols.file(frame)) + ':' + std::to_string(symbols.frame(frame).line) + " in " +
                      std::string(symbols.name(frame)));
    sites.emplace_back(std::string(symbols.name(*line)), std::string(symbols.file(*line)), symbols.frame(*line).line,
                       site.bytes.back(), site.growth_bytes(), std::move(stack));
  }
  return sites;
}

}  // namespace

void add_snapshots(nb::module_& module) {
  module.def(
      "growing_sites",
      [](const nb::bytes& before, const nb::bytes& after, std::size_t limit, std::optional<std::uint32_t> device) {
        const auto first = bytes_of(before);
        const auto second = bytes_of(after);
        Result<std::vector<GrownSite>> sites;
        {
          const GilReleased released;
          sites = growing_sites(first, second, limit, device);
        }
        return value_or_raise(std::move(sites));
      },
      nb::arg("before"), nb::arg("after"), nb::arg("limit"), nb::arg("device").none());
}

}  // namespace vramtrack::python
