// Unwinder: reconstructs a thread's native stack from its registers and the copied top of its stack (libdw).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "telemetry/events.h"
#include "telemetry/mapped_files.hpp"

namespace vramtrack::telemetry {

/// For one process. Reads the unwinding tables of each of its libraries once, and memory beyond the copied stack with
/// process_vm_readv(). Not thread-safe. Cost: about 20 us per stack.
class Unwinder {
 public:
  explicit Unwinder(std::uint32_t pid);
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// Return addresses, innermost first, up to 128; if unwinding stops early, those found. `is_at_entry`: the thread is
  /// at a function's first instruction, which is not in the result; otherwise its program counter is the first return
  /// address.
  const std::vector<std::uint64_t>& unwind(const telemetry_stack_event& event, bool is_at_entry);
  /// The files that were mapped when it last read the list. It reads the list again when a stack leads elsewhere, and
  /// less and less often if that finds nothing new (code generated at run time).
  [[nodiscard]] const std::vector<MappedFile>& files() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack::telemetry
