#include "probe/unwind_table.hpp"

#include <cstring>

namespace vramtrack::probe {
namespace {

// DWARF 4, 6.4 and 7.23; Linux Standard Base 5, "Exception Frames" (the augmentation, pointer encodings,
// .eh_frame_hdr). Registers by the System V ABI's DWARF numbers.
#if defined(__aarch64__)
constexpr std::uint64_t kFp = 29, kSp = 31, kReturn = 30;
#else
constexpr std::uint64_t kFp = 6, kSp = 7, kReturn = 16;
#endif
constexpr Rule kNone{Cfa::frame_pointer, SavedFp::kept, 0, 0};
constexpr std::int64_t kMostOffset = 1 << 26;

/// Reads bytes from `at` to `end`, in order, in chunks. Past the end everything is zero and is_bad() is true.
class Bytes {
 public:
  Bytes(ReadMemory read, std::uint64_t begin, std::uint64_t end) : read_(read), at_(begin), end_(end) {}
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] bool is_done() const { return is_bad_ || at_ >= end_; }
  [[nodiscard]] bool is_bad() const { return is_bad_; }
  void skip(std::uint64_t bytes) {
    if (bytes > end_ - at_)
      is_bad_ = true;
    else
      at_ += bytes;
  }
  std::uint8_t u8() {
    if (is_bad_ || at_ >= end_) {
      is_bad_ = true;
      return 0;
    }
    if (at_ - block_ >= held_) {
      held_ = end_ - at_ < sizeof buffer_ ? end_ - at_ : sizeof buffer_;
      block_ = at_;
      if (!read_(at_, buffer_, held_)) {
        is_bad_ = true;
        held_ = 0;
        return 0;
      }
    }
    return buffer_[at_++ - block_];
  }
  std::uint64_t fixed(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{u8()} << 8 * i;
    return value;
  }
  std::int64_t fixed_signed(unsigned bytes) {
    const unsigned shift = 64 - 8 * bytes;
    return static_cast<std::int64_t>(fixed(bytes) << shift) >> shift;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0 || is_bad_) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80U) != 0 && !is_bad_) continue;
      if (shift < 64 && (byte & 0x40U) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  /// Reads a pointer; relative ones are relative to their own position. Other bases (text, function) are not used here.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data_base) {
    if (encoding == 0xff) return 0;
    const std::uint64_t position = at_;
    std::uint64_t value = 0;
    switch (encoding & 0x0fU) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = fixed(8);
        break;
      case 0x01:
        value = uleb();
        break;
      case 0x02:
        value = fixed(2);
        break;
      case 0x03:
        value = fixed(4);
        break;
      case 0x09:
        value = static_cast<std::uint64_t>(sleb());
        break;
      case 0x0a:
        value = static_cast<std::uint64_t>(fixed_signed(2));
        break;
      case 0x0b:
        value = static_cast<std::uint64_t>(fixed_signed(4));
        break;
      default:
        is_bad_ = true;
        return 0;
    }
    switch (encoding & 0x70U) {
      case 0x00:
        return value;
      case 0x10:
        return position + value;
      case 0x30:
        return data_base + value;
      default:
        is_bad_ = true;
        return 0;
    }
  }

 private:
  ReadMemory read_;
  std::uint64_t at_;
  std::uint64_t end_;
  std::uint64_t block_ = 0;
  std::uint64_t held_ = 0;
  bool is_bad_ = false;
  std::uint8_t buffer_[128];
};

struct Cie {
  std::uint64_t instructions = 0;
  std::uint64_t end = 0;
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t encoding = 0;
  bool has_augmentation = false;
  bool is_signal = false;
};

bool read_cie(ReadMemory read, std::uint64_t address, Cie& into) {
  std::uint32_t length = 0;
  if (!read(address, &length, sizeof length) || length < 9 || length >= 0xfffffff0U) return false;
  into.end = address + 4 + length;
  Bytes bytes(read, address + 4, into.end);
  if (bytes.fixed(4) != 0) return false;
  const std::uint8_t version = bytes.u8();
  if (version != 1 && version != 3 && version != 4) return false;
  char augmentation[8] = {};
  for (std::size_t i = 0;; ++i) {
    if (i == sizeof augmentation) return false;
    augmentation[i] = static_cast<char>(bytes.u8());
    if (augmentation[i] == '\0') break;
  }
  if (version == 4) bytes.skip(2);
  into.code_align = bytes.uleb();
  into.data_align = bytes.sleb();
  const std::uint64_t return_register = version == 1 ? bytes.u8() : bytes.uleb();
  if (return_register != kReturn) return false;
  if (augmentation[0] == 'z') {
    into.has_augmentation = true;
    const std::uint64_t size = bytes.uleb();
    if (size > length) return false;
    const std::uint64_t after = bytes.at() + size;
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
      if (*letter == 'R')
        into.encoding = bytes.u8();
      else if (*letter == 'S')
        into.is_signal = true;
      else if (*letter == 'L')
        bytes.u8();
      else if (*letter == 'P') {
        const std::uint8_t encoding = bytes.u8();
        bytes.pointer(encoding, 0);
      } else if (*letter != 'B')
        break;  // unknown: its length gives the start of the instructions
    }
    into.instructions = after;
  } else if (augmentation[0] == '\0') {
    into.instructions = bytes.at();
  } else {
    return false;
  }
  return !bytes.is_bad();
}

