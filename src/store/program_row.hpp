// Table program: the finished runs of each program (docs/formats/store.md).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/program.hpp"
#include "core/result.hpp"
#include "store/bytes.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// The runs of a program as its row stores them: some 50 bytes each. Levels are accurate to a thousandth, times to a
/// millisecond. Pure.
Bytes encode_runs(std::span<const FinishedRun> runs);
/// Errors: of another version, or damaged. Pure.
Result<std::vector<FinishedRun>> decode_runs(std::span<const std::uint8_t> bytes);

/// The program with `key`, or all of them, the last seen first. A row that cannot be read is an error.
Result<std::vector<Program>> select_programs(sql::Database& database, std::optional<std::string_view> key);

/// At most this many programs are kept: those last seen.
inline constexpr int kMostPrograms = 10'000;
Status keep_last_programs(sql::Database& database);

/// Adds or replaces a program. REQUIRES: schema 4; within the caller's transaction or without one.
Status put_program(sql::Database& database, const Program& program);

}  // namespace vramtrack
