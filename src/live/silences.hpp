// Silences: alerts of which nobody is notified for a while, as during maintenance. A silenced alert is still raised,
// stored and shown. docs/notifications.md describes them for users.
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
#include "core/shared_file.hpp"
#include "core/time.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// What is silenced, from when to when, by whom and why. An empty matcher matches everything; an alert is silenced if
/// all of them match.
struct Silence {
  std::string id;       ///< 8 hex digits; for one from the configuration: its setting
  std::string gpu;      ///< an index ("0") or a device's id
  std::string command;  ///< regular expression, found anywhere in the command
  std::string user;
  std::uint32_t pid = 0;
  bool all = false;  ///< REQUIRED if no matcher is set: all alerts of this machine
  Timestamp begins;  ///< 1970 if not given: at once
  Timestamp ends;
  [[nodiscard]] bool endless() const;
  std::string by;
  std::string comment;
  friend bool operator==(const Silence&, const Silence&) = default;
};

/// The subject of an alert, for the matchers; for a device's alert also the process whose growth explains it.
struct SilenceSubject {
  std::string device_id;
  std::optional<int> device_index;
  std::string command;
  std::string user;
  std::uint32_t pid = 0;
};
SilenceSubject silence_subject(const View& view, const SeriesView& series);

/// Checks that `silence` is complete: a matcher or `all`, a command that is a valid expression, an end after its
/// beginning and after `now`, at most a year, texts of bounded length. Errors state what to give.
Status check_silence(const Silence& silence, Timestamp now);

/// `store_path` + ".silences.json".
std::string silences_path(const std::string& store_path);

/// Any thread. Programs that share the file see each other's changes, as with Acknowledgements.
class Silences {
 public:
  static constexpr std::size_t kMost = 256;  ///< among those that have not ended

  /// `path` empty: in memory only. A file that cannot be read is reported at the first change, never overwritten.
  explicit Silences(std::string path) : file_(std::move(path), kMostBytes) {}

  /// Those of the configuration, which never end. Invalid expressions are ignored: the configuration was checked.
  void configure(const NotifyConfig& config);

  /// Those that have not ended at `now`, the earliest beginning first; those of the configuration come last.
  [[nodiscard]] std::vector<Silence> list(Timestamp now);
  /// Adds it, gives it an id, and returns it. Errors: check_silence, too many, a file that cannot be written.
  Result<Silence> add(Silence silence, Timestamp now);
  /// Ends one now; false if none has that id. Errors: it is from the configuration, a file that cannot be written.
  Result<bool> end(std::string_view id, Timestamp now);
  /// The silence that covers an alert about `subject` at `now`: the one that ends last.
  [[nodiscard]] std::optional<Silence> covering(const SilenceSubject& subject, Timestamp now);
  /// A text that changes with every change, by whichever program, and when one begins or ends by itself.
  [[nodiscard]] std::string state(Timestamp now);

 private:
  static constexpr std::size_t kMostBytes = 4U << 20U;
  struct Entry {
    Silence silence;
    std::optional<Regex> command;
  };
  static Result<Entry> entry_of(Silence silence);
  Status refresh() {
    return file_.refresh([this](const std::string* text) { return take(text); });
  }
  Status take(const std::string* text);
  Status write(std::vector<Entry> next, Timestamp now);

  SharedFile file_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Entry> configured_;
};

/// A silence as JSON, in the API and in the file, and back. `parse` checks types and bounds; it does not check_silence.
std::string silence_json(const Silence& silence);
Result<Silence> parse_silence(std::string_view text);
/// The same for a user's request: an unknown field is an error, and so is a missing end.
Result<Silence> asked_silence(std::string_view text);

/// The id of the GPU that the user means: by its index, its id, or the beginning of one id. Errors list the GPUs.
Result<std::string> gpu_of(const View& view, const std::string& name);

}  // namespace vramtrack
