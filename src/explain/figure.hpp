// Figure: what a number in an out-of-memory message means. A placeholder of wordings.def names one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vramtrack::explain {

/// Sizes are in bytes.
enum class Figure : std::uint8_t {
  asked,        ///< the allocation that failed
  needed,       ///< what the program needs in all, where it says that before it begins
  total,        ///< of the device (or of the host, where the message is about the host)
  free,         ///< on the device, or still available to who asked
  allocated,    ///< held by the program in its allocator
  reserved,     ///< taken from the driver by the allocator: allocated and cached
  unallocated,  ///< reserved and not allocated: the cache
  pool,         ///< held by pools of CUDA graphs, part of what is allocated
  process,      ///< of this process in all, as the driver counts it
  other,        ///< of another process; there may be several, each with its pid
  outside,      ///< of others, in one figure
  used,         ///< of the device by all, as a table beside the message shows it, made before or after
  allowed,      ///< a limit on what may be taken
  resident,     ///< host memory of a process
  piece,        ///< the largest piece that is free in the allocator
  budget,       ///< of the device, what a serving engine takes by its own setting
  weights,      ///< of the model
  kv_cache,     ///< what is left for the key-value cache
  missing,      ///< by what the weights and activations exceed the budget
  planned,      ///< needed by the program in all, as the text around the failure says
  slept,        ///< given back by a serving engine when it went to sleep
  device,       ///< the device's number
  pid,
  count,
  fraction,    ///< of the device that may be taken, 0 to 1
  tokens,      ///< of the longest request
  tokens_fit,  ///< that the key-value cache can hold
  shape,       ///< "[2048,436631]": the product of its numbers
  pieces,      ///< how many pieces are free in the allocator
  element,     ///< the name of a tensor's type: the bytes of one element
  skipped,     ///< a word or number of no use
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
  /// Takes from `other` what is missing here.
  void complete(const Figures& other);

 private:
  std::array<std::optional<double>, kFigureCount> values_;
};

}  // namespace vramtrack::explain
