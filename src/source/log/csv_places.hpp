// Rows of several GPUs that nothing, or a wrong index, tells apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {

/// How many GPUs the rows of one reading are of, in a fixed order; 1 where the rows name their GPU, or there is one.
/// Takes the index out of `plan` where it is the same for all of them. An Error where rows are of several GPUs and
/// cannot be told apart: one series of them all would hide what each does.
Result<std::size_t> settle_places(const std::vector<std::vector<std::string_view>>& rows, std::string_view head,
                                  StampReader stamp, bool comma, ColumnPlan& plan,
                                  std::vector<std::string>& assumptions);

}  // namespace vramtrack
