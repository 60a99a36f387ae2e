// tegrastats: "[MM-DD-YYYY HH:MM:SS ]RAM 2633/7850MB (lfb ...) ...". CPU and GPU share the memory.
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// "used/totalMB" after "RAM "; `before` is the text before it. A total without a unit has been truncated.
std::string_view find_ram(std::string_view line, std::string_view& before) {
  std::size_t at = line.find("RAM ");
  while (at != std::string_view::npos && at > 0 && !logtext::is_space(line[at - 1])) at = line.find("RAM ", at + 4);
  if (at == std::string_view::npos) return {};
  before = trim(line.substr(0, at));
  line = trim(line.substr(at + 4));
  const std::string_view pair = line.substr(0, line.find_first_of(" \t", line.find('/')));
  return pair.ends_with('B') ? pair : std::string_view{};
}

class Tegrastats final : public DumpLines {
 public:
  Tegrastats(DumpClock clock, std::vector<std::string> assumptions)
      : DumpLines(std::move(clock), std::move(assumptions)) {
    assumptions_.emplace(
        assumptions_.begin(),
        "a Tegra's GPU shares the memory of the machine: it is the RAM that all programs together use, "
        "and its growth may be that of any of them");
  }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool /*whole*/, LogRows& rows) override {
    if (trim(line).empty()) return;
    std::string_view before;
    const std::string_view ram = find_ram(line, before);
    if (ram.empty()) return rows.skip(number, fmt::format("no 'RAM used/totalMB' in '{}'", logtext::excerpt(line)));
    Timestamp time;
    if (!readings_.clock().counts()) {
      if (!readings_.read_time(before, time))
        return rows.skip(number, fmt::format("no readable time before RAM in '{}'", logtext::excerpt(line)));
      readings_.begin_at(time, rows);
    }
    LogDevice gpu;
    gpu.index = 0;
    gpu.name = "Tegra";
    if (!readings_.set_pair(std::nullopt, gpu, ram, rows))
      rows.skip(number, fmt::format("no 'RAM used/totalMB' in '{}'", logtext::excerpt(line)));
  }
};

Evidence recognise(std::string_view head) {
  for (int i = 0; i < 20 && !head.empty(); ++i) {
    std::string_view before;
    const std::string_view line = logtext::take_line(head);
    if (find_ram(line, before).ends_with("MB") && line.find("CPU") != std::string_view::npos)
      return Evidence::own_names;
  }
  return Evidence::none;
}

/// The time before a row.
std::string_view time_in(std::string_view line) {
  std::string_view before;
  Civil civil;
  return !find_ram(line, before).empty() && read_civil(before, DateOrder::month_first, civil) ? before
                                                                                              : std::string_view{};
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_dump_parser<Tegrastats>(head,
                                      DumpTimes{time_in, {}, DateOrder::month_first});  // which it always writes first
}

}  // namespace

const LogFormatInfo tegrastats_log_format{"tegrastats", "tegrastats --interval 1000 --logfile tegra.log", recognise,
                                          make, each_line_is_a_record};

}  // namespace vramtrack
