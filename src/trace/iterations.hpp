// Iterations: whether a program iterated its own loop between two moments of a trace or was in one long call.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// What a trace shows about the program's loop between two entries.
///
///   main.py:9 train()                              <- the driver: the program's own frames, from the outermost
///     train.py:70 model(x)                            to where it calls PyTorch
///       torch/nn/modules/module.py _wrapped_call
///         model.py:20 forward                      <- inside one call: layers repeat here without any iteration
///
/// Allocations of one forward pass, or of one step of an optimizer, have the same driver, however many there are.
/// An iteration changes the driver (it loads the batch, calls the model, does the optimizer's step) and returns to it.
/// Threads without Python frames, such as those of the backward pass, are one driver.
class Iterations {
 public:
  /// Reads entries `first` to `last` of the device's trace in one pass.
  Iterations(const Snapshot& snapshot, std::uint32_t device, const Symbols& symbols, std::uint64_t first,
             std::uint64_t last);

  /// How often the program returned to the driver of `stack` after another one, up to the entry `event`.
  [[nodiscard]] std::size_t rounds(StackId stack, std::uint64_t event) const;
  /// False if all allocations have one driver, as without recorded stacks; then rounds() means nothing.
  [[nodiscard]] bool can_tell() const { return returns_.size() > 1; }
  /// Number of steps in PyTorch's own annotations (Optimizer.step, ProfilerStep) up to the entry `event`.
  [[nodiscard]] std::size_t annotated_steps(std::uint64_t event) const;

 private:
  std::uint32_t driver_of(StackId stack, const Symbols& symbols);

  const DeviceTrace* trace_ = nullptr;
  std::unordered_map<std::uint32_t, std::uint32_t> driver_by_stack_;
  std::unordered_map<std::uint64_t, std::uint32_t> driver_by_frames_;  ///< by a hash of the frames
  std::vector<std::vector<std::uint64_t>> returns_;                    ///< by driver: the entries of its rounds
  std::vector<std::int64_t> step_times_us_;                            ///< ascending
};

}  // namespace vramtrack::trace
