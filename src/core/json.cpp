#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "core/json_text.hpp"
#include "core/printable.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kDeepest = 64;

/// The fewest digits, with a point or an exponent: a number that was not an integer remains one when it is read.
void write_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char text[32];  // "-1.7976931348623157e+308"
  const char* end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
  const char* at = text;
  if (*at == '-') out += *at++;
  std::string digits;
  for (; *at != 'e'; ++at)
    if (*at != '.') digits += *at;
  ++at;
  int exponent = 0;
  std::from_chars(*at == '+' ? at + 1 : at, end, exponent);
  const auto count = static_cast<int>(digits.size());
  const int before_point = exponent + 1;  // digits
  constexpr int kMostBeforePoint = 15;
  constexpr int kMostZerosBehind = 3;
  const auto zeros = [](int how_many) { return std::string(static_cast<std::size_t>(how_many), '0'); };
  if (count <= before_point && before_point <= kMostBeforePoint) {
    out += digits + zeros(before_point - count) + ".0";
  } else if (before_point > 0 && before_point <= kMostBeforePoint) {
    out += digits.insert(static_cast<std::size_t>(before_point), 1, '.');
  } else if (before_point <= 0 && -before_point <= kMostZerosBehind) {
    out += "0." + zeros(-before_point) + digits;
  } else {
    if (count > 1) digits.insert(1, 1, '.');
    out += fmt::format("{}e{}{:02}", digits, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
}

}  // namespace

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(const std::map<std::string, std::string>& texts) : value_(Members()) {
  for (const auto& [name, text] : texts) items().emplace_back(name, text);
}

Json::Json(std::initializer_list<JsonItem> items) {
  const bool is_object = std::all_of(items.begin(), items.end(), [](const JsonItem& item) {
    return item.value_.is_array() && item.value_.size() == 2 && item.value_[std::size_t{0}].is_string();
  });
  if (!is_object) {
    auto& values = value_.emplace<std::vector<Json>>();
    values.reserve(items.size());
    for (const JsonItem& item : items) values.push_back(std::move(item.value_));
    return;
  }
  auto& members = value_.emplace<Members>();
  members.reserve(items.size());
  for (const JsonItem& item : items)
    (*this)[std::get<std::string>(item.value_[std::size_t{0}].value_)] = std::move(item.value_[std::size_t{1}]);
}

Json Json::array() {
  Json out;
  out.value_.emplace<std::vector<Json>>();
  return out;
}

Json Json::object() {
  Json out;
  out.value_.emplace<Members>();
  return out;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_.emplace<Members>();
  Members& members = items();
  const auto known = std::find_if(members.begin(), members.end(), [name](const auto& m) { return m.first == name; });
  return known != members.end() ? known->second : members.emplace_back(std::string(name), Json()).second;
}

void Json::push_back(Json value) {
  if (is_null()) value_.emplace<std::vector<Json>>();
  std::get<std::vector<Json>>(value_).push_back(std::move(value));
}

void Json::update(Json other) {
  for (auto& [name, value] : other.items()) (*this)[name] = std::move(value);
}

void Json::erase(std::string_view name) {
  std::erase_if(items(), [name](const auto& member) { return member.first == name; });
}

const Json* Json::find(std::string_view name) const {
  const Members& members = items();
  const auto known = std::find_if(members.begin(), members.end(), [name](const auto& m) { return m.first == name; });
  return known == members.end() ? nullptr : &known->second;
}

const Json& Json::at(std::string_view name) const {
  const Json* const member = find(name);
  if (member == nullptr) throw JsonMismatch(fmt::format("there is no \"{}\"", name));
  return *member;
}

const Json& Json::at(std::size_t index) const {
  if (index >= values().size()) throw JsonMismatch(fmt::format("expected a list of more than {} values", index));
  return values()[index];
}

std::size_t Json::size() const {
  return is_object() ? items().size() : values().size();
}

const std::vector<Json>& Json::values() const {
  static const std::vector<Json> none;
  const auto* values = std::get_if<std::vector<Json>>(&value_);
  return values != nullptr ? *values : none;
}

const Json::Members& Json::items() const {
  static const Members none;
  const auto* members = std::get_if<Members>(&value_);
  return members != nullptr ? *members : none;
}

void Json::mismatch(const char* expected) {
  throw JsonMismatch(std::string("expected ") + expected);
}

bool Json::truth() const {
  if (!is_boolean()) mismatch("true or false");
  return std::get<bool>(value_);
}

double Json::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*whole);
  if (!is_number()) mismatch("a number");
  return std::get<double>(value_);
}

std::string text_in(const Json& object, std::string_view name) {
  const Json* const member = object.find(name);
  return member != nullptr && member->is_string() ? member->text() : std::string();
}

