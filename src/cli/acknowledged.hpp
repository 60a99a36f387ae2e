// Acknowledged alerts: a small file beside the store, so that what a person has seen stays seen.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack::cli {

struct AcknowledgedAlert {
  SeriesKey key;
  Timestamp raised;
};

/// One line an alert: "RAISED_NS METRIC PID START_TICKS DEVICE". Lines that cannot be read are left out; a file that is
/// not there is empty. Several programs may append at once.
class AcknowledgedFile {
 public:
  /// `store_path` with ".acknowledged" after it.
  explicit AcknowledgedFile(const std::string& store_path) : path_(store_path + ".acknowledged") {}

  [[nodiscard]] std::vector<AcknowledgedAlert> read() const;
  /// Appends one line, durably enough for what it is. Errors name the file.
  [[nodiscard]] Status append(const AcknowledgedAlert& alert) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace vramtrack::cli
