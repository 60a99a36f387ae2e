// Rows of several GPUs with no index, or a wrong one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// The number of GPUs that the rows of one reading cover, in a fixed order; 1 if the rows name their GPU, or there is
/// only one. Removes the index from `plan` if it is the same for all of them. An Error if rows belong to several GPUs
/// that cannot be distinguished: merging them into one series would hide the behaviour of each.
Result<std::size_t> count_unnamed_gpus(const std::vector<std::vector<std::string_view>>& rows, std::string_view head,
                                       StampReader stamp, bool comma, ColumnPlan& plan,
                                       std::vector<std::string>& assumptions);

}  // namespace vramtrack
