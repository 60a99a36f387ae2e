// Recorded logs as sources: recognises the format of each file, joins files that belong together, and streams the
// samples in time order. Formats: docs/formats/logs.md; one parser per format, listed in formats.def.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"
#include "source/source.hpp"

namespace vramtrack {

/// Options from the user for information that logs lack.
struct LogOptions {
  std::string format;                           ///< name of a format; empty: recognised by content
  std::string timezone;                         ///< IANA name, for local times; empty: this machine's
  std::optional<std::uint64_t> capacity_bytes;  ///< for devices without a total in their log
  std::optional<Timestamp> start;               ///< for logs without a clock or without a date
  std::optional<double> interval_s;             ///< time between readings, for logs without a clock
  std::string unit;                             ///< for a column without a unit: B KiB MiB GiB, MB GB (powers of ten)
  std::string line_pattern;                     ///< describes a line of text: see line_pattern.hpp
};

struct LogFormatInfo;
class LogFile;
struct PlannedFile;

/// One independent recording: a log, files that continue one another, or device logs
/// with the process logs joined to them. Move-only. Keeps no file open except standard
/// input.
class Recording {
 public:
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  /// The paths as given, device logs first.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// The format name of each file.
  [[nodiscard]] const std::vector<std::string>& formats() const { return formats_; }

 private:
  Recording();
  friend Result<std::vector<Recording>> plan_recordings(const std::vector<std::string>&, const LogOptions&);
  friend Result<std::unique_ptr<Source>> open_recording(Recording, Catalog&);

  std::vector<std::string> files_;
  std::vector<std::string> formats_;
  std::vector<std::vector<std::unique_ptr<PlannedFile>>> logs_;  ///< each in order of time
};

/// Recognises the format of every file ("-": standard input), reads it once for its times, and groups the files into
/// recordings, in the order given. Errors name the file and what to do: unreadable, binary, empty, of unknown format,
/// irrecoverably out of order, an ambiguous join (both files), an unknown time zone or format name.
Result<std::vector<Recording>> plan_recordings(const std::vector<std::string>& paths, const LogOptions& options);

/// Opens a planned recording with `catalog`, which must outlive the source. poll() appends a few thousand samples per
/// call, in time order over all series, and reads ahead only as far as that requires. A log out of order is sorted
/// first. Malformed lines are counted, and notes() names the first eight; a read error in mid-file is an Error of
/// poll().
Result<std::unique_ptr<Source>> open_recording(Recording recording, Catalog& catalog);

/// The registered formats in the order of formats.def; find_log_format() returns nullptr for an unknown name.
std::span<const LogFormatInfo* const> log_formats();
const LogFormatInfo* find_log_format(std::string_view name);

}  // namespace vramtrack

#include "source/log/format.hpp"
