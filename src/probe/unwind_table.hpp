// Rules of .eh_frame: how to get from a frame at one address to its caller's frame. Reads tables that may be corrupt
// with a function that may fail, and neither trusts a length nor loops without a bound.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// How to compute the caller's stack pointer (the "canonical frame address") when the frame is at the address.
enum class Cfa : std::uint8_t {
  end,            ///< the outermost frame, or unknown: the stack ends here
  at_sp,          ///< sp + offset
  at_fp,          ///< fp + offset
  in_fp,          ///< the value at fp + offset (a realigned stack)
  in_sp,          ///< the value at sp + offset
  signal,         ///< the kernel's frame of a signal handler: registers are above sp
  frame_pointer,  ///< no table: the chain of frame pointers, if it is valid
};
/// Where the caller's frame pointer is.
enum class SavedFp : std::uint8_t {
  kept,     ///< still in the register
  at_cfa,   ///< saved at CFA + offset
  at_fp,    ///< saved at fp + offset
  unknown,  ///< lost
};
struct Rule {
  Cfa cfa = Cfa::end;
  SavedFp fp = SavedFp::kept;
  std::int32_t cfa_offset = 0;
  std::int32_t fp_offset = 0;
  bool operator==(const Rule&) const = default;
};

using ReadMemory = bool (*)(std::uint64_t address, void* into, std::size_t bytes);

/// `table`: address of the mapped .eh_frame_hdr. `address`: within the instruction to look up; for a return address,
/// one less than it. Cfa::frame_pointer if the table has no rule for it, or one that is not understood.
Rule find_rule(ReadMemory read, std::uint64_t table, std::uint64_t address);

}  // namespace vramtrack::probe
