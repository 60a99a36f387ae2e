// What the files that make up Api share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "agent/server/api.hpp"
#include "agent/server/api_json.hpp"

namespace vramtrack::agent {

/// Texts of the latest generation: a hundred clients cost one rendering. One that takes long to make (alerts read the
/// store) keeps nobody waiting who wants another.
struct Api::Cache {
  struct Entry {
    std::mutex mutex;
    Text text;
  };
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries;

  /// The text `name` of `generation`, made by `make` when it is the first to be asked for. An older generation's is
  /// made again.
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
