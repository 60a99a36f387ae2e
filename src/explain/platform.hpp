// Platform: whose driver refused, and what can be looked at and set there.
#pragma once

#include <cstdint>
#include <string_view>

#include "explain/judge.hpp"

namespace vramtrack::explain {

enum class Maker : std::uint8_t { nvidia, amd, intel, apple, ascend, habana, sophgo, windows, browser, phone, other };

struct Platform {
  Maker maker = Maker::other;
  std::string_view marks[10];  ///< in lower case, of which a message of it has one; those unused are empty
  std::string_view tool;       ///< shows who holds the device
  std::string_view devices;    ///< the variable that chooses devices; empty: there is none
  std::string_view allocator;  ///< the variable of PyTorch's allocator; empty: it has no segments that expand
  bool has_vramtrack = true;   ///< false: it does not run there
};

/// Which of the systems without vramtrack `text` names.
System system_of(std::string_view text);

/// By the message, its line and its program; Maker::other where they tell nothing.
const Platform& platform_of(const Failure& failure);

}  // namespace vramtrack::explain
