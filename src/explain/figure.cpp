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
#define VRAMTRACK_FIGURE(name, key) {#name, key},
#include "explain/figures.def"
#undef VRAMTRACK_FIGURE
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
