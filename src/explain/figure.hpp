// Figure: the meaning of a number in an out-of-memory message, named by a placeholder in wordings.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack::explain {

/// figures.def has all of them.
enum class Figure : std::uint8_t {
#define VRAMTRACK_FIGURE(name, key) name,
#include "explain/figures.def"
#undef VRAMTRACK_FIGURE
};
inline constexpr std::size_t kFigureCount = static_cast<std::size_t>(Figure::skipped) + 1;

/// nullopt: no figure has that name.
std::optional<Figure> figure_of(std::string_view name);
/// "asked_bytes", "device": the key in the JSON output.
std::string_view figure_key(Figure figure);
/// Whether its value is a number of bytes.
bool is_size(Figure figure);

/// The figures of one failure; each may be missing.
class Figures {
 public:
  [[nodiscard]] std::optional<double> get(Figure figure) const { return values_[static_cast<std::size_t>(figure)]; }
  void set(Figure figure, double value) { values_[static_cast<std::size_t>(figure)] = value; }
  void clear(Figure figure) { values_[static_cast<std::size_t>(figure)].reset(); }
  [[nodiscard]] std::size_t count() const;
  /// No figure has two values that differ by more than `tolerance` of the larger one.
  [[nodiscard]] bool agrees_with(const Figures& other, double tolerance) const;
  /// Takes missing figures from `other`.
  void complete(const Figures& other);

 private:
  std::array<std::optional<double>, kFigureCount> values_;
};

/// A process that a text names in addition to the one that failed.
struct OtherProcess {
  double pid = 0;  ///< 0: not reported
  double bytes = 0;
  std::string name;  ///< untrusted text; empty: not reported
};

}  // namespace vramtrack::explain
