// What is mapped executable in this process: which file a return address lies in, where its unwind table is, and
// whether it is still the same file. Read from /proc/thread-self/maps: no loader lock, no malloc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/self.hpp"

namespace vramtrack::probe {

/// Copies memory of this process that may be gone or garbage: false rather than a fault. One system call.
bool read_memory(std::uint64_t address, void* into, std::size_t bytes);
/// As above, for one number; 0 where it cannot be read.
template <class T>
T peek(std::uint64_t address) {
  T value{};
  return read_memory(address, &value, sizeof value) ? value : T{};
}

/// One line of /proc/self/maps.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_readable = false;
  bool is_executable = false;
  std::string_view path;  ///< until the next line is read; at most 1023 bytes
};
/// false: that is no line of /proc/self/maps.
bool parse_mapping(std::string_view line, Mapping& into);

class Maps {
 public:
  Maps();
  ~Maps();
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;
  /// false: that was the last line.
  bool next(Mapping& into);

 private:
  int file_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  char buffer_[4096];
};

/// One executable mapping. Constant once it is published, but for the two flags.
struct Module {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< of `begin` in the file
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t elf = 0;       ///< where its ELF header is mapped; 0: it has none (code made at run time)
  std::uint64_t bias = 0;      ///< to add to the file's addresses
  std::uint64_t table = 0;     ///< .eh_frame_hdr; 0: none
  std::uint64_t dynamic = 0;   ///< 0: none
  std::uint64_t notes = 0;     ///< the first note segment, which holds the build id
  std::uint64_t identity = 0;  ///< of ELF header and notes
  std::uint32_t path = 0;      ///< the text's number in the ring
  bool is_program = false;     ///< the main program, not a library
  bool has_python_name = false;
  std::atomic<bool> is_gone{false};
  std::atomic<bool> is_told{false};
};

/// Numbers are from 1 and never used twice. Any thread; find() of what is known takes no lock.
class Modules {
 public:
  /// Where there are 16383 modules already, further ones stay unknown.
  static constexpr std::uint32_t kMost = 16384;

  /// 0: no module is mapped there. Reads the maps where `address` lies in none that is known, unless that was in vain
  /// just now: at most 5 % of the time goes into it.
  std::uint32_t find(std::uint64_t address);
  [[nodiscard]] const Module& operator[](std::uint32_t number) const { return modules_[number - 1]; }
  /// false: the module is no longer mapped, or another lies there. It is gone from then on.
  bool is_same(std::uint32_t number);
  /// Writes Record::module, once.
  void tell(std::uint32_t number);
  [[nodiscard]] std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  /// Changes whenever a module is gone: what was learned of addresses before does not hold.
  [[nodiscard]] std::uint32_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// In a child after a fork: everything is to be read and told again.
  void forget();

 private:
  [[nodiscard]] std::uint32_t look_up(std::uint64_t address) const;
  bool read_maps();
  void add(const Mapping& mapping, std::uint64_t elf);

  struct Range {
    std::atomic<std::uint64_t> begin;
    std::atomic<std::uint64_t> end;  ///< 0: gone
  };
  Spin spin_;
  Range* ranges_ = nullptr;
  Module* modules_ = nullptr;
  std::uint64_t next_read_ns_ = 0;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> epoch_{1};
};
Modules& modules();

/// Address of a symbol that a module exports; 0: it does not. Reads its hash table, without the loader.
std::uint64_t find_symbol(const Module& module, std::string_view name);

}  // namespace vramtrack::probe
