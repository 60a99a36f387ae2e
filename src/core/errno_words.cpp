#include "core/errno_words.hpp"

#include <cerrno>
#include <system_error>

namespace vramtrack {

std::string errno_words(int error) {
  const int before = errno;
  std::string words = std::generic_category().message(error);
  errno = before;
  return words;
}

}  // namespace vramtrack
