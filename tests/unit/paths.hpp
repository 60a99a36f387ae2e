// Where the tests find their data. The folders are compiled only into paths.cpp: every other test file is the same
// wherever the tree is, so that a compiler cache recognises it in another clone.
#pragma once

#include <string>

namespace vramtrack {

/// The folder `tests` in the source tree.
std::string tests_dir();

/// The source tree.
std::string source_dir();

/// The build, with the fake libraries that tests load.
std::string build_dir();

}  // namespace vramtrack
