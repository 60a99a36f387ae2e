// Rows of several GPUs that have no index, or a wrong one, to distinguish them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// How many GPUs the rows of one reading cover, in a fixed order; 1 when the rows name their GPU, or there is only one.
/// Removes the index from `plan` when it is the same for all of them. An Error when rows belong to several GPUs that
/// cannot be distinguished: a single series of them all would hide what each one does.
Result<std::size_t> settle_places(const std::vector<std::vector<std::string_view>>& rows, std::string_view head,
                                  StampReader stamp, bool comma, ColumnPlan& plan,
                                  std::vector<std::string>& assumptions);

}  // namespace vramtrack