struct Registers {
  std::uint64_t cfa_register = kSp;
  std::int64_t cfa_offset = 0;
  bool is_cfa_in_memory = false;  ///< the CFA is the value at register + offset
  bool is_cfa_known = true;
  SavedFp fp = SavedFp::kept;
  std::int64_t fp_offset = 0;
  bool has_return = true;  ///< at CFA - 8
  bool is_return_undefined = false;
};

/// Runs call frame instructions until the row of `address`.
class Program {
 public:
  Program(ReadMemory read, const Cie& cie, std::uint64_t begin, std::uint64_t address)
      : read_(read), cie_(cie), location_(begin), address_(address) {}
  bool run(std::uint64_t from, std::uint64_t to);
  void keep_initial() { initial_ = now_; }
  [[nodiscard]] const Registers& now() const { return now_; }

 private:
  void set(std::uint64_t reg, SavedFp kind, std::int64_t offset);
  void restore(std::uint64_t reg);
  void cfa_expression(Bytes& bytes);
  void expression(Bytes& bytes);
  /// An offset in units of the data alignment; an invalid table wraps around.
  [[nodiscard]] std::int64_t scaled(std::uint64_t units) const {
    return static_cast<std::int64_t>(units * static_cast<std::uint64_t>(cie_.data_align));
  }
  bool advance(std::uint64_t units) {
    location_ += units * cie_.code_align;
    return location_ > address_;
  }

  ReadMemory read_;
  const Cie& cie_;
  std::uint64_t location_;
  std::uint64_t address_;
  Registers now_;
  Registers initial_;
  Registers remembered_[8];
  unsigned depth_ = 0;
};

void Program::set(std::uint64_t reg, SavedFp kind, std::int64_t offset) {
  if (reg == kFp) {
    now_.fp = kind;
    now_.fp_offset = offset;
  } else if (reg == kReturn) {
    now_.has_return = kind == SavedFp::at_cfa && offset == -8;
    now_.is_return_undefined = false;
  }
}

void Program::restore(std::uint64_t reg) {
  if (reg == kFp) {
    now_.fp = initial_.fp;
    now_.fp_offset = initial_.fp_offset;
  } else if (reg == kReturn) {
    now_.has_return = initial_.has_return;
    now_.is_return_undefined = initial_.is_return_undefined;
  }
}

void Program::cfa_expression(Bytes& bytes) {
  const std::uint64_t size = bytes.uleb();
  const std::uint64_t after = bytes.at() + size;
  now_.is_cfa_known = false;
  now_.is_cfa_in_memory = false;
  const std::uint8_t first = bytes.u8();
  if (first >= 0x70 && first <= 0x8f) {  // DW_OP_breg
    now_.cfa_register = first - 0x70U;
    now_.cfa_offset = bytes.sleb();
    if (bytes.at() == after) {
      now_.is_cfa_known = true;
    } else {
      const std::uint8_t second = bytes.u8();
      if (second == 0x06 && bytes.at() == after) {  // DW_OP_deref
        now_.is_cfa_known = now_.is_cfa_in_memory = true;
      } else if (second == 0x70 + kReturn && now_.cfa_register == kSp) {
        // A PLT entry: sp + 8 + ((pc & 15) >= N) * 8, since its second instruction pushes.
        const std::int64_t zero = bytes.sleb();
        std::uint8_t op[7];
        for (std::uint8_t& byte : op) byte = bytes.u8();
        if (zero == 0 && op[0] == 0x3f && op[1] == 0x1a && op[2] >= 0x30 && op[2] <= 0x4f && op[3] == 0x2a &&
            op[4] == 0x33 && op[5] == 0x24 && op[6] == 0x22 && bytes.at() == after) {
          if ((address_ & 15U) >= op[2] - 0x30U)
            now_.cfa_offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(now_.cfa_offset) + 8);
          now_.is_cfa_known = true;
        }
      }
    }
  }
  if (bytes.at() < after) bytes.skip(after - bytes.at());
}

