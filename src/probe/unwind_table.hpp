// Rules of .eh_frame: how to get from a frame to its caller's at one address. Reads tables that may be corrupt, through
// a function that may fail, and neither trusts a length nor loops without a bound.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe {

/// Where the caller's stack pointer is (the "canonical frame address") when the frame is at the address.
enum class Cfa : std::uint8_t {
  end,            ///< the outermost frame, or nothing is known: the stack ends here
  at_sp,          ///< sp + offset
  at_fp,          ///< fp + offset
  in_fp,          ///< what lies at fp + offset (a realigned stack)
  in_sp,          ///< what lies at sp + offset
  signal,         ///< the kernel's frame of a signal handler: registers lie above sp
  frame_pointer,  ///< no table: the chain of frame pointers, if it is sane
};
/// Where the caller's frame pointer is.
enum class SavedFp : std::uint8_t {
  kept,     ///< in the register still
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

/// `table`: where .eh_frame_hdr is mapped. `address`: within the instruction whose rule is wanted; for a return
/// address, one less than it. Cfa::frame_pointer where the table has nothing for it, or nothing that is understood.
Rule find_rule(ReadMemory read, std::uint64_t table, std::uint64_t address);

}  // namespace vramtrack::probe
