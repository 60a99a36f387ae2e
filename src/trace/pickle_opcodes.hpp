// The opcodes of PickleMachine: executed one at a time, the frequent ones in batches. The second half of
// pickle_machine.hpp, which includes it.
#pragma once

#include "trace/pickle_machine.hpp"

namespace vramtrack::trace {

/// Nine opcodes in ten are references, marks and small integers. They are executed here, while the window lasts, with
/// the position in a register. Any other opcode, and any error, is left to step().
template <class Schema>
bool PickleMachine<Schema>::steps() {
  const std::uint8_t* p = p_;
  const std::uint8_t* const last = end_ - kLookahead;
  // A value without room on the stack takes the slow path, which makes room.
  while (p < last && sp_ < stack_.size()) {
    Value value;
    std::size_t length = 0;
    switch (*p) {
      case 'h':
        if (!memo_.get_plain(p[1], value)) break;
        length = 2;
        break;
      case 'j':
        if (!memo_.get_plain(little(p + 1, 4), value)) break;
        length = 5;
        break;
      case 'K':
        value = {p[1], Tag::integer};
        length = 2;
        break;
      case 'M':
        value = {little(p + 1, 2), Tag::integer};
        length = 3;
        break;
      case 'J': {
        const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(little(p + 1, 4)));
        value = {static_cast<std::uint64_t>(std::int64_t{number}), Tag::integer, number < 0};
        length = 5;
        break;
      }
      case 0x8a: {
        const std::uint8_t size = p[1];
        if (size == 0 || size >= 8 || (p[1 + size] & 0x80) != 0) break;
        value = {little(p + 2, 8) & ((std::uint64_t{1} << (8 * size)) - 1), Tag::integer};
        length = 2U + size;
        break;
      }
      case '(':
        if (marks_.size() >= kMostMarks) break;
        marks_.push_back(sp_);
        ++p;
        continue;
      case 0x8c: {
        // Some writers repeat short strings ("N/A") in every event: recognise them by their bytes.
        const std::uint8_t size = p[1];
        if (size >= 8) break;
        const std::uint64_t key = (little(p + 2, 8) & ((std::uint64_t{1} << (8 * size)) - 1)) | std::uint64_t{size}
                                                                                                    << 56;
        Short& known = shorts_[(key * 0x9e3779b97f4a7c15ULL) >> 58];
        if (known.key != key) {
          const std::string_view text(reinterpret_cast<const char*>(p + 2), size);
          known = {key, index_of(symbols_.intern(text))};
        }
        value = {known.id, Tag::string};
        length = 2U + size;
        break;
      }
      case 0x94:
        p_ = p;
        op_ = 0x94;
        op_offset_ = offset();
        if (!put(next_memo_)) return false;
        ++p;
        continue;
      default:
        break;
    }
    if (length == 0) break;
    stack_[sp_++] = value;
    p += length;
  }
  p_ = p;
  return step();
}

