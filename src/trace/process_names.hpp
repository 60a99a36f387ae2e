// ProcessNames: the texts, stacks, threads and modules of a traced process, by the numbers that its records use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "probe/wire.hpp"

namespace vramtrack::trace {

/// A frame as recorded.
struct RawFrame {
  bool is_python = false;
  bool is_entry = false;      ///< Python only: the native frames after it called the interpreter's loop
  std::uint32_t line = 0;     ///< Python only
  std::uint64_t address = 0;  ///< native: the return address; Python: number of the code object
};

struct CodeObject {
  std::uint32_t first_line = 0;
  std::uint32_t file = 0, name = 0;  ///< texts
};

struct MappedModule {
  std::string path;
  std::uint64_t begin = 0, length = 0;
  std::uint64_t file_offset = 0;
};

class ProcessNames {
 public:
  /// Keeps the record if it is of a frame, text, code object, module, thread or command line; else returns false.
  bool take(const probe::Slot& slot);

  /// The text with this number; empty if unknown.
  [[nodiscard]] std::string_view text(std::uint32_t number) const;
  /// The frames of a stack, innermost first; empty if unknown.
  [[nodiscard]] const std::vector<RawFrame>& stack(std::uint32_t number) const;
  /// The name of a thread; empty if unknown.
  [[nodiscard]] std::string_view thread_name(std::uint16_t thread) const;
  /// The code object with this number; null if unknown.
  [[nodiscard]] const CodeObject* code(std::uint32_t number) const;
  /// The module most recently mapped there; null if none.
  [[nodiscard]] const MappedModule* module_at(std::uint64_t address) const;
  /// The command line of the process; empty if unknown.
  [[nodiscard]] std::string_view command() const { return text(command_text_); }
  /// Whether any stack has Python frames.
  [[nodiscard]] bool is_python() const { return is_python_; }

 private:
  void keep_frame(const probe::Slot& slot);
  void keep_text(const probe::Slot& slot);

  std::unordered_map<std::uint32_t, std::string> texts_;
  std::unordered_map<std::uint16_t, std::uint32_t> threads_;  ///< the texts of their names
  std::unordered_map<std::uint32_t, CodeObject> codes_;
  std::unordered_map<std::uint32_t, std::vector<RawFrame>> stacks_;
  std::vector<MappedModule> modules_;
  std::uint32_t command_text_ = 0;
  bool is_python_ = false;
};

}  // namespace vramtrack::trace
