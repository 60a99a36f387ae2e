// Declarations shared by the files that implement Api.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "agent/server/api.hpp"
#include "agent/server/api_json.hpp"

namespace vramtrack::agent {

/// The texts of the latest generation, so that a hundred clients cost one rendering. A text that is slow to create
/// (alerts read the store) does not delay clients that request another.
struct Api::Cache {
  struct Entry {
    std::mutex mutex;
    Text text;
  };
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries;

  /// The text `name` of `generation`, created by `make` at its first request. The text of an older generation is
  /// created again.
  template <class Make>
  Text get(std::uint64_t wanted, const std::string& name, Make make) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex);
      if (wanted > generation) {
        generation = wanted;
        entries.clear();
      }
      if (wanted == generation) {
        std::shared_ptr<Entry>& known = entries[name];
        if (!known) known = std::make_shared<Entry>();
        entry = known;
      }
    }
    if (!entry) return std::make_shared<const std::string>(make());
    const std::lock_guard lock(entry->mutex);
    if (!entry->text) entry->text = std::make_shared<const std::string>(make());
    return entry->text;
  }
};

}  // namespace vramtrack::agent
