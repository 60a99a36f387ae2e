// Reads and renames the dynamic symbols in the file of a 64-bit library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// A library's file in memory. Nothing in the file is trusted: each offset is checked once against the size. Not
/// thread-safe. Takes as much memory as the file.
class ElfSymbols {
 public:
  /// An Error names the file and its fault: it cannot be read, is not a 64-bit ELF file of this byte order, or has no
  /// (or a damaged) table of dynamic symbols.
  static Result<ElfSymbols> read(const std::string& path);
  static Result<ElfSymbols> parse(std::string bytes, const std::string& path);

  /// The names of the exported functions, in table order, as views into bytes().
  [[nodiscard]] std::vector<std::string_view> functions() const;

  /// Renames symbols: pairs of an old and a new name, which must not be longer than the old one. The hash table of the
  /// System V ABI is rebuilt, and the GNU one, which requires sorted symbols, is removed from the dynamic section, so
  /// that the loader uses the former. False if the file has no such table; nothing is changed then.
  bool rename(const std::vector<std::pair<std::string, std::string>>& names);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  /// A table in the file: its offset, and its size in bytes.
  struct Part {
    std::size_t offset = 0, bytes = 0;
  };
  ElfSymbols() = default;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string_view name(std::size_t index) const;
  bool fill_hash_table();
  void hide_gnu_hash();

  std::string bytes_;
  Part symbols_, names_, hash_, dynamic_;
};

}  // namespace vramtrack::run
