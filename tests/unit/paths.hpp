// Where the tests find their data. The folders are compiled into paths.cpp alone: every other file of the tests is the
// same wherever the tree lies, so that a compiler cache knows it in another clone.
#pragma once

#include <string>

namespace vramtrack {

/// The folder `tests` of the source tree.
std::string tests_dir();

/// The source tree.
std::string source_dir();

/// The build, with the fake libraries that tests load.
std::string build_dir();

}  // namespace vramtrack
