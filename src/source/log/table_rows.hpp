// Rewrites rows of tables within free text as lines of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// "| 1 | 8 GiB |" below "| Epoch | Memory |" becomes "Epoch: 1, Memory: 8 GiB", and so does "1 8G" below "Epoch
/// GPU_mem". From torch.cuda.memory_summary(), the current values of allocated and reserved memory become lines, and
/// its other rows are empty. Rows of gpustat become lines. Other lines stay unchanged.
class TableRows {
 public:
  /// Valid until the next call.
  std::string_view line(std::string_view line);
  /// Whether the last line belonged to a table.
  [[nodiscard]] bool in_table() const { return in_summary_ || !titles_.empty() || in_spaced_; }

 private:
  void write_row(const std::vector<std::string>& titles);
  std::string_view gpustat_row(std::string_view line);
  std::string_view summary_row(std::string_view text);
  std::string_view spaced(std::string_view line, std::string_view text);
  bool read_spaced_titles(std::string_view text);

  std::string before_;
  bool in_summary_ = false;                 ///< inside a summary of PyTorch's allocator
  std::vector<std::string> titles_;         ///< of a Markdown table
  std::vector<std::string> spaced_titles_;  ///< with spaces between them
  bool in_spaced_ = false;                  ///< the last line was one of them, or a row below them
  std::vector<std::string> cells_;
  std::string row_;
};

}  // namespace vramtrack
