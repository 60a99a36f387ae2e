// Finds what keeps memory: runs the search of python/vramtrack/referrers.py within the interpreter of a Python program
// occasionally, at its end, after out-of-memory, and on request. Its results go into the ring (Record::kept).
//
//   an allocation -> consider_look() -> a thread for this look -> Py_AddPendingCall() -> Python's main thread stands
//                     between two bytecodes, or did not arrive in a quarter second -> the thread searches, with the
//                     GIL
//
// Hooks run under locks of the program (PyTorch's allocator), so nothing here waits for Python or calls it except in
// that thread. The thread holds no lock while it waits, receives no signals, and ends with its look.
#pragma once

#include <cstdint>

namespace vramtrack::probe {

/// Adds `by` to the count of recorded blocks.
void count_block(int by);
/// Call after each recorded allocation. Takes some ns, unless it starts a search. `requests`: the count in the ring's
/// header.
void consider_look(std::uint64_t now_us, std::uint64_t requests);
/// Call when out of memory. The next allocation, or this one, starts a search.
void ask_look(std::uint64_t now_us);

}  // namespace vramtrack::probe
