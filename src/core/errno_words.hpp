// The message for a value of errno.
#pragma once

#include <string>

namespace vramtrack {

/// "No such file or directory". Thread-safe, unlike strerror(); does not change errno.
std::string errno_words(int error);

}  // namespace vramtrack