/// Executes one opcode with its argument.
template <class Schema>
bool PickleMachine<Schema>::step() {
  if (end_ - p_ < kLookahead && !at_end_ && !refill()) return false;
  op_offset_ = offset();
  if (p_ == end_) return cut_off();
  op_ = *p_;
  std::size_t bottom = 0;
  switch (op_) {
    case 0x80:  // PROTO
      if (!need(1)) return false;
      if (p_[1] > 5) return bad(fmt::format("pickle protocol {}; this version reads 0 to 5", p_[1]));
      p_ += 2;
      return true;
    case 0x95:  // FRAME: a hint for readers that read blocks
      if (!need(8)) return false;
      p_ += 9;
      return true;
    case '(':  // MARK
      ++p_;
      if (marks_.size() >= kMostMarks) return bad(fmt::format("nested more than {} deep", kMostMarks));
      marks_.push_back(sp_);
      return true;
    case '.':  // STOP
      ++p_;
      if (sp_ != 1 || !marks_.empty()) return bad("STOP with a stack that is not one value: the file is damaged");
      if (stack_[0].tag == Tag::open && !seal(0)) return false;
      stopped_ = true;
      return true;
    case '}':
      ++p_;
      return open(true);
    case ']':
      ++p_;
      return open(false);
    case 'd':  // DICT and LIST: picklers of protocol 0 close the mark at once and fill them one by one
    case 'l':
      ++p_;
      if (!pop_mark(bottom)) return false;
      if (sp_ != bottom)
        return bad(fmt::format("{} over {} values: no pickler of Python or PyTorch writes that", name(), sp_ - bottom));
      return open(op_ == 'd');
    case 'h':  // BINGET
      if (!need(1)) return false;
      p_ += 2;
      return get(p_[-1]);
    case 'j':  // LONG_BINGET
      if (!need(4)) return false;
      p_ += 5;
      return get(little(p_ - 4, 4));
    case 'g': {  // GET
      std::uint64_t index = 0;
      bool negative = false;
      return line_number(index, negative) && get(index);
    }
    case 0x94:  // MEMOIZE
      ++p_;
      return put(next_memo_);
    case 'q':  // BINPUT
      if (!need(1)) return false;
      p_ += 2;
      return put(p_[-1]);
    case 'r':  // LONG_BINPUT
      if (!need(4)) return false;
      p_ += 5;
      return put(little(p_ - 4, 4));
    case 'p': {  // PUT
      std::uint64_t index = 0;
      bool negative = false;
      return line_number(index, negative) && put(index);
    }
    case 'K':  // BININT1
      if (!need(1)) return false;
      p_ += 2;
      return push_integer(p_[-1]);
    case 'M':  // BININT2
      if (!need(2)) return false;
      p_ += 3;
      return push_integer(little(p_ - 2, 2));
    case 'J': {  // BININT
      if (!need(4)) return false;
      p_ += 5;
      const auto value = static_cast<std::int32_t>(static_cast<std::uint32_t>(little(p_ - 4, 4)));
      return push_integer(static_cast<std::uint64_t>(std::int64_t{value}), value < 0);
    }
    case 0x8a:
      return long_integer(1);
    case 0x8b:
      return long_integer(4);
    case 'I':
    case 'L':
      return text_integer();
    case 'G': {  // BINFLOAT, big-endian
      if (!need(8)) return false;
      std::uint64_t bits = 0;
      for (int i = 1; i <= 8; ++i) bits = (bits << 8) | p_[i];
      p_ += 9;
      return push({bits, Tag::real});
    }
    case 'F': {
      if (!line()) return false;
      char* parsed = nullptr;
      const double value = std::strtod(line_.c_str(), &parsed);
      if (line_.empty() || *parsed != '\0') return bad(fmt::format("FLOAT with the argument '{:.40}'", line_));
      return real(value);
    }
    case 'N':
      ++p_;
      return push({0, Tag::none});
    case 0x88:
    case 0x89:
      ++p_;
      return push({op_ == 0x88 ? 1U : 0U, Tag::boolean});
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING, from Python 2
      return string(1);
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      return string(4);
    case 0x8d:
      return string(8);
    case 'S':
    case 'V':
      return text_string();
    case 'C':
      return skip_bytes(1);
    case 'B':
      return skip_bytes(4);
    case 0x8e:
    case 0x96:
      return skip_bytes(8);
    case 'u':  // SETITEMS
      ++p_;
      return pop_mark(bottom) && set_items(bottom);
    case 's':  // SETITEM
      ++p_;
      if (sp_ < base() + 3) return underflow();
      return set_items(sp_ - 2);
    case 'e':  // APPENDS
      ++p_;
      return pop_mark(bottom) && append_items(bottom);
    case 'a':  // APPEND
      ++p_;
      if (sp_ < base() + 2) return underflow();
      return append_items(sp_ - 1);
    case ')':
      ++p_;
      return push({0, Tag::opaque});
    case 't':
      ++p_;
      return pop_mark(bottom) && tuple(bottom);
    case 0x85:
    case 0x86:
    case 0x87: {
      ++p_;
      const std::size_t count = op_ - 0x84U;
      if (sp_ < base() + count) return underflow();
      return tuple(sp_ - count);
    }
    case '0':  // POP
      ++p_;
      if (sp_ > base()) return pop_to(sp_ - 1);
      return pop_mark(bottom);
    case '1':  // POP_MARK
      ++p_;
      return pop_mark(bottom) && pop_to(bottom);
    case '2':  // DUP
      ++p_;
      if (sp_ == 0 || sp_ == base()) return underflow();
      if (stack_[sp_ - 1].tag == Tag::open && !seal(sp_ - 1)) return false;
      return push(stack_[sp_ - 1]);
    default:
      if (opcode_name(op_).empty()) return bad(fmt::format("0x{:02x} is not an opcode: the file is damaged", op_));
      return refuse();
  }
}

}  // namespace vramtrack::trace
