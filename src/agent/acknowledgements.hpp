// Acknowledgements: who has seen which alert. They are in a small separate file beside the store, so that acknowledging
// needs no right to write samples, and the store's format does not change.
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

/// Returns `store_path` + ".acknowledged.json".
std::string acknowledgements_path(const std::string& store_path);

/// Keyed by alert_id (report/view_json.hpp). Any thread. Keeps the latest 4096. Programs that share the file see each
/// other's changes: it is read again after a change, and replaced as a whole, atomically and synced.
class Acknowledgements {
 public:
  /// Empty `path`: in memory only. A file that cannot be read is reported at the first change and never overwritten.
  explicit Acknowledgements(std::string path) : file_(std::move(path), kMostBytes) {}

  [[nodiscard]] std::optional<Acknowledgement> find(const std::string& id);
  /// Adds or replaces. Errors: the file cannot be read or written; nothing is changed then.
  Status set(const std::string& id, Acknowledgement acknowledgement);
  /// It is not an error if there is nothing to remove.
  Status remove(const std::string& id);
  /// A number that changes whenever an acknowledgement does, in any program.
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
