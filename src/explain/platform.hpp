// Platform: the vendor whose driver refused, and its diagnostic tools and settings.
#pragma once

#include <cstdint>
#include <string_view>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

enum class Maker : std::uint8_t { nvidia, amd, intel, apple, ascend, habana, sophgo, windows, browser, phone, other };

struct Platform {
  Maker maker = Maker::other;
  std::string_view marks;      ///< in lower case, separated by '|': its messages contain one of them
  std::string_view tool;       ///< command that shows the processes on the device
  std::string_view devices;    ///< the variable that selects devices; empty: none
  std::string_view allocator;  ///< the variable of PyTorch's allocator; empty: it has no expandable segments
  bool has_vramtrack = true;   ///< whether vramtrack runs there
};

/// The system without vramtrack that `text` names.
System system_of(std::string_view text);

/// From the message, its line and its program; Maker::other if they do not show it.
const Platform& platform_of(const Failure& failure);

}  // namespace vramtrack::explain
