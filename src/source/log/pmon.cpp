// nvidia-smi pmon -s m[...] [-o D|T|DT]: one row per process, GPU and reading; "-" for a GPU without processes.
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/monitor.hpp"

namespace vramtrack {
namespace {

class Pmon final : public MonitorParser {
 public:
  using MonitorParser::MonitorParser;
  [[nodiscard]] bool processes_only() const override { return true; }

 private:
  void read_row(std::uint64_t number, LogRows& rows) override {
    const std::size_t gpu = device(rows);
    if (word(columns_.pid) == "-") return;
    const auto pid = logtext::whole_number<std::uint32_t>(word(columns_.pid));
    std::uint64_t bytes = 0;
    const logtext::Amount amount = logtext::read_amount(word(columns_.fb), kBytesPerMiB, bytes);
    if (!pid || amount == logtext::Amount::bad)
      return rows.skip(number, fmt::format("no readable pid and fb memory: '{}' and '{}'",
                                           logtext::excerpt(word(columns_.pid)), logtext::excerpt(word(columns_.fb))));
    const bool has_bytes = amount == logtext::Amount::read;
    const std::size_t process =
        rows.process(gpu, *pid, word(columns_.command), word(columns_.type), {}, word(columns_.command), has_bytes);
    rows.seen(process, static_cast<double>(round_ + 1));
    if (has_bytes) rows.add(time_, rows.process_series(process), bytes);
  }
  void end_round(LogRows& rows) override {
    rows.end_unseen(LogRows::kEveryDevice, static_cast<double>(round_ + 1), time_);
  }
};

int recognise(std::string_view head) {
  MonitorColumns columns;
  return find_monitor_header(head, columns) && columns.pid >= 0 ? 91 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  auto monitor = read_monitor_head(head, "pmon");
  if (!monitor) return fail(std::move(monitor.error()));
  return std::make_unique<Pmon>(std::move(*monitor));
}

}  // namespace

extern const LogFormatInfo pmon_log_format;
const LogFormatInfo pmon_log_format{"pmon", "nvidia-smi pmon -s um -o DT", recognise, make, each_line_is_a_record};

}  // namespace vramtrack
