// Unwinder: the native stack of a thread as it was, from its registers and the top of its stack (libdw).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "telemetry/events.h"
#include "telemetry/mapped_files.hpp"

namespace vramtrack::telemetry {

/// Of one process. Reads its libraries' unwinding tables each once, and its
/// memory beyond the copied stack with process_vm_readv(). Not thread-safe. Cost: some 20 us a stack.
class Unwinder {
 public:
  explicit Unwinder(std::uint32_t pid);
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  /// Return addresses, innermost first, up to 128. Where unwinding stops early, what was found. `is_at_entry`: the
  /// thread is at a function's first instruction, which is not in the result; else its program counter is the first
  /// return address.
  const std::vector<std::uint64_t>& unwind(const telemetry_stack_event& event, bool is_at_entry);
  /// The files that were mapped when it last looked: it looks again when a stack leads elsewhere, ever more seldom
  /// where that finds nothing new (code that was generated at run time).
  [[nodiscard]] const std::vector<MappedFile>& files() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack::telemetry
