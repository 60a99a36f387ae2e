// What the parsers of dumps have in common (rocm-smi, amd-smi, npu-smi, dcgmi dmon, Prometheus's text).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "source/log/dump_readings.hpp"

namespace vramtrack {

/// `Reader` cuts the text: LineReader or JsonParser.
template <class Reader>
class DumpParser : public Reader {
 public:
  /// `own_times`: the values have times of their own, which are dates; the clock of the dumps is not needed.
  DumpParser(DumpClock clock, std::vector<std::string> assumptions, bool own_times = false)
      : readings_(std::move(clock)), own_times_(own_times) {
    if (own_times) assumptions.clear();
    this->assumptions_ = std::move(assumptions);
  }

  void finish(LogRows& rows) override {
    Reader::finish(rows);
    readings_.finish(rows);
  }
  [[nodiscard]] bool clock_is_relative() const override { return !own_times_ && readings_.clock().is_relative(); }
  [[nodiscard]] Scale scale() const override { return own_times_ ? Scale{} : readings_.clock().scale(); }

 protected:
  using Field = DumpReadings::Field;
  DumpReadings readings_;
  bool own_times_ = false;
};

/// A `Parser` with the clock of the head and `more` arguments. `find` finds the time in a line.
template <class Parser, class... More>
Result<std::unique_ptr<LogParser>> make_dump_parser(const LogHead& head, const DumpClock::Find& find, More&&... more) {
  std::vector<std::string> assumptions;
  auto clock = DumpClock::detect(head, assumptions, find);
  if (!clock) return fail(std::move(clock.error()));
  return std::make_unique<Parser>(std::move(*clock), std::move(assumptions), std::forward<More>(more)...);
}

}  // namespace vramtrack
