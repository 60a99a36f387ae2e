// The lines of code that grew, in the files that the Python package in a gated program writes (docs/leak-gate.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack::gate {

/// A folder for them, which is removed with its contents. Its path is empty if it could not be created: then there is
/// no evidence.
class EvidenceFolder {
 public:
  EvidenceFolder();
  ~EvidenceFolder();
  EvidenceFolder(const EvidenceFolder&) = delete;
  EvidenceFolder& operator=(const EvidenceFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Growth from mark number `begin` to `end` by line, the largest first.
struct GrownLines {
  std::string mark;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<std::pair<double, std::string>> lines;  ///< bytes, "FILE:LINE in FUNCTION"
};

/// The lines of the writer with that key. Empty if it wrote none, or nothing that can be read: anyone who can write
/// there may write anything.
GrownLines read_grown_lines(const std::string& folder, std::string_view key);

/// For messages, one line each; empty if nothing grew.
std::vector<std::string> grown_words(const GrownLines& grown);

}  // namespace vramtrack::gate
