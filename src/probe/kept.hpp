// What keeps memory: the search of python/vramtrack/referrers.py, run within the interpreter of a Python program
// occasionally, at its end, after out-of-memory, and on request. Its results go into the ring (Record::kept).
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
/// After each recorded allocation. Some ns, except for the one that starts a search. `requests`: of the ring's
/// header.
void consider_look(std::uint64_t now_us, std::uint64_t requests);
/// Out of memory: the next allocation, or this one, starts a search.
void ask_look(std::uint64_t now_us);

}  // namespace vramtrack::probe
