// A text of many lines against its golden file: what a person should see change.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "paths.hpp"

namespace vramtrack {

/// Expects `actual` to be what tests/golden/`name` holds. With VRAMTRACK_UPDATE in the environment, as `make rewrite`
/// sets it, the file is rewritten.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = tests_dir() + "/golden/" + name;
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr) std::ofstream(path) << actual;
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(actual, expected.str()) << path << "; VRAMTRACK_UPDATE=1 rewrites it: then read the difference";
}

}  // namespace vramtrack
