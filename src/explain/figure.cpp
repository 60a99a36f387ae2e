#include "explain/figure.hpp"

#include <algorithm>
#include <cmath>

namespace vramtrack::explain {
namespace {

struct Named {
  std::string_view name;  ///< in wordings.def
  std::string_view key;   ///< in the JSON output
};

constexpr std::array<Named, kFigureCount> kNames = {{
    {"asked", "asked_bytes"},
    {"needed", "needed_bytes"},
    {"total", "total_bytes"},
    {"free", "free_bytes"},
    {"allocated", "allocated_bytes"},
    {"reserved", "reserved_bytes"},
    {"unallocated", "unallocated_bytes"},
    {"pool", "pool_bytes"},
    {"process", "process_bytes"},
    {"other", "other_bytes"},
    {"outside", "outside_bytes"},
    {"used", "used_bytes"},
    {"allowed", "allowed_bytes"},
    {"resident", "resident_bytes"},
    {"piece", "largest_free_bytes"},
    {"budget", "budget_bytes"},
    {"weights", "weights_bytes"},
    {"kv_cache", "kv_cache_bytes"},
    {"missing", "missing_bytes"},
    {"planned", "planned_bytes"},
    {"slept", "slept_bytes"},
    {"device", "device"},
    {"pid", "pid"},
    {"count", "count"},
    {"fraction", "fraction"},
    {"tokens", "tokens"},
    {"tokens_fit", "tokens_fit"},
    {"shape", "shape"},
    {"pieces", "free_pieces"},
    {"element", "element"},
    {"skipped", "skipped"},
}};

}  // namespace

std::optional<Figure> figure_of(std::string_view name) {
  for (std::size_t i = 0; i < kFigureCount; ++i)
    if (kNames[i].name == name) return static_cast<Figure>(i);
  return std::nullopt;
}

std::string_view figure_key(Figure figure) {
  return kNames[static_cast<std::size_t>(figure)].key;
}

bool is_size(Figure figure) {
  return figure < Figure::device;
}

std::size_t Figures::count() const {
  return static_cast<std::size_t>(
      std::count_if(values_.begin(), values_.end(), [](const auto& value) { return value.has_value(); }));
}

bool Figures::agrees_with(const Figures& other, double tolerance) const {
  for (std::size_t i = 0; i < kFigureCount; ++i) {
    if (!values_[i] || !other.values_[i]) continue;
    if (std::abs(*values_[i] - *other.values_[i]) >
        tolerance * std::max(std::abs(*values_[i]), std::abs(*other.values_[i])))
      return false;
  }
  return true;
}

void Figures::complete(const Figures& other) {
  for (std::size_t i = 0; i < kFigureCount; ++i)
    if (!values_[i]) values_[i] = other.values_[i];
}

}  // namespace vramtrack::explain
