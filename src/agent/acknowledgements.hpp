// Acknowledgements: who has seen which alert. A small file of its own beside the store, so that acknowledging needs no
// right to write samples, and the store's format stays as it is.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/shared_file.hpp"
#include "core/time.hpp"

namespace vramtrack::agent {

struct Acknowledgement {
  Timestamp time;
  std::string by;
  std::string note;
  friend bool operator==(const Acknowledgement&, const Acknowledgement&) = default;
};

/// `store_path` + ".acknowledged.json".
std::string acknowledgements_path(const std::string& store_path);

/// By alert_id (report/view_json.hpp). Any thread. Keeps the latest 4096. Programs that share the file see each other's
/// changes: it is read again when it has changed, and replaced whole, atomically and synced.
class Acknowledgements {
 public:
  /// `path` empty: in memory only. A file that cannot be read is reported at the first change, never overwritten.
  explicit Acknowledgements(std::string path) : file_(std::move(path), kMostBytes) {}

  [[nodiscard]] std::optional<Acknowledgement> find(const std::string& id);
  /// Adds or replaces. Errors: the file cannot be read or written; then nothing has changed.
  Status set(const std::string& id, Acknowledgement acknowledgement);
  /// Nothing to take back is not an error.
  Status remove(const std::string& id);
  /// Changes with every change, from whichever program.
  [[nodiscard]] std::uint64_t revision();

 private:
  static constexpr std::size_t kMostBytes = 8U << 20U;
  using Table = std::map<std::string, Acknowledgement>;
  Status refresh() {
    return file_.refresh([this](const std::string* text) { return take(text); });
  }
  Status take(const std::string* text);
  Status change(Table next);

  SharedFile file_;
  std::mutex mutex_;
  Table table_;
};

}  // namespace vramtrack::agent
