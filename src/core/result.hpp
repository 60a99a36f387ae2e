// Result<T>: a value or an Error. Returned by functions that can fail for a reason on which a user can act; nothing
// below cli/ prints, exits or lets an exception cross a module boundary.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace vramtrack {

/// What went wrong, in words on which a user can act: the file, line or offset, what was expected and what to do
/// next. Each caller may prepend what it was doing with `during`.
struct Error {
  std::string message;
  /// What was read before the failure was misunderstood: no conclusions may be drawn from it.
  bool voids_earlier = false;

  /// "opening the store: <message>". Returns a new Error; cost: one string.
  [[nodiscard]] Error during(const std::string& what) const { return Error{what + ": " + message, voids_earlier}; }
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

/// `return fail("no such file");` from a function that returns any Result.
inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace vramtrack
