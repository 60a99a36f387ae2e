// When the dumps of a log were made: tools that print no time are run in a loop, with or without `date` between the
// runs.
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

/// The time in a line that has little else: "==== Sun May 4 04:27:32 AM EDT 2025 ====", "Date: 2026-03-01 10:00:00",
/// "# 1772359200" (seconds since 1970). Empty when there is none.
std::string_view dated_text(std::string_view line);

/// Not thread-safe.
class DumpClock {
 public:
  using Find = std::function<std::string_view(std::string_view line)>;

  /// Determines from the lines of the head how times are written. `find` finds the time in a line.
  static Result<DumpClock> detect(const LogHead& head, std::vector<std::string>& assumptions,
                                  const Find& find = dated_text);

  /// True when `text` is a time: the dump that follows was made then.
  bool take(std::string_view text);
  /// The time of the dump that begins. If the log has dates, each dump needs its own: nullopt when there was none since
  /// the previous dump.
  std::optional<Timestamp> next();
  /// Reads a time that is in the rows themselves.
  bool read(std::string_view text, Timestamp& time) { return stamp_.read(text, time); }

  [[nodiscard]] bool is_relative() const { return stamp_.is_relative(); }
  /// What counts() counts, if there is no time.
  [[nodiscard]] Scale scale() const { return stamp_.scale(); }
  [[nodiscard]] bool counts() const { return stamp_.kind() == StampReader::Kind::none; }

 private:
  StampReader stamp_;
  std::optional<Timestamp> time_;
  std::uint64_t round_ = 0;
};

}  // namespace vramtrack
