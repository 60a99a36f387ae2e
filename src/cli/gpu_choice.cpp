#include "cli/gpu_choice.hpp"

#include <fmt/format.h>

namespace vramtrack::cli {

void add_gpus(Arguments& arguments, std::vector<std::string>& into) {
  arguments.list("--gpu", "GPUS", "Only these GPUs: indices or ids", text(into));
}

Result<std::set<std::string>> chosen_gpus(const std::vector<const SeriesView*>& series,
                                          const std::vector<std::string>& gpus) {
  std::set<std::string> wanted;
  std::string known;
  std::set<std::string> named;
  for (const std::string& gpu : gpus) {
    bool found = false;
    for (const SeriesView* s : series) {
      const DeviceInfo& device = s->device;
      const bool same =
          s->key.device_id == gpu || (device.index && device.parent_id.empty() && std::to_string(*device.index) == gpu);
      if (same) wanted.insert(s->key.device_id);
      found = found || same;
      if (named.insert(s->key.device_id).second)
        known +=
            fmt::format("{}{}", known.empty() ? "" : ", ",
                        device.index ? fmt::format("{} {}", device.parent_id.empty() ? "GPU" : "MIG", *device.index)
                                     : s->key.device_id);
    }
    if (!found) return fail(fmt::format("--gpu {}: no such GPU in what was read; the GPUs are {}", gpu, known));
  }
  return wanted;
}

}  // namespace vramtrack::cli
