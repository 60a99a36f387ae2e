// Reads which lines of code grew, from the files that the Python package writes in a gated program (docs/leak-gate.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack::gate {

/// A folder for these files, removed with its contents at destruction. Its path is empty if it could not be created;
/// then there is no evidence.
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

/// Growth per line from mark number `begin` to `end`, the largest first.
struct GrownLines {
  std::string mark;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<std::pair<double, std::string>> lines;  ///< bytes, "FILE:LINE in FUNCTION"
};

/// The lines that the writer with this key reported. Empty if it wrote none, or if they are invalid: anyone who can
/// write to the folder may write anything.
GrownLines read_grown_lines(const std::string& folder, std::string_view key);

/// The lines as text for messages, one string each; empty if nothing grew.
std::vector<std::string> grown_words(const GrownLines& grown);

}  // namespace vramtrack::gate
