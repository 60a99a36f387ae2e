// The message for an errno value.
#pragma once

#include <string>

namespace vramtrack {

/// "No such file or directory". Thread-safe, unlike strerror(); does not change errno.
std::string errno_words(int error);

}  // namespace vramtrack
