// Figure: the meaning of a number in an out-of-memory message, named by a placeholder in wordings.def.
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
  needed,       ///< what the program needs in total, if it reports that before it starts
  total,        ///< of the device (or of the host, if the message is about the host)
  free,         ///< on the device, or still available to the requester
  allocated,    ///< held by the program in its allocator
  reserved,     ///< taken from the driver by the allocator: allocated plus cached
  unallocated,  ///< reserved but not allocated: the cache
  pool,         ///< held by pools of CUDA graphs, included in allocated
  process,      ///< of this process in total, as the driver counts it
  other,        ///< of another process; may occur several times, each with its pid
  outside,      ///< of others, as one figure
  used,         ///< in use on the device, as shown by a table near the message, made before or after
  allowed,      ///< a limit on memory
  resident,     ///< host memory of a process
  piece,        ///< the largest free piece in the allocator
  budget,       ///< of the device, reserved by a serving engine's own setting
  weights,      ///< of the model
  kv_cache,     ///< left for the key-value cache
  missing,      ///< by which the weights and activations exceed the budget
  planned,      ///< needed by the program in total, according to the text around the failure
  slept,        ///< freed by a serving engine when it went to sleep
  device,       ///< the device index
  pid,
  count,
  fraction,    ///< share of the device that may be taken, 0 to 1
  tokens,      ///< length of the longest request
  tokens_fit,  ///< capacity of the key-value cache
  shape,       ///< "[2048,436631]": the product of its numbers
  pieces,      ///< number of free pieces in the allocator
  element,     ///< the name of a tensor's type: gives the bytes of one element
  skipped,     ///< a word or number that is ignored
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

}  // namespace vramtrack::explain
