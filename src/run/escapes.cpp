#include "run/escapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "host/process.hpp"
#include "host/small_file.hpp"

namespace vramtrack::run {
namespace {

/// Libraries that allocate GPU memory, as the beginning of their file name.
constexpr std::array<std::string_view, 5> kDrivers = {"libcuda.so", "libamdhip64.so", "libOpenCL.so", "libvulkan.so",
                                                      "libze_loader.so"};
constexpr std::string_view kProbe = "libvramtrack_probe";

/// One second at one look per millisecond: by then, most programs have loaded their libraries.
constexpr std::uint32_t kYoungLooks = 1000;
constexpr std::size_t kMostChildrenBytes = 1U << 20U;
constexpr std::size_t kMostAuxiliaryBytes = 4096;

bool is_driver(std::string_view name) {
  return std::any_of(kDrivers.begin(), kDrivers.end(),
                     [&](std::string_view driver) { return name.starts_with(driver); });
}

}  // namespace

void Escapes::add_children(std::uint32_t pid, std::vector<std::uint32_t>& open) {
  std::error_code error;
  for (auto thread = std::filesystem::directory_iterator(fmt::format("{}/{}/task", proc_root_, pid), error);
       !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    const auto children = read_text_file((thread->path() / "children").string(), kMostChildrenBytes);
    std::string_view rest = children ? std::string_view(*children) : std::string_view();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
      const auto child = parse_unsigned(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (child && known_.try_emplace(static_cast<std::uint32_t>(*child)).second)
        open.push_back(static_cast<std::uint32_t>(*child));
    }
  }
}

std::vector<EscapedProcess> Escapes::look() {
  std::vector<std::uint32_t> pids;
  for (const auto& [pid, image] : known_) pids.push_back(pid);
  return look_at(std::move(pids), true);
}

std::vector<EscapedProcess> Escapes::look_at_doubtful() {
  std::vector<std::uint32_t> pids;
  for (const auto& [pid, image] : known_)
    if (!image.is_classified) pids.push_back(pid);
  return look_at(std::move(pids), false);
}

bool Escapes::has_young() const {
  return std::any_of(known_.begin(), known_.end(),
                     [](const auto& each) { return !each.second.is_classified && each.second.looks < kYoungLooks; });
}

std::vector<EscapedProcess> Escapes::look_at(std::vector<std::uint32_t> open, bool with_children) {
  std::vector<EscapedProcess> found;
  std::string path;
  while (!open.empty()) {
    const std::uint32_t pid = open.back();
    open.pop_back();
    const auto alive = process_alive(proc_root_, pid, path);
    Image& image = known_[pid];
    if (!alive || (image.start_ticks != 0 && image.start_ticks != alive->start_ticks)) {
      known_.erase(pid);  // its number may belong to another process by now
      continue;
    }
    if (with_children) add_children(pid, open);
    const std::string auxiliary =
        read_text_file(fmt::format("{}/{}/auxv", proc_root_, pid), kMostAuxiliaryBytes).value_or("");
    if (image.start_ticks == 0 || image.auxiliary != auxiliary) image = {alive->start_ticks, auxiliary, 0, false};
    if (image.is_classified) continue;
    ++image.looks;
    const MappedNames mapped = read_mapped_names(proc_root_, pid);
    image.is_classified = std::any_of(mapped.names.begin(), mapped.names.end(),
                                      [](const std::string& name) { return name.starts_with(kProbe); });
    if (image.is_classified) continue;
    // The loader maps preloaded libraries first, so a driver without the probe stays without it.
    const auto driver = std::find_if(mapped.names.begin(), mapped.names.end(), is_driver);
    if (driver == mapped.names.end()) continue;
    image.is_classified = true;
    const auto info = read_process(proc_root_, pid);
    found.push_back({pid, alive->start_ticks, info ? info->command : std::string(), *driver});
  }
  all_.insert(all_.end(), found.begin(), found.end());
  return found;
}

}  // namespace vramtrack::run
