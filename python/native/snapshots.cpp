// PyTorch's memory snapshots: which stacks grew from one to the next.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "trace/diff.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramtrack::python {
namespace {

/// (name, file, line, live bytes, growth, the frames from the innermost outwards)
using GrownSite =
    std::tuple<std::string, std::string, std::uint32_t, std::int64_t, std::int64_t, std::vector<std::string>>;

std::span<const std::uint8_t> bytes_of(const nb::bytes& bytes) {
  return {static_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// The frame that a person would look at: the innermost one that is not the framework's own.
std::size_t own_frame(const trace::Symbols& symbols, std::span<const trace::FrameId> frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string_view file = symbols.file(frames[i]);
    if (file.find("/torch/") == std::string_view::npos && !file.empty() && file != "??") return i;
  }
  return 0;
}

Result<std::vector<GrownSite>> growing_sites(std::span<const std::uint8_t> before, std::span<const std::uint8_t> after,
                                             std::size_t limit) {
  trace::Symbols symbols;
  std::vector<trace::Snapshot> snapshots;
  for (const auto& [bytes, name] : {std::pair(before, "the first snapshot"), std::pair(after, "the second snapshot")}) {
    auto snapshot = trace::read_torch_snapshot(bytes, name, symbols, {false});
    if (!snapshot) return fail(snapshot.error());
    snapshots.push_back(std::move(*snapshot));
  }
  std::vector<GrownSite> sites;
  for (const trace::SiteGrowth& site : trace::growth_of(snapshots).sites) {
    if (sites.size() >= limit || site.growth_bytes() <= 0) break;
    if (site.stack == trace::kNoStack) continue;
    const auto frames = symbols.stack(site.stack);
    const std::size_t at = own_frame(symbols, frames);
    std::vector<std::string> stack;
    for (const trace::FrameId frame : frames)
      stack.push_back(std::string(symbols.file(frame)) + ':' + std::to_string(symbols.frame(frame).line) + " in " +
                      std::string(symbols.name(frame)));
    sites.emplace_back(std::string(symbols.name(frames[at])), std::string(symbols.file(frames[at])),
                       symbols.frame(frames[at]).line, site.bytes.back(), site.growth_bytes(), std::move(stack));
  }
  return sites;
}

}  // namespace

void add_snapshots(nb::module_& module) {
  module.def(
      "growing_sites",
      [](const nb::bytes& before, const nb::bytes& after, std::size_t limit) {
        const auto first = bytes_of(before);
        const auto second = bytes_of(after);
        Result<std::vector<GrownSite>> sites;
        {
          const nb::gil_scoped_release released;
          sites = growing_sites(first, second, limit);
        }
        return value_or_raise(std::move(sites));
      },
      nb::arg("before"), nb::arg("after"), nb::arg("limit"));
}

}  // namespace vramtrack::python
