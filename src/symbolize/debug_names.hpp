// DebugNames: the functions and source lines at native return addresses, from the files' debug information (libdw).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/probe_names.hpp"

namespace vramtrack::symbolize {

/// Reads a file when a frame in it is first looked up. Debug information is taken from the file itself, from
/// /usr/lib/debug, and, only if DEBUGINFOD_URLS is set, from those servers. A file whose build id differs from the
/// recorded one is not used. Not thread-safe. Memory: libdw's, for the files read.
class DebugNames : public trace::NativeNames {
 public:
  DebugNames();
  ~DebugNames() override;
  DebugNames(const DebugNames&) = delete;
  DebugNames& operator=(const DebugNames&) = delete;

  std::vector<trace::NativeName> look_up(const std::string& module, std::string_view build_id,
                                         std::uint64_t file_offset) override;
  /// The files that have changed since the recording.
  [[nodiscard]] std::vector<std::string> notes() const override;

 private:
  class File;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::vector<std::string> notes_;
};

/// "foo::bar(int)" of "_ZN3foo3barEi"; other names as they are.
std::string demangled(const char* name);

/// Lower-case hexadecimal; empty: not an ELF file, or it has none.
std::string build_id_of(const std::string& path);

}  // namespace vramtrack::symbolize
