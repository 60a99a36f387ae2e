// The probe's use of the process and the C library: no allocation, no locale, no symbol newer than glibc 2.17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack::probe {

/// A line of text of limited length, on the stack.
template <std::size_t kBytes>
class Line {
 public:
  Line& add(std::string_view text) {
    for (const char c : text) {
      if (size_ + 1 >= kBytes) {
        is_cut_ = true;
        return *this;
      }
      text_[size_++] = c;
    }
    text_[size_] = '\0';
    return *this;
  }
  Line& add(std::uint64_t number) {
    char digits[20];
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0) add(std::string_view(&digits[--count], 1));
    return *this;
  }
  [[nodiscard]] const char* c_str() const { return text_; }
  [[nodiscard]] std::string_view view() const { return {text_, size_}; }
  [[nodiscard]] bool is_cut() const { return is_cut_; }

 private:
  char text_[kBytes] = {};
  std::size_t size_ = 0;
  bool is_cut_ = false;
};

/// Reads at most `bytes` of a small file such as /proc/self/stat. Returns the number; 0 if there is none.
std::size_t read_file(const char* path, char* into, std::size_t bytes);
/// Field 22 of /proc/self/stat; 0 if it cannot be read.
std::uint64_t start_ticks();
/// The kernel's id of the calling thread.
std::uint64_t thread_id();
/// The variable's value from the environment; nullptr if it is not set.
const char* setting(const char* name);
/// Writes a line to standard error: "vramtrack: ...".
void warn(std::string_view text);

/// `bytes` of zeroed memory from the system, committed on access. nullptr if there is none.
void* reserve(std::size_t bytes);
void give_back(void* memory, std::size_t bytes);

/// An unfair lock without a system call in the usual case, to hold for a few instructions.
class Spin {
 public:
  void lock();
  void unlock();
  /// Call in a child after a fork, where the owner is gone. True if it was taken; the guarded data may be inconsistent.
  bool reset();

 private:
  std::uint32_t taken_ = 0;
};
/// Actions of a forked child before it continues, in any file: `function` forgets the parent's state and resets locks
/// that its other threads held. The linker builds the list, so nothing runs at loading.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration
#define VRAMTRACK_ON_FORK(function) \
  __attribute__((section("vramtrack_on_fork"), used)) void (*on_fork_##function)() = &(function)
// NOLINTEND(bugprone-macro-parentheses)
/// Called in the child by recorder.cpp.
void forget_after_fork();

class Locked {
 public:
  explicit Locked(Spin& spin) : spin_(spin) { spin_.lock(); }
  ~Locked() { spin_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Spin& spin_;
};

}  // namespace vramtrack::probe
