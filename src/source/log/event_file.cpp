// TensorBoard's event files: TFRecord (tensorflow/core/lib/io/record_writer.h) of Event
// (tensorflow/core/util/event.proto).
//
//   length: uint64 | masked CRC-32C of it | Event | masked CRC-32C of it
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

#include "core/protobuf.hpp"
#include "source/log/json_value.hpp"
#include "source/log/run_file_records.hpp"

namespace vramtrack::runfile {
namespace {

/// CRC-32C (Castagnoli), which zlib does not have.
std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0);
      out[i] = value;
    }
    return out;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}

/// The one number of a TensorProto (tensorflow/core/framework/tensor.proto); nullopt when it has none or several.
std::optional<double> scalar_of(std::string_view tensor) {
  std::uint64_t type = 0;
  std::optional<double> number;
  std::string_view content;
  int count = 0;
  const auto take = [&](double value) {
    number = value;
    ++count;
  };
  for (ProtoFields field(tensor); field.next();) switch (field.number()) {
      case 1:
        type = field.value();
        break;
      case 4:
        content = field.bytes();
        break;
      case 5:  // float_val, packed or one by one
        if (!field.is_bytes()) take(field.as_float());
        for (std::size_t at = 0; at + 4 <= field.bytes().size(); at += 4)
          take(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(field.bytes(), at, 4))));
        break;
      case 6:  // double_val
        if (!field.is_bytes()) take(field.as_double());
        for (std::size_t at = 0; at + 8 <= field.bytes().size(); at += 8)
          take(std::bit_cast<double>(little_endian(field.bytes(), at, 8)));
        break;
      default:
        break;
    }
  constexpr std::uint64_t kFloat = 1, kDouble = 2, kInt32 = 3, kInt64 = 9;
  if (type == kFloat && content.size() == 4)
    take(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(content, 0, 4))));
  if (type == kDouble && content.size() == 8) take(std::bit_cast<double>(little_endian(content, 0, 8)));
  if (type == kInt32 && content.size() == 4) take(static_cast<std::int32_t>(little_endian(content, 0, 4)));
  if (type == kInt64 && content.size() == 8)
    take(static_cast<double>(static_cast<std::int64_t>(little_endian(content, 0, 8))));
  return count == 1 ? number : std::nullopt;
}

class EventFile final : public RunFile {
 public:
  static constexpr std::size_t kHeader = 12;

  /// Length, and its checksum.
  static bool begins_record(std::string_view bytes) {
    if (bytes.size() < kHeader) return false;
    return matches(bytes.substr(0, 8), little_endian(bytes, 8, 4)) && little_endian(bytes, 0, 8) <= kMostRecordBytes;
  }

 private:
  static bool matches(std::string_view bytes, std::uint64_t masked) {
    const std::uint32_t crc = crc32c(bytes);
    return static_cast<std::uint32_t>(((crc >> 15U) | (crc << 17U)) + 0xa282ead8U) == masked;
  }

  std::size_t take(std::string_view bytes, std::string& lines) override {
    if (!marked_) put_mark("tensorboard", lines);
    marked_ = true;
    if (bytes.size() < kHeader) return 0;
    if (!begins_record(bytes)) {
      damaged();
      give_up();
      return bytes.size();
    }
    const auto size = static_cast<std::size_t>(little_endian(bytes, 0, 8));
    if (bytes.size() < kHeader + size + 4) return 0;
    const std::string_view event = bytes.substr(kHeader, size);
    if (matches(event, little_endian(bytes, kHeader + size, 4)))
      read_event(event, lines);
    else
      damaged();
    return kHeader + size + 4;
  }

  static void read_event(std::string_view event, std::string& lines) {
    double wall_time = 0;
    std::uint64_t step = 0;
    std::map<std::string, double> values;
    for (ProtoFields field(event); field.next();) {
      if (field.number() == 1) wall_time = field.as_double();
      if (field.number() == 2) step = field.value();
      if (field.number() == 5)
        for (ProtoFields value(field.bytes()); value.next();)
          if (value.number() == 1) read_value(value.bytes(), values);
    }
    if (values.empty() || !std::isfinite(wall_time)) return;
    values["wall_time"] = wall_time;
    values["step"] = static_cast<double>(step);
    lines += json_line(values);
  }

  static void read_value(std::string_view summary, std::map<std::string, double>& values) {
    std::string_view tag;
    std::optional<double> number;
    for (ProtoFields field(summary); field.next();) {
      if (field.number() == 1) tag = field.bytes();
      if (field.number() == 2 && !field.is_bytes()) number = field.as_float();
      if (field.number() == 8) number = scalar_of(field.bytes());
    }
    if (!tag.empty() && number && std::isfinite(*number)) values[std::string(tag)] = *number;
  }

  bool marked_ = false;
};

}  // namespace

bool is_event_file(std::string_view start) {
  return EventFile::begins_record(start);
}

std::unique_ptr<RunFile> open_event_file() {
  return std::make_unique<EventFile>();
}

}  // namespace vramtrack::runfile
