// Figures in words, for Finding::because and --explain.
#pragma once

#include <string>

namespace vramtrack {

std::string size_words(double bytes);        ///< "1.2 GiB", "96 MiB"
std::string rate_words(double bytes_per_s);  ///< "50.1 MiB/min", "1.5 GiB/h" when slower than 1 MiB/min: per hour
std::string span_words(double seconds);      ///< "38 min", "2.5 h", "45 s", "3.1 d"

}  // namespace vramtrack
