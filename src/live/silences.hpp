// Silences: of which alerts nobody is told for a while, as during maintenance. A silenced alert is raised, stored and
// shown all the same. docs/notifications.md tells people of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/regex.hpp"
#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// What is silenced, from when to when, by whom and why. A matcher that is empty matches everything; an alert is
/// silenced when all of them match.
struct Silence {
  std::string id;       ///< 8 hex digits; of one of the configuration: its setting
  std::string gpu;      ///< an index ("0") or a device's id
  std::string command;  ///< regular expression, found anywhere in the command
  std::string user;
  std::uint32_t pid = 0;
  bool all = false;  ///< REQUIRED where no matcher is set: all alerts of this machine
  Timestamp begins;  ///< 1970 where it was not said: at once
  Timestamp ends;
  [[nodiscard]] bool endless() const;
  std::string by;
  std::string comment;
  friend bool operator==(const Silence&, const Silence&) = default;
};

/// What an alert is about, for the matchers: of a device's alert also the process whose growth explains it.
struct SilenceSubject {
  std::string device_id;
  std::optional<int> device_index;
  std::string command;
  std::string user;
  std::uint32_t pid = 0;
};
SilenceSubject silence_subject(const View& view, const SeriesView& series);

/// Whether `silence` is complete: a matcher or `all`, a command that is an expression, an end after its beginning and
/// after `now`, at most a year, texts of bounded length. Errors say what to give.
Status check_silence(const Silence& silence, Timestamp now);

/// `store_path` + ".silences.json".
std::string silences_path(const std::string& store_path);

/// Any thread. Programs that share the file see each other's changes, as with Acknowledgements.
class Silences {
 public:
  static constexpr std::size_t kMost = 256;  ///< that have not ended

  /// `path` empty: in memory only. A file that cannot be read is told at the first change, never overwritten.
  explicit Silences(std::string path) : path_(std::move(path)) {}

  /// Those of the configuration, which never end. What is no expression is left out: the configuration was checked.
  void configure(const NotifyConfig& config);

  /// Those that have not ended at `now`, the earliest beginning first; those of the configuration at the end.
  [[nodiscard]] std::vector<Silence> list(Timestamp now);
  /// Adds it, gives it an id, and returns it. Errors: check_silence, too many, a file that cannot be written.
  Result<Silence> add(Silence silence, Timestamp now);
  /// Ends one now; false: there is none of that id. Errors: of the configuration, a file that cannot be written.
  Result<bool> end(std::string_view id, Timestamp now);
  /// The silence under which an alert about `subject` is at `now`: the one that ends last.
  [[nodiscard]] std::optional<Silence> covering(const SilenceSubject& subject, Timestamp now);
  /// A text that changes with every change, from whichever program, and when one begins or ends by itself.
  [[nodiscard]] std::string state(Timestamp now);

 private:
  struct Entry {
    Silence silence;
    std::optional<Regex> command;
  };
  static Result<Entry> entry_of(Silence silence);
  Status refresh();
  Status write(std::vector<Entry> next, Timestamp now);

  std::string path_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Entry> configured_;
  std::uint64_t revision_ = 0;
  std::int64_t seen_ns_ = -1;  ///< change time of the file that was read
  std::uint64_t seen_inode_ = 0;
};

/// A silence as JSON, in the API and in the file, and back. `parse` checks the types and bounds, not check_silence.
std::string silence_json(const Silence& silence);
Result<Silence> parse_silence(std::string_view text);
/// The same of somebody's request: a field that it does not know is an error, and so is a missing end.
Result<Silence> asked_silence(std::string_view text);

/// The name of the GPU that somebody means: its index, its id, or the beginning of one id. Errors list the GPUs.
Result<std::string> gpu_of(const View& view, const std::string& name);

}  // namespace vramtrack
