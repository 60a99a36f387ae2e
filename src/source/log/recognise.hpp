// Finds out what a log is from its first 256 KiB.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"
#include "source/log/log_file.hpp"
#include "source/log/recording.hpp"
#include "source/log/zone.hpp"

namespace vramtrack {

/// A file that was recognised, and all that is needed to open it again.
struct PlannedFile {
  std::string path;
  std::string shown;  ///< path for messages
  LogOptions options;
  Zone zone;
  Probe probe;
  std::unique_ptr<LineInput> input;  ///< of standard input, which cannot be opened twice
};

/// Recognises `path`; errors name it.
Result<std::unique_ptr<PlannedFile>> recognise_log(const std::string& path, const LogOptions& options,
                                                   const Zone& zone);

/// Recognises text already at hand (the fuzzer's way in): the format and its parser.
struct RecognisedText {
  const LogFormatInfo* format = nullptr;
  std::unique_ptr<LogParser> parser;
};
Result<RecognisedText> recognise_text(const LogHead& head);

/// Opens a planned file for reading from its start. `catalog` and `roster` must outlive the result.
Result<std::unique_ptr<LogFile>> open_log(PlannedFile& planned, Catalog& catalog, DeviceRoster& roster);

}  // namespace vramtrack
