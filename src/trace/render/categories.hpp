// The table of categories, for several of the documents of render.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/json_text.hpp"
#include "trace/category.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Whether any category other than unknown holds memory.
bool has_any(const CategoryTotals& totals);
/// One line per category that holds anything, with the largest of its named tensors.
std::string categories_text(const Symbols& symbols, const CategoryTotals& totals, std::string_view indent);
/// [{"category", "bytes", "blocks", "told_bytes", "named": [{"name", "bytes"}, ...]}, ...], with at most `most` named
/// tensors.
void categories_json(JsonText& json, const Symbols& symbols, const CategoryTotals& totals, std::size_t most);

/// "optimizer state 6.0 MiB (+4.0 MiB)": one line per category that holds anything at any of the moments, with its
/// bytes at each, and the change from the first to the last.
std::string category_series_text(std::span<const CategoryTotals> moments, std::string_view indent);

}  // namespace vramtrack::trace
