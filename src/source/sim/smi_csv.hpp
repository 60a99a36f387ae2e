// Writes samples as `nvidia-smi --query-gpu=... --format=csv` and `--query-compute-apps=...` would have
// logged them, in UTC, so that analyze reads them back.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/output_file.hpp"
#include "core/result.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"

namespace vramtrack {

class SmiCsv {
 public:
  /// Creates the files; an empty path omits that log. Relative times are written as if they had begun on
  /// 2026-01-01.
  static Result<SmiCsv> create(const std::string& device_path, const std::string& process_path);

  void write(const Batch& tick, const Catalog& catalog);
  /// Errors name the file that could not be written in full.
  Status close();

 private:
  std::optional<OutputFile> devices_;
  std::optional<OutputFile> processes_;
  std::map<std::string, long> busy_percent_;  ///< per device, as last sampled
};

}  // namespace vramtrack
