// The unit of amounts of memory that are written without one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

struct LogOptions;

/// Bytes in the unit of --unit, 0 where it was not given: MB and GB are powers of ten there, since MiB and GiB can be
/// said. An Error names the unknown unit.
Result<std::uint64_t> unit_of(const LogOptions& options);

/// Bytes in the unit of `values`, amounts of used memory, by their size; MiB where they have units of their own.
/// `comma`: decimal commas may occur. Adds to `assumptions` what was guessed.
std::uint64_t guess_unit(std::span<const std::string_view> values, bool comma, std::vector<std::string>& assumptions);

}  // namespace vramtrack
