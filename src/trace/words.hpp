// Figures in a sentence, for the reasons and advice of this module (which does not depend on report/).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack::trace {

/// "12.3 GiB", "45.6 MiB", "7.8 KiB", "90 bytes"; "-1.0 MiB" below zero.
std::string bytes_words(std::int64_t bytes);
std::string bytes_words(std::uint64_t bytes);
/// "+12.3 MiB", "-1.0 KiB", "0 bytes".
std::string change_words(std::int64_t bytes);
/// "1 site", "2 sites", "12,345 sites".
std::string count_words(std::uint64_t count, std::string_view noun);
/// "12,345".
std::string number_words(std::uint64_t number);

}  // namespace vramtrack::trace