void add_nonempty(Json& object, std::string_view name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

const std::string& Json::text() const {
  if (!is_string()) mismatch("a string");
  return std::get<std::string>(value_);
}

const std::vector<Json>& Json::list() const {
  if (!is_array()) mismatch("a list");
  return values();
}

std::vector<std::string> Json::texts() const {
  std::vector<std::string> out;
  for (const Json& one : list()) out.push_back(one.text());
  return out;
}

std::map<std::string, std::string> Json::text_table() const {
  if (!is_object()) mismatch("an object of strings");
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : items()) out[name] = value.text();
  return out;
}

class Json::Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& value) {
    if (value.is_object()) {
      bracketed('{', value.items(), '}', [this](const auto& member) {
        append_json_string(out, member.first);
        out += indent_ < 0 ? ":" : ": ";
        write(member.second);
      });
    } else if (value.is_array()) {
      bracketed('[', value.values(), ']', [this](const Json& one) { write(one); });
    } else if (value.is_string()) {
      append_json_string(out, value.text());
    } else if (const auto* number = std::get_if<double>(&value.value_)) {
      write_number(*number, out);
    } else if (const auto* whole = std::get_if<std::int64_t>(&value.value_)) {
      out += std::to_string(*whole);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&value.value_)) {
      out += std::to_string(*natural);
    } else {
      out += value.is_null() ? "null" : value.truth() ? "true" : "false";
    }
  }

  std::string out;

 private:
  template <class Items, class Write>
  void bracketed(char open, const Items& items, char close, Write write_one) {
    out += open;
    ++depth_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!is_first) out += ',';
      is_first = false;
      break_line();
      write_one(item);
    }
    --depth_;
    if (!is_first) break_line();
    out += close;
  }

  void break_line() {
    if (indent_ >= 0) out += '\n' + std::string(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  int indent_;
  int depth_ = 0;
};

std::string json_text(const Json& value, int indent) {
  Json::Writer writer(indent);
  writer.write(value);
  return printable_lines(writer.out);
}

/// Builds the value from what nlohmann's parser reports; false stops it.
class Json::Builder {
 public:
  explicit Builder(std::size_t begin) : begin_(begin) {}

  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return add({}); }
  bool boolean(bool yes) { return add(yes); }
  bool number_integer(number_integer_t whole) { return add(whole); }
  bool number_unsigned(number_unsigned_t whole) { return add(whole); }
  bool number_float(number_float_t number, const string_t& /*digits*/) { return add(number); }
  bool string(string_t& text) { return add(std::move(text)); }
  static bool binary(binary_t& /*bytes*/) { return false; }  // JSON has none
  bool start_object(std::size_t /*size*/) { return open(object()); }
  bool start_array(std::size_t /*size*/) { return open(array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    key_ = std::move(name);
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& /*token*/, const Exception& /*why*/) {
    error = fmt::format("offset {}: this is not valid JSON", begin_ + (position > 0 ? position - 1 : 0));
    return false;
  }

  Json root;
  std::string error;

 private:
  Json& place() {
    if (open_.empty()) return root;
    Json& parent = *open_.back();
    if (parent.is_object()) return parent.items().emplace_back(std::move(key_), Json()).second;
    parent.push_back({});
    return parent.back();
  }
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kDeepest) {
      error = fmt::format("JSON that is nested more than {} deep", kDeepest);
      return false;
    }
    Json& here = place();
    here = std::move(value);
    open_.push_back(&here);
    return true;
  }
  bool close() {
    if (open_.back()->is_object()) leave_out_repeated(open_.back()->items());
    open_.pop_back();
    return true;
  }

  /// Of members with the same name, the last value is kept, in the place of the first.
  static void leave_out_repeated(Members& members) {
    std::vector<std::size_t> by_name(members.size());
    std::iota(by_name.begin(), by_name.end(), std::size_t{0});
    std::sort(by_name.begin(), by_name.end(), [&members](std::size_t a, std::size_t b) {
      return std::tie(members[a].first, a) < std::tie(members[b].first, b);
    });
    std::vector<bool> repeated(members.size());
    bool any = false;
    for (std::size_t i = 0, first = 0; i < by_name.size(); ++i) {
      if (members[by_name[i]].first != members[by_name[first]].first) first = i;
      if (i == first) continue;
      members[by_name[first]].second = std::move(members[by_name[i]].second);
      repeated[by_name[i]] = any = true;
    }
    if (!any) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!repeated[i] && kept++ != i) members[kept - 1] = std::move(members[i]);
    members.resize(kept);
  }

  std::vector<Json*> open_;
  std::string key_;
  std::size_t begin_;
};

Result<Json> Json::parse(std::string_view text, std::size_t begin) {
  Builder builder(begin);
  if (!nlohmann::json::sax_parse(text, &builder)) return fail(std::move(builder.error));
  return std::move(builder.root);
}

}  // namespace vramtrack
