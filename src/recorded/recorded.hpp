// Recorded sources: what samples of the past are read from, by the kinds of recorded.def. A kind is one file that
// defines a `const RecordedInfo <name>_recorded`, and one line there.
//
// They are a module of their own because they stand on two that must not know each other: a log is read by source/, a
// store by store/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "source/log/recording.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// What the user says about recordings. Each kind takes what concerns it.
struct RecordedOptions {
  LogOptions logs;
  /// What will be looked at. A source may leave out what lies outside; who reads it must be able to do without and must
  /// expect it nevertheless.
  TimeRange range;
};

/// One independent recording: files whose samples belong into one catalog.
struct RecordedPart {
  std::vector<std::string> files;
  /// From its beginning, as often as wanted (standard input: once). The catalog must outlive the source.
  std::function<Result<std::unique_ptr<Source>>(Catalog& catalog)> open;
  /// Of a store, which has alerts, summaries and utilisation besides samples: what StoreReader reads. Empty otherwise.
  std::string store_path;
};

/// A registered kind of recorded source.
struct RecordedInfo {
  std::string_view name;  ///< "log": a word for messages
  /// 0: `path` is none; else how sure, up to 100. The highest wins, the earlier in recorded.def on a tie. What cannot
  /// be read is none, and nothing is read of what is no regular file: whoever opens a pipe needs all of it.
  int (*recognise)(const std::string& path);
  /// Groups the files into recordings, in the order given. Errors name the file and what to do.
  Result<std::vector<RecordedPart>> (*plan)(const std::vector<std::string>& paths, const RecordedOptions& options);
  std::size_t most_files = SIZE_MAX;  ///< that may be read together
  /// It goes on being written: without a range its last part is meant, of others the whole.
  bool is_ongoing = false;
};

/// The registered kinds in the order of recorded.def; by name, nullptr where there is none of it.
std::span<const RecordedInfo* const> recorded_sources();
const RecordedInfo* find_recorded(std::string_view name);

/// The kind of what `path` holds. What nothing recognises is taken for a log, whose reader says what is wrong with it.
const RecordedInfo& recorded_at(const std::string& path);

/// The recordings in `paths` (at least one) as those of `kind`. Errors are those of its plan(), or too many files.
Result<std::vector<RecordedPart>> plan_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                                const RecordedOptions& options);
/// The one recording that `paths` are together; an error when they are several.
Result<RecordedPart> plan_one_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                       const RecordedOptions& options);

}  // namespace vramtrack
