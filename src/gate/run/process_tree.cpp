#include "gate/run/process_tree.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "core/read_all.hpp"

namespace vramtrack::gate {
namespace {

/// Field 4 of /proc/PID/stat; the name before it may hold blanks and parentheses.
std::uint32_t parent_of(const std::filesystem::path& folder) {
  std::ifstream in(folder / "stat");
  const std::string text = read_all(in).value_or("");  // it may end at any moment
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  std::uint32_t parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

}  // namespace

std::set<std::uint32_t> process_tree(const std::string& proc_root, std::uint32_t root) {
  std::multimap<std::uint32_t, std::uint32_t> children;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(proc_root, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::uint32_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc() && end == name.data() + name.size()) children.emplace(parent_of(entry->path()), pid);
  }
  std::set<std::uint32_t> tree = {root};
  std::vector<std::uint32_t> open = {root};
  while (!open.empty()) {
    const std::uint32_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child)
      if (tree.insert(child->second).second) open.push_back(child->second);
  }
  return tree;
}

ProcessTreeMemory::ProcessTreeMemory(const SourcesConfig& config)
    : config_(config), sources_(open_live_sources(config_, catalog_, reasons_)) {}

Result<double> ProcessTreeMemory::used_bytes(std::uint32_t root) {
  if (sources_.empty()) return fail("no GPU memory can be read here (" + reasons_ + "); see 'vramtrack doctor'");
  std::string warnings;
  batch_.clear();
  const Timestamp now = clock_.read().wall;
  for (LiveSource& live : sources_)
    poll_live(live, now, batch_, [&warnings](const std::string& text) { warnings = text; });
  if (batch_.samples.empty() && !warnings.empty()) return fail(warnings);
  const auto tree = process_tree(config_.proc_root, root);
  double total = 0;
  for (const Sample& sample : batch_.samples) {
    if (!catalog_.holds(sample.series)) continue;
    const SeriesKey& key = catalog_.key(sample.series);
    if (key.metric == Metric::process_used && tree.contains(key.pid)) total += static_cast<double>(sample.bytes);
  }
  return total;
}

}  // namespace vramtrack::gate
