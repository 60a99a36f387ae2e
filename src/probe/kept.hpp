// What keeps memory: the search that python/vramtrack/referrers.py has, run within the interpreter of a Python program
// now and then, at its end, where memory ran out, and on request. What it finds goes into the ring (Record::kept).
//
//   an allocation -> consider_look() -> a thread for this look -> Py_AddPendingCall() -> Python's main thread stands
//                     between two bytecodes, or did not come in a quarter of a second -> the thread searches, with the
//                     GIL
//
// Hooks run under locks of the program (PyTorch's allocator), so that nothing here waits, or asks Python anything, but
// in that thread. It holds no lock while it waits, takes no signal, and ends with its look.
#pragma once

#include <cstdint>

namespace vramtrack::probe {

/// A recorded block more, or less.
void count_block(int by);
/// After each allocation that is recorded. Some ns, but for the one that begins a look. `requests`: of the ring's
/// header.
void consider_look(std::uint64_t now_us, std::uint64_t requests);
/// Memory ran out: the next allocation, or this one, begins a look.
void ask_look(std::uint64_t now_us);

}  // namespace vramtrack::probe
