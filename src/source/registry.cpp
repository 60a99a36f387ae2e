#include <array>

#include "source/source.hpp"

namespace vramtrack {

#define VRAMTRACK_SOURCE(name) extern const SourceInfo name##_source;
#include "source/sources.def"

std::span<const SourceInfo* const> live_sources() {
  static const std::array sources = {
#define VRAMTRACK_SOURCE(name) &name##_source,
#include "source/sources.def"
  };
  return sources;
}

}  // namespace vramtrack
