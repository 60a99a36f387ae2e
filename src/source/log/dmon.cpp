// nvidia-smi dmon -s m[...] [-o D|T|DT]: one row per GPU and reading, memory in the fb column (MB of 2^20 bytes).
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/monitor.hpp"

namespace vramtrack {
namespace {

class Dmon final : public MonitorParser {
 public:
  using MonitorParser::MonitorParser;

 private:
  void read_row(std::uint64_t number, LogRows& rows) override {
    std::uint64_t bytes = 0;
    const logtext::Amount amount = logtext::read_amount(word(columns_.fb), kBytesPerMiB, bytes);
    if (amount == logtext::Amount::bad)
      return rows.skip(number,
                       fmt::format("no readable memory in the fb column: '{}'", logtext::excerpt(word(columns_.fb))));
    if (amount == logtext::Amount::read) rows.add(time_, rows.device_series(device(rows)), bytes);
  }
};

int recognise(std::string_view head) {
  MonitorColumns columns;
  return find_monitor_header(head, columns) && columns.pid < 0 ? 90 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  auto monitor = read_monitor_head(head, "dmon");
  if (!monitor) return fail(std::move(monitor.error()));
  return std::make_unique<Dmon>(std::move(*monitor));
}

}  // namespace

extern const LogFormatInfo dmon_log_format;
const LogFormatInfo dmon_log_format{"dmon", "nvidia-smi dmon -s um -o DT", recognise, make, each_line_is_a_record};

}  // namespace vramtrack
