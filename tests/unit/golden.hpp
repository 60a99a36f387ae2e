// Compares a text of many lines with its golden file, so that a person sees the changes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "paths.hpp"

namespace vramtrack {

/// Expects `actual` to equal tests/golden/`name`. With VRAMTRACK_UPDATE in the environment, as set by `make rewrite`,
/// rewrites the file.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = tests_dir() + "/golden/" + name;
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr) std::ofstream(path) << actual;
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(actual, expected.str()) << path << "; VRAMTRACK_UPDATE=1 rewrites it: then read the difference";
}

}  // namespace vramtrack
