// The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/), read field by field: enough
// for the few messages in logs and in Prometheus remote read. Pure; returns views into the bytes that are read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vramtrack {

/// Reads one message. `while (fields.next()) switch (fields.number()) ...`
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view message) : rest_(message) {}

  /// False at the end, or if the bytes are not a valid field.
  bool next() {
    if (rest_.empty()) return false;
    is_damaged_ = !field();
    return !is_damaged_;
  }

  /// After next() has returned false: whether the message ended at the end of a field.
  [[nodiscard]] bool is_complete() const { return rest_.empty() && !is_damaged_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// For a field of bytes: a string, a message, packed numbers. Empty for other fields.
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] bool is_bytes() const { return is_bytes_; }
  /// For a number: its bits as they were written.
  [[nodiscard]] std::uint64_t value() const { return is_bytes_ ? 0 : value_; }
  [[nodiscard]] double as_double() const { return std::bit_cast<double>(value()); }
  [[nodiscard]] float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value())); }

 private:
  bool field() {
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    number_ = static_cast<std::uint32_t>(tag >> 3);
    is_bytes_ = false;
    bytes_ = {};
    switch (tag & 7) {
      case 0:
        return varint(value_);
      case 1:
        return fixed(8);
      case 5:
        return fixed(4);
      case 2: {
        std::uint64_t size = 0;
        if (!varint(size) || size > rest_.size()) return false;
        is_bytes_ = true;
        bytes_ = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(bytes_.size());
        return true;
      }
      default:
        return false;  // groups, which are obsolete
    }
  }
  bool varint(std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return true;
    }
    return false;
  }
  bool fixed(std::size_t size) {
    if (rest_.size() < size) return false;
    value_ = 0;
    for (std::size_t i = 0; i < size; ++i) value_ |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::uint32_t number_ = 0;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
  bool is_bytes_ = false;
  bool is_damaged_ = false;
};

}  // namespace vramtrack
