#include "source/log/no_processes.hpp"

#include <algorithm>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

class NoProcesses final : public LogParser {
 public:
  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool /*complete*/, LogRows& /*rows*/) override {
    return first_line + static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  [[nodiscard]] bool clock_is_relative() const override { return false; }
  [[nodiscard]] bool processes_only() const override { return true; }
};

/// Every line says so; `head` has at least one that is not blank.
int recognise(std::string_view head) {
  bool says_so = false;
  while (!head.empty()) {
    const std::string_view line = logtext::trim(logtext::take_line(head));
    if (line.empty()) continue;
    if (line.find("No running") == std::string_view::npos || line.find("processes found") == std::string_view::npos)
      return 0;
    says_so = true;
  }
  return says_so ? 100 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& /*head*/) {
  return std::make_unique<NoProcesses>();
}

}  // namespace

extern const LogFormatInfo no_processes_log_format;
const LogFormatInfo no_processes_log_format{"no-processes",
                                            "nvidia-smi --query-compute-apps=... where no process is visible",
                                            recognise, make, each_line_is_a_record};

}  // namespace vramtrack
