// tegrastats: "[MM-DD-YYYY HH:MM:SS ]RAM 2633/7850MB (lfb ...) ...". CPU and GPU share the memory.
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/dumps.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// Finds "RAM used/totalMB"; `before` is the text in front of it.
bool find_ram(std::string_view line, std::string_view& before, std::string_view& used, std::string_view& total) {
  std::size_t at = 0;
  while ((at = line.find("RAM ", at)) != std::string_view::npos) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') break;  // not "IRAM"
    at += 4;
  }
  if (at == std::string_view::npos) return false;
  const std::size_t slash = line.find('/', at);
  if (slash == std::string_view::npos) return false;
  used = trim(line.substr(at + 4, slash - at - 4));
  const std::string_view rest = line.substr(slash + 1);
  total = rest.substr(0, rest.find_first_of(" \t"));
  before = trim(line.substr(0, at));
  return !used.empty() && used.size() < 16 && total.size() < 24;
}

class Tegrastats final : public LineParser {
 public:
  Tegrastats(StampReader stamp, std::vector<std::string> assumptions) : LineParser(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
  }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool /*whole*/, LogRows& rows) override {
    if (trim(line).empty()) return;
    std::string_view before, used_text, total_text;
    std::uint64_t used = 0;
    std::uint64_t total = 0;
    // The unit after the total applies to both: a total without one was truncated.
    bool has_unit = false;
    if (!find_ram(line, before, used_text, total_text) ||
        logtext::read_amount(total_text, kBytesPerMiB, total, false, &has_unit) != logtext::Amount::read || !has_unit)
      return rows.skip(number, fmt::format("no 'RAM used/totalMB' in '{}'", logtext::excerpt(line)));
    logtext::Decimal number_of_total;
    logtext::read_decimal(total_text, number_of_total);
    const std::uint64_t unit = logtext::unit_bytes(total_text.substr(number_of_total.length));
    if (logtext::read_amount(used_text, unit, used) != logtext::Amount::read)
      return rows.skip(number, fmt::format("no readable amount of RAM in '{}'", logtext::excerpt(line)));
    Timestamp time;
    if (stamp_.kind() == StampReader::Kind::none) {
      time = stamp_.at_round(round_++);
    } else if (!stamp_.read(before, time)) {
      return rows.skip(number, fmt::format("no readable time before RAM in '{}'", logtext::excerpt(line)));
    }
    if (!device_) {
      LogDevice gpu;
      gpu.index = 0;
      gpu.name = "Tegra";
      device_ = rows.device(gpu);
    }
    rows.total(time, *device_, total);
    rows.add(time, rows.device_series(*device_), used);
  }

  std::optional<std::size_t> device_;
  std::uint64_t round_ = 0;
};

int recognise(std::string_view head) {
  for (int i = 0; i < 20 && !head.empty(); ++i) {
    std::string_view before, used, total;
    const std::string_view line = logtext::take_line(head);
    if (find_ram(line, before, used, total) && total.ends_with("MB") && line.find("CPU") != std::string_view::npos)
      return 90;
  }
  return 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  std::vector<std::string_view> samples;
  std::size_t bare = 0;
  std::string_view rest = head.text;
  while (!rest.empty() && samples.size() < 400) {
    std::string_view before, used, total;
    if (!find_ram(logtext::take_line(rest), before, used, total)) continue;
    if (before.empty())
      ++bare;
    else
      samples.push_back(before);
  }
  std::vector<std::string> assumptions{
      "a Tegra's GPU shares the memory of the machine: it is the RAM that all programs together use, and its growth "
      "may be "
      "that of any of them"};
  if (samples.size() <= bare) samples.clear();
  // tegrastats always writes the month first.
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions, DateOrder::month_first);
  if (!stamp) return fail(std::move(stamp.error()));
  return std::make_unique<Tegrastats>(std::move(*stamp), std::move(assumptions));
}

}  // namespace

extern const LogFormatInfo tegrastats_log_format;
const LogFormatInfo tegrastats_log_format{"tegrastats", "tegrastats --interval 1000 --logfile tegra.log", recognise,
                                          make, each_line_is_a_record};

}  // namespace vramtrack
