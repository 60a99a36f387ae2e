#include "source/log/lost_message.hpp"

#include <algorithm>
#include <array>

namespace vramtrack {

bool tells_lost_gpu(std::string_view line) {
  if (line.find("GPU") == std::string_view::npos) return false;
  constexpr std::array<std::string_view, 3> kMessages = {"Unable to determine the device handle for ", "GPU is lost",
                                                         "fallen off the bus"};
  return std::any_of(kMessages.begin(), kMessages.end(),
                     [&](std::string_view message) { return line.find(message) != std::string_view::npos; });
}

}  // namespace vramtrack
