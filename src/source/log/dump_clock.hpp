// When the dumps of a log were made: tools that print no time are run in a loop, with `date` between the runs or with
// nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/format.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {

/// The time in a line that holds little else: "==== Sun May 4 04:27:32 AM EDT 2025 ====", "Date: 2026-03-01 10:00:00",
/// "# 1772359200" (seconds since 1970). Empty when it holds none.
std::string_view dated_text(std::string_view line);

/// Not thread-safe.
class DumpClock {
 public:
  using Find = std::function<std::string_view(std::string_view line)>;

  /// Settles by the lines of the head how times are written. `find` finds the time in a line.
  static Result<DumpClock> detect(const LogHead& head, std::vector<std::string>& assumptions,
                                  const Find& find = dated_text);

  /// True when `text` is a time: the dump that follows was made then.
  bool take(std::string_view text);
  /// The time of a dump that begins. Where dates are written each dump needs its own: nullopt when there was none since
  /// the dump before.
  std::optional<Timestamp> next();
  /// Reads a time that stands in the rows themselves.
  bool read(std::string_view text, Timestamp& time) { return stamp_.read(text, time); }

  [[nodiscard]] bool is_relative() const { return stamp_.is_relative(); }
  [[nodiscard]] bool counts() const { return stamp_.kind() == StampReader::Kind::none; }

 private:
  StampReader stamp_;
  std::optional<Timestamp> time_;
  std::uint64_t round_ = 0;
};

}  // namespace vramtrack