void Program::expression(Bytes& bytes) {
  const std::uint64_t reg = bytes.uleb();
  const std::uint64_t size = bytes.uleb();
  const std::uint64_t after = bytes.at() + size;
  set(reg, SavedFp::unknown, 0);
  if (reg == kFp && size > 0 && bytes.u8() == 0x70 + kFp) {
    const std::int64_t offset = bytes.sleb();
    if (bytes.at() == after) set(reg, SavedFp::at_fp, offset);
  }
  if (bytes.at() < after) bytes.skip(after - bytes.at());
}

bool Program::run(std::uint64_t from, std::uint64_t to) {
  Bytes bytes(read_, from, to);
  while (!bytes.is_done()) {
    const std::uint8_t op = bytes.u8();
    const std::uint8_t low = op & 0x3fU;
    switch (op & 0xc0U) {
      case 0x40:
        if (advance(low)) return true;
        continue;
      case 0x80:
        set(low, SavedFp::at_cfa, scaled(bytes.uleb()));
        continue;
      case 0xc0:
        restore(low);
        continue;
      default:
        break;
    }
    std::uint64_t reg = 0;
    switch (op) {
      case 0x00:
        break;
      case 0x01:
        location_ = bytes.pointer(cie_.encoding, 0);
        if (location_ > address_) return true;
        break;
      case 0x02:
        if (advance(bytes.fixed(1))) return true;
        break;
      case 0x03:
        if (advance(bytes.fixed(2))) return true;
        break;
      case 0x04:
        if (advance(bytes.fixed(4))) return true;
        break;
      case 0x05:
        reg = bytes.uleb();
        set(reg, SavedFp::at_cfa, scaled(bytes.uleb()));
        break;
      case 0x06:
        restore(bytes.uleb());
        break;
      case 0x07:
        reg = bytes.uleb();
        set(reg, SavedFp::unknown, 0);
        if (reg == kReturn) now_.is_return_undefined = true;
        break;
      case 0x08:
        reg = bytes.uleb();
        set(reg, SavedFp::kept, 0);
        break;
      case 0x09:
        reg = bytes.uleb();
        bytes.uleb();
        set(reg, SavedFp::unknown, 0);
        break;
      case 0x0a:
        if (depth_ == 8) return false;
        remembered_[depth_++] = now_;
        break;
      case 0x0b:
        if (depth_ == 0) return false;
        now_ = remembered_[--depth_];
        break;
      case 0x0c:
        now_.cfa_register = bytes.uleb();
        now_.cfa_offset = static_cast<std::int64_t>(bytes.uleb());
        now_.is_cfa_known = true;
        now_.is_cfa_in_memory = false;
        break;
      case 0x0d:
        now_.cfa_register = bytes.uleb();
        break;
      case 0x0e:
        now_.cfa_offset = static_cast<std::int64_t>(bytes.uleb());
        break;
      case 0x0f:
        cfa_expression(bytes);
        break;
      case 0x10:
        expression(bytes);
        break;
      case 0x11:
        reg = bytes.uleb();
        set(reg, SavedFp::at_cfa, scaled(static_cast<std::uint64_t>(bytes.sleb())));
        break;
      case 0x12:
        now_.cfa_register = bytes.uleb();
        now_.cfa_offset = scaled(static_cast<std::uint64_t>(bytes.sleb()));
        now_.is_cfa_known = true;
        now_.is_cfa_in_memory = false;
        break;
      case 0x13:
        now_.cfa_offset = scaled(static_cast<std::uint64_t>(bytes.sleb()));
        break;
      case 0x14:
        reg = bytes.uleb();
        bytes.uleb();
        set(reg, SavedFp::unknown, 0);
        break;
      case 0x15:
        reg = bytes.uleb();
        bytes.sleb();
        set(reg, SavedFp::unknown, 0);
        break;
      case 0x16: {
        reg = bytes.uleb();
        const std::uint64_t size = bytes.uleb();
        bytes.skip(size);
        set(reg, SavedFp::unknown, 0);
        break;
      }
      case 0x2d:
        break;
      case 0x2e:
        bytes.uleb();
        break;
      case 0x2f:
        reg = bytes.uleb();
        set(reg, SavedFp::at_cfa, scaled(0 - bytes.uleb()));
        break;
      default:
        return false;
    }
  }
  return !bytes.is_bad();
}

