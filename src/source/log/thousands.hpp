// Numbers with a comma after each group of three digits, as spreadsheets write them into a CSV: "3,233 MiB".
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// Whether the quoted numbers of a table separated by commas have groups of thousands. Their commas may also be
/// decimal: "3,233 GiB" is left alone unless another number has two groups.
bool has_thousands(std::string_view head);

/// `text` without the commas of such numbers, which begin and end in the same line.
std::string without_thousands(std::string_view text);

}  // namespace vramtrack
