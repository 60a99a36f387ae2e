// PythonCode: reads the functions and lines of another process's Python frames from its memory (process_vm_readv).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "probe/python_layout.hpp"
#include "telemetry/events.h"
#include "telemetry/unwinder.hpp"

namespace vramtrack::telemetry {

struct PythonFrame {
  std::string file, name;
  std::uint32_t first_line = 0, line = 0;
  std::uint64_t code = 0;  ///< identifies the code object by address and content: addresses are reused
  bool is_entry = false;   ///< probe::kEntryFrame
};

/// For one process. A code object is read when it is first seen, and again when another one is at its address. Not
/// thread-safe.
class PythonCode {
 public:
  /// nullopt: the process runs no supported Python (3.8 to 3.14); if it runs another version, `why` states that.
  static std::optional<PythonCode> of(std::uint32_t pid, const std::vector<MappedFile>& files, std::string& why);

  /// The layout for the kernel's side.
  [[nodiscard]] telemetry_python layout() const;
  /// The frames, innermost first.
  std::vector<PythonFrame> frames(const telemetry_frame* raw, std::size_t count);

 private:
  PythonCode(std::uint32_t pid, const probe::PythonLayout& layout) : pid_(pid), layout_(layout) {}
  struct Function {
    std::uint64_t file = 0, name = 0, table = 0;  ///< the addresses of the objects it was read from
    std::uint32_t first_line = 0;
    std::string file_text, name_text;
    std::unordered_map<std::int64_t, std::uint32_t> lines;  ///< by byte offset in its code
  };
  Function* function(std::uint64_t code);

  std::uint32_t pid_;
  probe::PythonLayout layout_;
  std::unordered_map<std::uint64_t, Function> functions_;
};

/// The minor version in the name of an interpreter's program or library: 11 for "python3.11" and
/// "libpython3.11.so.1.0"; 0 if there is none.
int python_minor(std::string_view file_name);

}  // namespace vramtrack::telemetry
