// When this program's memory runs out: std::bad_alloc becomes an Error at a module's boundary.
#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "core/result.hpp"

namespace vramtrack {

/// The message of such an Error. It is short enough for the string to need no allocation.
inline constexpr const char* kOutOfMemory = "out of memory";

/// Returns the Result of `body`; an Error if it ran out of memory on the way. The caller must have left
/// everything in a state from which the next call can continue.
template <class Body>
auto or_out_of_memory(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(kOutOfMemory);
  } catch (const std::length_error&) {  // more than a container can ever hold
    return fail(kOutOfMemory);
  }
}

}  // namespace vramtrack
