// Times since the start of a program, as its lines give them. Private to the reader of free text.
#pragma once

#include <string_view>

namespace vramtrack {

/// A duration with its unit.
struct Elapsed {
  std::string_view text;  ///< the digits alone if it is in seconds, else with its units; empty: there is none
  double seconds = 0;
};

/// "[12.5s]", "+30000ms" or "[0d 00h 05m 30s]" with which `line` begins, "t=120s", "elapsed: 0.5 min", and the
/// "[  120.123456]" of the kernel.
Elapsed find_elapsed(std::string_view line);

}  // namespace vramtrack
