#include "source/log/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr int kDeepest = 64;

}  // namespace

struct JsonValue::Reader {
  /// False when `from` is nested too deep.
  static bool take(const nlohmann::json& from, JsonValue& to, int depth) {
    if (depth > kDeepest) return false;
    if (from.is_object() || from.is_array()) {
      to.kind_ = from.is_object() ? Kind::object : Kind::array;
      to.members_.reserve(from.size());
      for (auto it = from.begin(); it != from.end(); ++it) {
        to.members_.emplace_back(from.is_object() ? it.key() : std::string(), JsonValue());
        if (!take(*it, to.members_.back().second, depth + 1)) return false;
      }
    } else if (from.is_string()) {
      to.kind_ = Kind::string;
      to.text_ = from.get<std::string>();
    } else if (from.is_number()) {
      to.kind_ = Kind::number;
      to.number_ = from.get<double>();
      to.text_ = from.is_number_integer() ? from.dump() : fmt::format("{:.6f}", to.number_);
    } else if (from.is_boolean()) {
      to.kind_ = Kind::boolean;
    }
    return true;
  }
};

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  const nlohmann::json read = nlohmann::json::parse(text, nullptr, false);
  JsonValue value;
  if (read.is_discarded() || !Reader::take(read, value, 0)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> JsonValue::whole() const {
  return is_number() ? logtext::whole_number<std::int64_t>(text_) : std::nullopt;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const auto it = std::find_if(members_.begin(), members_.end(), [key](const auto& m) { return m.first == key; });
  return it == members_.end() ? nullptr : &it->second;
}

std::string json_line(const std::map<std::string, double>& numbers) {
  return nlohmann::json(numbers).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace vramtrack
