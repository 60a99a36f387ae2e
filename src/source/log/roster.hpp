// The devices of one recording, under all the names by which its logs refer to them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/series.hpp"

namespace vramtrack {

/// A device as one log names it. Missing names stay empty.
struct LogDevice {
  std::string uuid;        ///< "GPU-...", "MIG-..."
  std::string pci_bus_id;  ///< in the form of pci_address_of()
  std::optional<int> index;
  std::string text;  ///< any other id ("series" column, "host/3")
  std::string name;
  std::string parent_id;  ///< the GPU of a MIG instance
};

/// The device with this index, from 0 to 4095; nullopt if `text` is no such number.
std::optional<LogDevice> device_numbered(std::string_view text);

/// The same for a number after a word for GPU: "3", "cuda:1", "GPU 1", "card0", "nvidia3".
std::optional<LogDevice> device_named(std::string_view text);

/// Whether a log identifies its device.
bool has_id(const LogDevice& device);

/// How certain it is that two descriptions refer to one device. `unknown`: they have no kind of name in common. Two
/// without any id match like two with the same index: a log that does not identify its GPU has only one.
enum class SameDevice : std::uint8_t { no, unknown, by_index, by_pci, by_uuid };
SameDevice compare(const LogDevice& a, const LogDevice& b);

/// The devices of one recording, shared by its files. Not thread-safe.
class DeviceRoster {
 public:
  /// Position of the device, which is added if none matches. New information in `device` is added, except that
  /// an id once returned does not change. O(1), unless many devices without a UUID share an index or a PCI bus
  /// id.
  std::size_t resolve(const LogDevice& device);
  [[nodiscard]] const std::string& id(std::size_t at) const { return entries_[at].id; }
  [[nodiscard]] const LogDevice& device(std::size_t at) const { return entries_[at].device; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  /// Recomputes every id from all the names known so far. Call only before any id has been used.
  void assign_ids();

  /// Treats devices without a common kind of name as one: for a recording of one GPU with different names in its logs.
  bool single_device = false;

 private:
  struct Entry {
    LogDevice device;
    std::string id;
  };
  [[nodiscard]] std::size_t find(const LogDevice& device) const;
  void index(std::size_t at, const LogDevice& device);

  std::vector<Entry> entries_;
  /// For each word, the positions of the entries that have it: the first one that compare() accepts is used.
  std::unordered_map<std::string, std::vector<std::size_t>> by_word_;
  std::size_t without_uuid_ = 0;  ///< number of entries without a UUID
};

/// Catalog id of a device: UUID, else PCI bus id, else text, else index, else "0".
std::string device_id(const LogDevice& device);

}  // namespace vramtrack
