// InfluxDB's line protocol, as written by Telegraf's output "file". Each line is passed on as a JSON object of the
// format scalars.
//
//   nvidia_smi,host=node7,index=0,uuid=GPU-8f1c... memory_used=4000i,memory_total=40960i 1772359200000000000
//
// Format: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "source/log/format.hpp"
#include "source/log/json.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

namespace {

using logtext::is_digit;

struct Member {
  std::string key;
  std::string value;  ///< as JSON
};

struct InfluxLine {
  std::string measurement;
  std::vector<Member> tags;
  std::vector<Member> fields;
  std::string_view time;  ///< digits; empty: none
};

/// Takes a name or a tag's value from `rest`, up to one of `ends` without a backslash before it.
std::string take_name(std::string_view& rest, std::string_view ends) {
  std::string out;
  while (!rest.empty() && ends.find(rest.front()) == std::string_view::npos) {
    if (rest.front() == '\\' && rest.size() > 1 && std::string_view(",= \\").find(rest[1]) != std::string_view::npos)
      rest.remove_prefix(1);
    out += rest.front();
    rest.remove_prefix(1);
  }
  return out;
}

/// Takes a field's value: 4000i, 4000u, 97.5, true or "text". Returns false if it is none of these.
bool take_value(std::string_view& rest, std::string& json) {
  if (rest.starts_with('"')) {
    std::string text;
    for (rest.remove_prefix(1); !rest.empty() && rest.front() != '"'; rest.remove_prefix(1)) {
      if (rest.front() == '\\' && rest.size() > 1) rest.remove_prefix(1);
      text += rest.front();
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    json = json_string(text);
    return true;
  }
  std::string_view value = rest.substr(0, rest.find_first_of(", "));
  rest.remove_prefix(value.size());
  for (const std::string_view word : {"t", "true", "f", "false"})
    if (logtext::same_letters(value, word)) {
      json = word.starts_with('t') ? "true" : "false";
      return true;
    }
  if (value.ends_with('i') || value.ends_with('u')) value.remove_suffix(1);
  const std::string_view digits = value.substr(value.starts_with('-') ? 1 : 0);
  const bool is_number = !digits.empty() && is_digit(digits.front()) && is_digit(digits.back()) &&
                         digits.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  json = value;
  return is_number;
}

bool read_line(std::string_view line, InfluxLine& out) {
  out = {};
  std::string_view rest = logtext::trim(line);
  if (rest.empty() || !(logtext::is_ascii_letter(rest.front()) || rest.front() == '_')) return false;
  out.measurement = take_name(rest, ", ");
  while (rest.starts_with(',')) {
    rest.remove_prefix(1);
    Member tag;
    tag.key = take_name(rest, "=, ");
    if (tag.key.empty() || !rest.starts_with('=')) return false;
    rest.remove_prefix(1);
    tag.value = json_string(take_name(rest, ", "));
    out.tags.push_back(std::move(tag));
  }
  while (rest.starts_with(out.fields.empty() ? ' ' : ',')) {
    rest.remove_prefix(1);
    Member field;
    field.key = take_name(rest, "=, ");
    if (field.key.empty() || !rest.starts_with('=')) return false;
    rest.remove_prefix(1);
    if (!take_value(rest, field.value)) return false;
    out.fields.push_back(std::move(field));
  }
  if (out.fields.empty()) return false;
  out.time = logtext::trim(rest);
  return std::all_of(out.time.begin(), out.time.end(), is_digit);
}

/// Whether a line describes GPUs, by its measurement or its fields: Telegraf writes the host's data ("mem", "disk") to
/// the same file. Fields with names for memory are kept, too: if there are no others, they are read, or refused as the
/// host's.
bool is_of_gpu(const InfluxLine& line) {
  const auto mentions_gpu = [](std::string_view name) {
    const Label label = read_label(name);
    return label.gpu || label.vram;
  };
  return mentions_gpu(line.measurement) || line.measurement.starts_with("amd") ||
         std::any_of(line.fields.begin(), line.fields.end(), [&](const Member& field) {
           return mentions_gpu(field.key) || names_host_memory(field.key) || read_label(field.key).memory;
         });
}

/// Appends the line as a JSON object on one line, or nothing if the line does not describe a GPU.
void append_json(std::string_view line, InfluxLine& read, std::string& out) {
  if (read_line(line, read) && is_of_gpu(read) && !read.time.empty()) {
    out.append("{\"timestamp\": ").append(read.time);
    std::string measurement = read.measurement;
    for (const Member& tag : read.tags) {
      out.append(", ").append(json_string(tag.key)).append(": ").append(tag.value);
      if (tag.key == measurement) measurement += " fields";
    }
    out.append(", ").append(json_string(measurement)).append(": {");
    for (const Member& field : read.fields)
      out.append(&field == &read.fields.front() ? "" : ", ")
          .append(json_string(field.key))
          .append(": ")
          .append(field.value);
    out += "}}";
  }
  out += '\n';
}

std::string as_json(std::string_view text) {
  std::string out;
  InfluxLine read;
  while (!text.empty()) append_json(logtext::take_line(text), read, out);
  return out;
}

Evidence recognise(std::string_view head) {
  constexpr int kLooked = 50;
  InfluxLine read;
  int lines = 0;
  int own = 0;
  while (!head.empty() && lines < kLooked) {
    const std::string_view line = logtext::trim(logtext::take_line(head));
    if (line.empty() || line.starts_with('#')) continue;
    ++lines;
    own += read_line(line, read) && read.time.size() >= 10 ? 1 : 0;
  }
  return own > 0 && own * 10 >= lines * 9 ? Evidence::own_names : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_rewritten(head, {as_json}, scalars_log_format.make);
}

}  // namespace

const LogFormatInfo influx_log_format{"influx",
                                      "Telegraf's outputs.file, influxd inspect export-lp: InfluxDB's line protocol",
                                      recognise,
                                      make,
                                      each_line_is_a_record,
                                      false};

}  // namespace vramtrack