Rule rule_of(const Registers& registers, bool is_signal) {
  if (is_signal) return {Cfa::signal, SavedFp::kept, 0, 0};
  if (registers.is_return_undefined) return {Cfa::end, SavedFp::kept, 0, 0};
  const std::int64_t offset = registers.cfa_offset;
  if (!registers.is_cfa_known || !registers.has_return || offset > kMostOffset || offset < -kMostOffset ||
      offset % 8 != 0)
    return kNone;
  Rule rule;
  if (registers.cfa_register == kSp)
    rule.cfa = registers.is_cfa_in_memory ? Cfa::in_sp : Cfa::at_sp;
  else if (registers.cfa_register == kFp)
    rule.cfa = registers.is_cfa_in_memory ? Cfa::in_fp : Cfa::at_fp;
  else
    return kNone;
  rule.cfa_offset = static_cast<std::int32_t>(offset);
  rule.fp = registers.fp;
  const std::int64_t fp_offset = registers.fp_offset;
  if (fp_offset % 8 != 0 || fp_offset >= 1 << 20 || fp_offset < -(1 << 20))
    rule.fp = SavedFp::unknown;
  else if (rule.fp == SavedFp::at_cfa || rule.fp == SavedFp::at_fp)
    rule.fp_offset = static_cast<std::int32_t>(fp_offset);
  return rule;
}

Rule rule_of_description(ReadMemory read, std::uint64_t description, std::uint64_t address) {
  std::uint32_t length = 0;
  if (!read(description, &length, sizeof length) || length < 8 || length >= 0xfffffff0U) return kNone;
  const std::uint64_t end = description + 4 + length;
  Bytes bytes(read, description + 4, end);
  const std::uint64_t back = bytes.fixed(4);
  if (back == 0 || bytes.is_bad()) return kNone;
  Cie cie;
  if (!read_cie(read, description + 4 - back, cie)) return kNone;
  const std::uint64_t begin = bytes.pointer(cie.encoding, 0);
  const std::uint64_t size = bytes.pointer(cie.encoding & 0x0fU, 0);
  if (bytes.is_bad() || address < begin || address - begin >= size) return kNone;
  if (cie.has_augmentation) {
    const std::uint64_t augmentation = bytes.uleb();
    bytes.skip(augmentation);
  }
  if (bytes.is_bad()) return kNone;
  if (cie.is_signal) return rule_of({}, true);
  Program program(read, cie, begin, address);
  if (cie.instructions > cie.end || !program.run(cie.instructions, cie.end)) return kNone;
  program.keep_initial();
  if (!program.run(bytes.at(), end)) return kNone;
  return rule_of(program.now(), false);
}

}  // namespace

Rule find_rule(ReadMemory read, std::uint64_t table, std::uint64_t address) {
  Bytes head(read, table, table + 32);
  const std::uint8_t version = head.u8();
  const std::uint8_t frame_encoding = head.u8();
  const std::uint8_t count_encoding = head.u8();
  const std::uint8_t table_encoding = head.u8();
  // Requires pairs of 32 bits, relative to the header, which every linker writes.
  if (version != 1 || table_encoding != 0x3b || count_encoding == 0xff) return kNone;
  head.pointer(frame_encoding, table);
  std::uint64_t count = head.pointer(count_encoding, table);
  if (head.is_bad() || count == 0 || count > 1U << 26U) return kNone;
  struct Entry {
    std::int32_t begin;
    std::int32_t description;
  };
  const std::uint64_t entries = head.at();
  const auto wanted = static_cast<std::int64_t>(address - table);
  std::uint64_t low = 0;
  constexpr std::uint64_t kAtOnce = 32;
  while (count > kAtOnce) {
    const std::uint64_t half = count / 2;
    Entry entry{};
    if (!read(entries + (low + half) * sizeof entry, &entry, sizeof entry)) return kNone;
    if (entry.begin <= wanted) {
      low += half;
      count -= half;
    } else {
      count = half;
    }
  }
  Entry last[kAtOnce] = {};
  if (!read(entries + low * sizeof(Entry), last, count * sizeof(Entry))) return kNone;
  std::uint64_t found = count;
  for (std::uint64_t i = 0; i < count && last[i].begin <= wanted; ++i) found = i;
  if (found == count) return kNone;
  return rule_of_description(read, table + static_cast<std::uint64_t>(std::int64_t{last[found].description}), address);
}

}  // namespace vramtrack::probe
