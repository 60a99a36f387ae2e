// Writes profile.proto by hand: six messages of integers and strings. A protobuf library would be larger.
#include <fmt/format.h>
#include <zlib.h>

#include <unordered_map>

#include "trace/exports.hpp"

namespace vramtrack::trace {
namespace {

/// Protocol Buffers' wire format, as far as profile.proto needs it.
class Message {
 public:
  void integer(unsigned field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
  }
  void bytes(unsigned field, std::string_view value) {
    varint((field << 3U) | 2U);
    varint(value.size());
    text_ += value;
  }
  void packed(unsigned field, const std::vector<std::uint64_t>& values) {
    Message inner;
    for (const std::uint64_t value : values) inner.varint(value);
    bytes(field, inner.text_);
  }
  void message(unsigned field, const Message& inner) { bytes(field, inner.text_); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

// Field numbers of profile.proto.
namespace profile_field {
enum : unsigned { sample_type = 1, sample = 2, location = 4, function = 5, string_table = 6, default_sample_type = 14 };
}

/// The string table: the format requires index 0 to be the empty string.
class Strings {
 public:
  std::uint64_t index(std::string_view text) {
    const auto [known, is_new] = indices_.try_emplace(std::string(text), list_.size());
    if (is_new) list_.push_back(known->first);
    return known->second;
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::unordered_map<std::string, std::uint64_t> indices_{{"", 0}};
  std::vector<std::string> list_{""};
};

Message value_type(Strings& strings, std::string_view type, std::string_view unit) {
  Message message;
  message.integer(1, strings.index(type));
  message.integer(2, strings.index(unit));
  return message;
}

Result<std::string> gzipped(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("no memory to compress the profile");
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 32, '\0');
  // zlib only reads, but its interface predates const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail("the profile could not be compressed");
  return out;
}

}  // namespace

Result<std::string> pprof(const Profile& profile, const Symbols& symbols) {
  Strings strings;
  Message out;
  out.message(profile_field::sample_type, value_type(strings, "inuse_objects", "count"));
  out.message(profile_field::sample_type, value_type(strings, "inuse_space", "bytes"));
  std::unordered_map<std::uint32_t, std::uint64_t> locations;  // by FrameId; ids from 1
  std::unordered_map<std::uint64_t, std::uint64_t> functions;  // by name and file; ids from 1
  Message tables;
  const auto location_of = [&](std::uint32_t key, std::string_view name, std::string_view file, std::uint32_t line) {
    const auto [known, is_new] = locations.try_emplace(key, locations.size() + 1);
    if (!is_new) return known->second;
    const std::uint64_t name_index = strings.index(name);
    const std::uint64_t file_index = strings.index(file);
    const auto [function, function_is_new] =
        functions.try_emplace((name_index << 32) | file_index, functions.size() + 1);
    if (function_is_new) {
      Message message;
      message.integer(1, function->second);
      message.integer(2, name_index);
      message.integer(3, name_index);
      message.integer(4, file_index);
      tables.message(profile_field::function, message);
    }
    Message at;
    at.integer(1, function->second);
    at.integer(2, line);
    Message message;
    message.integer(1, known->second);
    message.message(4, at);
    tables.message(profile_field::location, message);
    return known->second;
  };
  for (const StackBytes& held : profile) {
    if (held.bytes <= 0) continue;
    std::vector<std::uint64_t> ids;
    for (const FrameId frame : symbols.stack(held.stack))
      ids.push_back(location_of(index_of(frame), symbols.name(frame), symbols.file(frame), symbols.frame(frame).line));
    if (ids.empty()) ids.push_back(location_of(IdTable::kNone, "(no stack recorded)", "", 0));
    Message sample;
    sample.packed(1, ids);
    sample.packed(2, {static_cast<std::uint64_t>(held.blocks), static_cast<std::uint64_t>(held.bytes)});
    out.message(profile_field::sample, sample);
  }
  const std::uint64_t shown = strings.index("inuse_space");
  std::string text = out.text() + tables.text();
  Message rest;
  for (const std::string& string : strings.list()) rest.bytes(profile_field::string_table, string);
  rest.integer(profile_field::default_sample_type, shown);
  return gzipped(text + rest.text());
}

}  // namespace vramtrack::trace
