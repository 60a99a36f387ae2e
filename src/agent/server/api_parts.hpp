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

inline Response error(int status, std::string_view code, std::string_view message) {
  return text_response(status, "application/json", error_json(code, message));
}

/// Texts of the latest generation: a hundred clients cost one rendering.
struct Api::Cache {
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::map<std::string, Text> texts;

  /// The text `name` of `generation`, made by `make` when it is the first to be asked for. An older generation's is
  /// made anew.
  template <class Make>
  Text get(std::uint64_t wanted, const std::string& name, Make make) {
    const std::lock_guard lock(mutex);
    if (wanted < generation) return std::make_shared<const std::string>(make());
    if (wanted > generation) {
      generation = wanted;
      texts.clear();
    }
    Text& text = texts[name];
    if (!text) text = std::make_shared<const std::string>(make());
    return text;
  }
};

}  // namespace vramtrack::agent
