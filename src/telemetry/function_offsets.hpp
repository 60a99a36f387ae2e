// Where the functions of a library lie in its file.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::telemetry {

/// The file offsets of the exported functions among `wanted`, by name. Errors: the file cannot be read or is not an ELF
/// file.
Result<std::map<std::string_view, std::uint64_t>> function_offsets(const std::string& path,
                                                                   const std::set<std::string_view>& wanted);

}  // namespace vramtrack::telemetry
