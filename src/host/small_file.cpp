#include "host/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace vramtrack {
namespace {

/// read() that continues after a signal.
ssize_t read_again(int fd, char* to, std::size_t count) {
  ssize_t got = 0;
  do {
    got = ::read(fd, to, count);
  } while (got < 0 && errno == EINTR);
  return got;
}

void close_keeping_errno(int fd) {
  const int saved = errno;
  ::close(fd);
  errno = saved;
}

}  // namespace

std::optional<std::string_view> read_small_file(const char* path, std::span<char> buffer) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  // /proc files deliver what fits in one read; a second read would only confirm the end, so it is omitted.
  const ssize_t got = read_again(fd, buffer.data(), buffer.size());
  close_keeping_errno(fd);
  if (got < 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(got));
}

std::optional<std::string> read_text_file(const std::string& path, std::size_t limit_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 16384> chunk;
  ssize_t got = 0;
  while (text.size() < limit_bytes && (got = read_again(fd, chunk.data(), chunk.size())) > 0)
    text.append(chunk.data(), static_cast<std::size_t>(got));
  close_keeping_errno(fd);
  if (got < 0 && text.empty()) return std::nullopt;
  if (text.size() > limit_bytes) text.resize(limit_bytes);
  return text;
}

std::string link_target(const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return length <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(length));
}

std::optional<std::uint64_t> read_number_file(const std::string& path) {
  std::array<char, 64> buffer;
  const auto text = read_small_file(path.c_str(), buffer);
  if (!text) return std::nullopt;
  const std::string_view digits = trimmed(*text);
  if (digits.substr(0, 2) == "0x") return parse_unsigned(digits.substr(2), 16);
  return parse_unsigned(digits);
}

std::string first_line(const std::string& path) {
  const auto text = read_text_file(path, 4096);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace vramtrack
