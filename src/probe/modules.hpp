// The executable mappings of this process: the file of a return address, its unwind table, and whether it is still the
// same file. Read from /proc/thread-self/maps: no loader lock, no malloc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/self.hpp"

namespace vramtrack::probe {

/// Copies memory of this process that may be unmapped or garbage: returns false instead of faulting. One system call.
bool read_memory(std::uint64_t address, void* into, std::size_t bytes);
/// The same for one number; 0 if it cannot be read.
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
/// False if it is not a line of /proc/self/maps.
bool parse_mapping(std::string_view line, Mapping& into);

class Maps {
 public:
  Maps();
  ~Maps();
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;
  /// False after the last line.
  bool next(Mapping& into);

 private:
  int file_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  char buffer_[4096];
};

/// One executable mapping. Constant once published, except for the two flags.
struct Module {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< the offset of `begin` in the file
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t elf = 0;       ///< address of its mapped ELF header; 0: none (code generated at run time)
  std::uint64_t bias = 0;      ///< offset to add to the file's addresses
  std::uint64_t table = 0;     ///< .eh_frame_hdr; 0: none
  std::uint64_t dynamic = 0;   ///< 0: none
  std::uint64_t notes = 0;     ///< the first note segment, which holds the build id
  std::uint64_t identity = 0;  ///< identifies the ELF header and the notes
  std::uint32_t path = 0;      ///< number of the path's text in the ring
  bool is_program = false;     ///< the main program, not a library
  bool has_python_name = false;
  std::atomic<bool> is_gone{false};
  std::atomic<bool> is_recorded{false};
};

/// Numbers start at 1 and are never reused. Any thread; find() of a known module takes no lock.
class Modules {
 public:
  /// After 16383 modules, further ones stay unknown.
  static constexpr std::uint32_t kMost = 16384;

  /// The module's number; 0: no module is mapped there. Reads the maps if `address` is in no known module, unless that
  /// just failed; this takes at most 5 % of the time.
  std::uint32_t find(std::uint64_t address);
  [[nodiscard]] const Module& operator[](std::uint32_t number) const { return modules_[number - 1]; }
  /// False if the module is no longer mapped or was replaced; it is then removed.
  bool is_same(std::uint32_t number);
  /// Writes Record::module, once.
  void record(std::uint32_t number);
  [[nodiscard]] std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  /// Changes whenever a module is removed, which invalidates cached results for addresses.
  [[nodiscard]] std::uint32_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// Call in a child after a fork: everything must be read and recorded again.
  void forget();

 private:
  [[nodiscard]] std::uint32_t look_up(std::uint64_t address) const;
  bool read_maps();
  void add(const Mapping& mapping, std::uint64_t elf);

  struct Range {
    std::atomic<std::uint64_t> begin;
    std::atomic<std::uint64_t> end;  ///< 0: removed
  };
  Spin spin_;
  Range* ranges_ = nullptr;
  Module* modules_ = nullptr;
  std::uint64_t next_read_ns_ = 0;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> epoch_{1};
};
Modules& modules();

/// The address of a symbol that a module exports; 0: not exported. Reads the hash table without the loader.
std::uint64_t find_symbol(const Module& module, std::string_view name);

}  // namespace vramtrack::probe
