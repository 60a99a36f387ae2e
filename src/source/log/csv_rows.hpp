// Reads rows of separated values by a ColumnPlan: the engine under the query-gpu, compute-apps and csv
// formats, and the fast path of the whole program (about 100 ns a line).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"
#include "source/log/format.hpp"
#include "source/log/rows.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {

/// Finds the header of a CSV log in its first lines, or infers the columns, and settles units and clock.
/// `strict`: the log comes from nvidia-smi, whose bare numbers are MiB. Errors say what is missing.
Result<std::unique_ptr<LogParser>> make_csv_parser(const LogHead& head, bool strict);

/// Columns of the first header among the first lines of `head`; nullopt when there is none.
std::optional<ColumnPlan> find_header(std::string_view head);

/// Columns inferred from the values of a head without a header.
Result<ColumnPlan> infer_from_head(std::string_view head, std::vector<std::string>& assumptions);

}  // namespace vramtrack
