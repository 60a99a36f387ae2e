#include "trace/render/categories.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kShownNames = 3;

std::string names_words(const Symbols& symbols, const CategoryBytes& held) {
  std::string out;
  for (std::size_t i = 0; i < held.named.size() && i < kShownNames; ++i)
    out += fmt::format("{}{} ({})", i == 0 ? ": " : ", ", printable(symbols.text(held.named[i].name)),
                       format_size(held.named[i].bytes));
  if (held.named.size() > kShownNames) out += fmt::format(" and {} more", held.named.size() - kShownNames);
  return out;
}

}  // namespace

bool has_any(const CategoryTotals& totals) {
  const auto held = totals.held();
  return !held.empty() && held.front() != Category::unknown;
}

std::string categories_text(const Symbols& symbols, const CategoryTotals& totals, std::string_view indent) {
  std::string out;
  const double whole = static_cast<double>(std::max<std::int64_t>(totals.bytes(), 1));
  for (const Category category : totals.held()) {
    const CategoryBytes& held = totals[category];
    out += fmt::format("{}{:>12} {:>4.0f} % {:>16}  {}{}\n", indent, format_size(held.bytes),
                       100 * static_cast<double>(held.bytes) / whole,
                       format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(held.blocks, 0)), "block"),
                       category_words(category), names_words(symbols, held));
  }
  return out;
}

void categories_json(JsonText& j, const Symbols& symbols, const CategoryTotals& totals, std::size_t most) {
  j.begin_array();
  for (const Category category : totals.held()) {
    const CategoryBytes& held = totals[category];
    j.begin_object().field("category", category_name(category)).field("bytes", held.bytes);
    j.field("blocks", held.blocks).field("told_bytes", held.reported_bytes).key("named").begin_array();
    for (std::size_t i = 0; i < held.named.size() && i < most; ++i)
      j.begin_object().field("name", symbols.text(held.named[i].name)).field("bytes", held.named[i].bytes).end_object();
    j.end_array().end_object();
  }
  j.end_array();
}

std::string category_series_text(std::span<const CategoryTotals> moments, std::string_view indent) {
  std::string out;
  if (moments.empty() || std::none_of(moments.begin(), moments.end(), has_any)) return out;
  for (std::size_t i = 0; i < kCategories; ++i) {
    const auto category = static_cast<Category>(i);
    const auto bytes_of = [category](const CategoryTotals& totals) { return totals[category].bytes; };
    if (std::all_of(moments.begin(), moments.end(), [&](const CategoryTotals& t) { return bytes_of(t) == 0; }))
      continue;
    out += fmt::format("{}{:<16}", indent, category_words(category));
    for (const CategoryTotals& totals : moments) out += fmt::format(" {:>11}", format_size(bytes_of(totals)));
    out += fmt::format("   {}\n", format_change(bytes_of(moments.back()) - bytes_of(moments.front())));
  }
  return out;
}

}  // namespace vramtrack::trace
