// PickleWindow: the window of a pickle's bytes in memory. It reads further, handles arguments that cross its end, and
// reports errors with their offset. PickleMachine, which derives from it, interprets the bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_input.hpp"
#include "core/result.hpp"
#include "trace/pickle_value.hpp"

namespace vramtrack::trace {

/// Every function that returns bool returns false after an error; result() returns the error.
class PickleWindow {
 public:
  PickleWindow(const PickleWindow&) = delete;
  PickleWindow& operator=(const PickleWindow&) = delete;
  [[nodiscard]] std::uint64_t offset() const { return base_ + static_cast<std::uint64_t>(p_ - buffer_.data()); }
  /// The offset of the first nonzero byte after STOP and its padding; 0: none.
  [[nodiscard]] std::uint64_t trailing_bytes() const { return trailing_; }

 protected:
  static constexpr std::ptrdiff_t kLookahead = 16;  ///< enough for an opcode with any fixed argument

  explicit PickleWindow(ByteInput& input);
  ~PickleWindow() = default;

  [[nodiscard]] Status result() const;
  bool bad(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool cut_off();
  /// Keeps the rest of the window and reads more after it. False only on a read error.
  bool refill();
  bool check_beginning();
  bool skip_padding();

  /// The opcode's name.
  [[nodiscard]] std::string_view name() const { return opcode_name(op_); }
  [[nodiscard]] static std::uint64_t little(const std::uint8_t* at, unsigned bytes) {
    std::uint64_t value = 0;
    if constexpr (std::endian::native == std::endian::little)
      std::memcpy(&value, at, bytes);
    else
      for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{at[i]} << (8 * i);
    return value;
  }

  /// Whether the window has `bytes` more than the opcode.
  bool need(std::ptrdiff_t bytes) { return end_ - p_ > bytes || cut_off(); }
  /// Takes `length` bytes from p_, which moves past them; never allocates more than exists. Without `keep`, the bytes
  /// are skipped.
  bool take(std::uint64_t length, std::string_view& out, bool keep = true) {
    if (length > static_cast<std::uint64_t>(end_ - p_)) return take_beyond(length, out, keep);
    out = {reinterpret_cast<const char*>(p_), static_cast<std::size_t>(length)};
    p_ += length;
    return true;
  }
  /// Reads the text form of an argument, up to the newline, into line_ (without the newline).
  bool line();
  /// Reads the text form of a number of 64 bits, as two's complement.
  bool line_number(std::uint64_t& out, bool& negative);

  const std::uint8_t* p_ = nullptr;  ///< the next byte, within the window that ends at end_
  const std::uint8_t* end_ = nullptr;
  bool at_end_ = false;  ///< nothing follows the window
  std::uint8_t op_ = 0;
  std::uint64_t op_offset_ = 0;
  std::string line_;

 private:
  bool take_beyond(std::uint64_t length, std::string_view& out, bool keep);

  ByteInput& input_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t base_ = 0;  ///< offset of buffer_[0] in the file
  std::uint64_t trailing_ = 0;
  std::string error_, spill_;
};

}  // namespace vramtrack::trace
