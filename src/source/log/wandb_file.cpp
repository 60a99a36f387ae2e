// W&B's .wandb files: LevelDB's log format (leveldb/doc/log_format.md) with zlib's CRC-32, of Record
// (wandb/proto/wandb_internal.proto).
//
//   ":W&B" | 0xbee1 | version: uint8, then in blocks of 32 KiB:  CRC-32: uint32 | size: uint16 | type: uint8 | data
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/protobuf.hpp"
#include "source/log/json_value.hpp"
#include "source/log/run_file_records.hpp"

namespace vramtrack::runfile {
namespace {

class WandbFile final : public RunFile {
 public:
  static constexpr std::string_view kMagic{":W&B\xe1\xbe", 6};

 private:
  static constexpr std::size_t kFileHeader = 7, kRecordHeader = 7, kBlock = 32 * 1024;

  std::size_t take(std::string_view bytes, std::string& lines) override {
    const std::size_t taken = take_piece(bytes, lines);
    offset_ += taken;
    return taken;
  }

  std::size_t take_piece(std::string_view bytes, std::string& lines) {
    if (offset_ == 0) {
      if (bytes.size() < kFileHeader) return 0;
      put_mark("wandb", lines);
      return kFileHeader;
    }
    if (skip_ > 0) {
      const std::size_t taken = std::min(skip_, bytes.size());
      skip_ -= taken;
      return taken;
    }
    const std::size_t left = kBlock - static_cast<std::size_t>(offset_ % kBlock);
    if (left < kRecordHeader) return skip_rest(left, bytes, lines);  // padding: no header fits
    if (bytes.size() < kRecordHeader) return 0;
    const auto size = static_cast<std::size_t>(little_endian(bytes, 4, 2));
    const auto type = static_cast<unsigned char>(bytes[6]);
    if (type == 0 && size == 0) return skip_rest(left, bytes, lines);  // preallocated
    if (kRecordHeader + size > left || type < 1 || type > 4) {
      // The next block starts with a record again.
      damaged();
      record_.clear();
      return skip_rest(left, bytes, lines);
    }
    if (bytes.size() < kRecordHeader + size) return 0;
    const std::string_view typed = bytes.substr(6, size + 1);
    if (::crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size())) !=
        little_endian(bytes, 0, 4)) {
      damaged();
      record_.clear();
      return kRecordHeader + size;
    }
    constexpr unsigned kFull = 1, kFirst = 2, kLast = 4;
    if (type == kFull || type == kFirst) record_.clear();
    if (record_.size() + size <= kMostRecordBytes) record_ += typed.substr(1);
    if (type == kFull || type == kLast) {
      read_record(record_, lines);
      record_.clear();
    }
    return kRecordHeader + size;
  }

  /// The rest of the block contains no record.
  std::size_t skip_rest(std::size_t left, std::string_view bytes, std::string& lines) {
    skip_ = left;
    return take_piece(bytes, lines);
  }

  static void read_record(std::string_view record, std::string& lines) {
    for (ProtoFields field(record); field.next();) {
      if (field.number() == 7) read_items(field.bytes(), 3, lines);  // StatsRecord
      if (field.number() == 2) read_items(field.bytes(), 1, lines);  // HistoryRecord
    }
  }

  /// Items of key and JSON value; a StatsRecord has its time in field 2, a HistoryRecord in the item _timestamp.
  static void read_items(std::string_view message, std::uint32_t item_number, std::string& lines) {
    std::map<std::string, double> values;
    for (ProtoFields field(message); field.next();) {
      if (field.number() == item_number) read_item(field.bytes(), values);
      if (field.number() == 2 && item_number == 3) {
        double seconds = 0;
        for (ProtoFields part(field.bytes()); part.next();) {
          if (part.number() == 1) seconds += static_cast<double>(part.value());
          if (part.number() == 2) seconds += static_cast<double>(part.value()) * 1e-9;
        }
        values["_timestamp"] = seconds;
      }
    }
    if (values.size() > 1) lines += json_line(values);
  }

  static void read_item(std::string_view item, std::map<std::string, double>& values) {
    std::string key;
    std::string_view text;
    for (ProtoFields field(item); field.next();) {
      if (field.number() == 1 || field.number() == 2) key += (key.empty() ? "" : ".") + std::string(field.bytes());
      if (field.number() == 16) text = field.bytes();
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!key.empty() && error == std::errc{} && end == text.data() + text.size() && std::isfinite(number))
      values[key] = number;
  }

  std::uint64_t offset_ = 0;
  std::size_t skip_ = 0;  ///< bytes to the next block
  std::string record_;    ///< pieces of one that spans blocks
};

}  // namespace

bool is_wandb_file(std::string_view start) {
  return start.starts_with(WandbFile::kMagic);
}

int wandb_version(std::string_view start) {
  return start.size() > WandbFile::kMagic.size() ? static_cast<unsigned char>(start[WandbFile::kMagic.size()]) : 0;
}

std::unique_ptr<RunFile> open_wandb_file() {
  return std::make_unique<WandbFile>();
}

}  // namespace vramtrack::runfile
