// Recorded sources: what samples of the past are read from. The kinds are listed in recorded.def: a kind is one file
// that defines a `const RecordedInfo <name>_recorded`, and one line there.
//
// They are a separate module because they depend on two modules that must not know each other: source/ reads logs,
// and store/ reads stores.
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

/// The user's options for recordings. Each kind uses those that concern it.
struct RecordedOptions {
  LogOptions logs;
  /// The range of interest. A source may leave out what lies outside, or include it; the reader must be able to handle
  /// both.
  TimeRange range;
};

/// One independent recording: files whose samples belong in one catalog.
struct RecordedPart {
  std::vector<std::string> files;
  /// Opens it from its beginning, any number of times (standard input: once). The catalog must outlive the source.
  std::function<Result<std::unique_ptr<Source>>(Catalog& catalog)> open;
  /// For a store, which has alerts, summaries and utilisation besides samples: its path, for StoreReader. Else empty.
  std::string store_path;
  /// Nothing will ever follow its last sample, so that a suspicion is decided there (Engine::end_of_recording). A store
  /// is still being written: its next watch will show more.
  [[nodiscard]] bool is_closed() const { return store_path.empty(); }
};

/// A registered kind of recorded source.
struct RecordedInfo {
  std::string_view name;  ///< "log": a word for messages
  /// 0: `path` is not of this kind; else how certain, up to 100. The highest wins; on a tie, the earlier one in
  /// recorded.def. 0 for what cannot be read. Only regular files are read from: a pipe must reach its reader whole.
  int (*recognise)(const std::string& path);
  /// Groups the files into recordings, in the order given. Errors name the file and what to do.
  Result<std::vector<RecordedPart>> (*plan)(const std::vector<std::string>& paths, const RecordedOptions& options);
  std::size_t most_files = SIZE_MAX;  ///< that may be read together
  /// It is still being written: without a range its last part is used, for others the whole file.
  bool is_ongoing = false;
};

/// The registered kinds in the order of recorded.def; by name, nullptr if there is none with that name.
std::span<const RecordedInfo* const> recorded_sources();
const RecordedInfo* find_recorded(std::string_view name);

/// The kind of recording at `path`. A file that nothing recognises is read as a log, whose reader says what is wrong
/// with it.
const RecordedInfo& recorded_at(const std::string& path);

/// The recordings of `kind` in `paths` (at least one). Errors are those of its plan(), or too many files.
Result<std::vector<RecordedPart>> plan_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                                const RecordedOptions& options);
/// The single recording that `paths` form; an error when there are several.
Result<RecordedPart> plan_one_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                       const RecordedOptions& options);

}  // namespace vramtrack
