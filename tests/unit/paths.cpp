#include "paths.hpp"

namespace vramtrack {

std::string tests_dir() {
  return VRAMTRACK_TESTS_DIR;
}
std::string source_dir() {
  return VRAMTRACK_SOURCE_DIR;
}
std::string build_dir() {
  return VRAMTRACK_BUILD_DIR;
}

}  // namespace vramtrack
