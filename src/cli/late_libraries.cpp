#include "cli/late_libraries.hpp"

/// Defined in cmake/late_libraries.cpp; null in a program without it.
extern "C" [[gnu::weak]] void vramtrack_load_late();

namespace vramtrack::cli {

void load_late_libraries() {
  if (vramtrack_load_late != nullptr) vramtrack_load_late();
}

}  // namespace vramtrack::cli
