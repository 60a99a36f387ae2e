// PickleMachine: runs the data opcodes of a pickle over a window of its bytes and hands containers to a schema as
// they fill. Included by one .cpp; the schema is a template parameter so that its hot functions are inlined.
//
//   bytes -> opcode -> stack of Values -> SETITEMS / APPENDS -> schema.set / schema.append -> schema.seal
//
// A pickle opens a container (EMPTY_LIST), fills it and only then puts it where it belongs. What it will be is known
// nevertheless, since its key and its parent lie below it on the stack: parent MARK key [here]. So the schema is asked
// for its role when it is opened, only containers with a role get a slot, and a container is sealed (turned into what
// it came to, its slot free again) as soon as the next one is opened beside it, something refers to it, or it is
// attached. Filling a sealed container is an error; that is also how a list within itself ends.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "trace/byte_input.hpp"
#include "trace/pickle_value.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Schema: see SnapshotSchema, the only one besides those of the tests. It has
///   using Slot       with members role (0: none), is_dict, memo (1 + index, 0: none), at (place on the stack)
///   u8 root(bool is_dict); u8 role_of(const Slot& parent, StringId key or none, bool is_dict)
///   void opened(Slot& child, const Slot* parent, StringId key, u64 position)
///   bool set(Slot&, StringId key, Value), bool append(Slot&, Value), bool seal(Slot&, Value& out)
///   std::string error   why one of these returned false
template <class Schema>
class PickleMachine {
 public:
  PickleMachine(ByteInput& input, Symbols& symbols, Schema& schema)
      : input_(input), symbols_(symbols), schema_(schema), buffer_(kWindow) {
    p_ = end_ = buffer_.data();
  }

  /// From the first byte to STOP, and over the padding behind it.
  Status run() {
    if (!refill()) return result();
    if (!check_beginning()) return result();
    while (!stopped_)
      if (!steps()) return result();
    return skip_padding() ? Status{} : result();
  }

  [[nodiscard]] std::uint64_t offset() const { return base_ + static_cast<std::uint64_t>(p_ - buffer_.data()); }
  /// The first byte behind STOP and its padding that is not 0, or none.
  [[nodiscard]] std::uint64_t trailing_bytes() const { return trailing_; }

 private:
  static constexpr std::size_t kWindow = 256 * 1024;
  static constexpr std::ptrdiff_t kLookahead = 16;
  static constexpr std::size_t kMostMarks = 1000;
  static constexpr std::size_t kMostSlots = 65536;
  static constexpr std::size_t kMostLine = 65536;

  Status result() const {
    return fail(fmt::format("{}: at byte {}: {}", input_.name(), op_offset_, error_.empty() ? "unreadable" : error_));
  }
  bool bad(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool cut_off() {
    return bad("the pickle is cut off here; was it still being written? Take the snapshot again, or copy it again");
  }

  /// Keeps what is left of the window and reads on behind it. False on a read error only.
  bool refill() {
    const auto left = static_cast<std::size_t>(end_ - p_);
    base_ += static_cast<std::uint64_t>(p_ - buffer_.data());
    if (left > 0) std::memmove(buffer_.data(), p_, left);
    p_ = buffer_.data();
    std::size_t filled = left;
    while (filled < static_cast<std::size_t>(kLookahead) && !at_end_) {
      const auto n = input_.read({buffer_.data() + filled, buffer_.size() - filled});
      if (!n) {
        read_error_ = n.error().message;
        op_offset_ = base_;
        return bad(read_error_);
      }
      at_end_ = *n == 0;
      filled += *n;
    }
    end_ = buffer_.data() + filled;
    return true;
  }

  bool check_beginning() {
    op_offset_ = 0;
    if (p_ == end_) return bad("the file is empty; expected a file of torch.cuda.memory._dump_snapshot");
    if (end_ - p_ >= 2 && p_[0] == 'P' && p_[1] == 'K')
      return bad("a zip archive (of torch.save?); expected a file of torch.cuda.memory._dump_snapshot");
    const std::uint8_t first = *p_;
    // Protocols 0 and 1 have no header: they begin with the container, protocol 0 with a MARK.
    if (first != 0x80 && first != ']' && first != '}' && first != '(')
      return bad("not a pickle; expected a file of torch.cuda.memory._dump_snapshot, plain, gzip or zstd");
    return true;
  }

  bool skip_padding() {
    for (;;) {
      for (; p_ != end_; ++p_)
        if (*p_ != 0) {
          trailing_ = offset();
          return true;
        }
      if (at_end_) return true;
      if (!refill()) return false;
    }
  }

  // ---- values

  bool push(Value value) {
    if (sp_ == stack_.size()) {
      // A list of ten million records written in one batch lies on the stack whole, but each took tens of bytes.
      if (sp_ > 65536 + offset() / 4) return bad("a stack of more values than any snapshot needs");
      stack_.resize(std::max<std::size_t>(1024, stack_.size() * 2));
    }
    stack_[sp_++] = value;
    return true;
  }
  bool push_integer(std::uint64_t bits, bool negative = false) { return push({bits, Tag::integer, negative}); }

  /// Bottom of the values above the innermost MARK.
  [[nodiscard]] std::size_t base() const { return marks_.empty() ? 0 : marks_.back(); }

  bool underflow() { return bad(fmt::format("{} finds nothing to work on: the file is damaged", name())); }
  [[nodiscard]] std::string_view name() const { return opcode_name(op_); }

  bool pop_to(std::size_t bottom) {
    for (std::size_t i = bottom; i < sp_; ++i)
      if (stack_[i].tag == Tag::open && !seal(i)) return false;
    sp_ = bottom;
    return true;
  }

  // ---- containers

  using Slot = typename Schema::Slot;

  Slot& slot_of(const Value& value) { return slots_[value.bits]; }

  bool open(bool is_dict) {
    std::uint8_t role = 0;
    const Slot* parent = nullptr;
    StringId key{};
    std::uint64_t position = 0;
    const std::size_t bottom = base();
    const std::size_t above = sp_ - bottom;
    const Value* const below = !marks_.empty() && bottom > 0 ? &stack_[bottom - 1] : nullptr;
    const auto child_of = [&](const Value& of, bool keyed, std::uint64_t at) {
      const Slot& candidate = slots_[of.bits];
      if (candidate.is_dict != keyed) return false;
      const StringId its_key = keyed ? static_cast<StringId>(stack_[sp_ - 1].bits) : StringId{};
      const std::uint8_t found = schema_.role_of(candidate, its_key, is_dict);
      if (found == 0) return false;
      role = found;
      key = its_key;
      parent = &candidate;
      position = at;
      return true;
    };
    if (sp_ == 0) {
      role = schema_.root(is_dict);
    } else if (above == 0) {
      if (below != nullptr && below->tag == Tag::open) child_of(*below, false, 0);
    } else if (const Value top = stack_[sp_ - 1]; top.tag == Tag::string) {
      // "dict key [here] SETITEM" or "dict MARK ... key [here] ... SETITEMS".
      const bool single = above >= 2 && stack_[sp_ - 2].tag == Tag::open && child_of(stack_[sp_ - 2], true, 0);
      if (!single && below != nullptr && below->tag == Tag::open && above % 2 == 1) child_of(*below, true, 0);
    } else {
      // "list [here] APPEND" or "list MARK ... [here] ... APPENDS", where the top is done.
      const bool single = top.tag == Tag::open && child_of(top, false, 0);
      if (!single) {
        if (top.tag == Tag::open && !seal(sp_ - 1)) return false;
        if (below != nullptr && below->tag == Tag::open) child_of(*below, false, above);
      }
    }
    if (role == 0) return push({0, is_dict ? Tag::dict : Tag::list});
    std::size_t index = 0;
    if (!free_slots_.empty()) {
      index = free_slots_.back();
      free_slots_.pop_back();
    } else {
      if (slots_.size() >= kMostSlots) return bad("more containers are open at once than any snapshot needs");
      // The parent may move with the others.
      const std::size_t parent_index = parent != nullptr ? static_cast<std::size_t>(parent - slots_.data()) : 0;
      index = slots_.size();
      slots_.emplace_back();
      if (parent != nullptr) parent = &slots_[parent_index];
    }
    Slot& slot = slots_[index];
    slot.role = role;
    slot.is_dict = is_dict;
    slot.memo = 0;
    slot.at = sp_;
    schema_.opened(slot, parent, key, position);
    return push({index, Tag::open});
  }

  /// Turns the open container at stack_[at] into what it came to, there and in the memo.
  bool seal(std::size_t at) {
    const auto index = static_cast<std::size_t>(stack_[at].bits);
    Value sealed;
    if (!schema_.seal(slots_[index], sealed)) return bad(schema_.error);
    const std::uint64_t memo = slots_[index].memo;
    if (memo != 0 && !memoize(memo - 1, sealed, at)) return false;
    stack_[at] = sealed;
    free_slots_.push_back(index);
    return true;
  }

  bool attach_pair(std::size_t target, std::size_t key_at) {
    if (stack_[key_at + 1].tag == Tag::open && !seal(key_at + 1)) return false;
    if (stack_[key_at].tag != Tag::string) return true;  // no key of ours
    if (!schema_.set(slot_of(stack_[target]), static_cast<StringId>(stack_[key_at].bits), stack_[key_at + 1]))
      return bad(schema_.error);
    return true;
  }

  bool not_fillable(const Value& value, std::string_view what) {
    if (value.tag == Tag::frame || value.tag == Tag::stack || value.tag == Tag::record || value.tag == Tag::item ||
        value.tag == Tag::repeated)
      return bad(
          fmt::format("{} changes a {} that was complete: one that contains itself, or a damaged file", name(), what));
    return bad(fmt::format("{} is used on {}; expected a {}", name(), tag_words(value.tag), what));
  }

  bool set_items(std::size_t bottom) {
    if (bottom == 0) return underflow();
    if ((sp_ - bottom) % 2 != 0) return bad(fmt::format("{} has a key without a value: the file is damaged", name()));
    const Value& target = stack_[bottom - 1];
    if (target.tag == Tag::open) {
      if (!slot_of(target).is_dict) return bad(fmt::format("{} is used on a list; expected a dict", name()));
      for (std::size_t i = bottom; i < sp_; i += 2)
        if (!attach_pair(bottom - 1, i)) return false;
      sp_ = bottom;
      return true;
    }
    if (target.tag != Tag::dict) return not_fillable(target, "dict");
    return pop_to(bottom);
  }

  bool append_items(std::size_t bottom) {
    if (bottom == 0) return underflow();
    const Value& target = stack_[bottom - 1];
    if (target.tag == Tag::open) {
      if (slot_of(target).is_dict) return bad(fmt::format("{} is used on a dict; expected a list", name()));
      for (std::size_t i = bottom; i < sp_; ++i) {
        if (stack_[i].tag == Tag::open && !seal(i)) return false;
        if (!schema_.append(slot_of(stack_[bottom - 1]), stack_[i])) return bad(schema_.error);
      }
      sp_ = bottom;
      return true;
    }
    if (target.tag != Tag::list) return not_fillable(target, "list");
    return pop_to(bottom);
  }

  bool pop_mark(std::size_t& bottom) {
    if (marks_.empty()) return bad(fmt::format("{} without a MARK: the file is damaged", name()));
    bottom = marks_.back();
    marks_.pop_back();
    return true;
  }

  bool tuple(std::size_t bottom) {
    Value value{0, Tag::opaque};
    if (sp_ - bottom == 2) {
      const Value& a = stack_[bottom];
      const Value& b = stack_[bottom + 1];
      if (a.tag == Tag::integer && b.tag == Tag::integer && a.bits >> 32 == 0 && b.bits >> 32 == 0)
        value = {(a.bits << 32) | b.bits, Tag::pair};
    }
    return pop_to(bottom) && push(value);
  }

  // ---- memo

  bool memoize(std::uint64_t index, const Value& value, std::size_t at) {
    // Each object of a pickle takes a byte at least, and ids count objects: a larger one is an attack on memory.
    if (index > offset()) return bad(fmt::format("memo entry {}, more than the file has had objects", index));
    std::uint64_t id = value.bits;
    Memo::Kind kind = Memo::opaque;
    switch (value.tag) {
      case Tag::string:
        kind = Memo::string;
        break;
      case Tag::frame:
        kind = Memo::frame;
        break;
      case Tag::stack:
        kind = Memo::stack;
        break;
      case Tag::open: {
        Slot& slot = slot_of(value);
        if (slot.memo != 0) {
          // Two names for a container that is still being filled: no pickler does that.
          if (slot.memo - 1 == index) return true;
          return bad("a container is memoized twice: the file is damaged");
        }
        slot.memo = index + 1;
        kind = Memo::open;
        id = at;
        break;
      }
      case Tag::record:
      case Tag::repeated:
        kind = Memo::record;
        id = value.bits != 0 ? 1 : 0;
        break;
      case Tag::list:
      case Tag::dict:
        id = static_cast<std::uint64_t>(value.tag);
        break;
      case Tag::opaque:
      case Tag::item:
        id = static_cast<std::uint64_t>(Tag::opaque);
        break;
      default:
        kind = Memo::table;
        id = table_.size();
        table_.push_back(value);
    }
    if (id >= Memo::kMostIds) return bad("more objects than this reader can count");
    memo_.put(index, {kind, static_cast<std::uint32_t>(id)});
    return true;
  }

  bool put(std::uint64_t index) {
    if (sp_ == 0 || sp_ == base()) return underflow();
    next_memo_ = std::max(next_memo_, index + 1);
    return memoize(index, stack_[sp_ - 1], sp_ - 1);
  }

  bool get(std::uint64_t index) {
    Memo::Entry entry = memo_.get(index);
    if (entry.kind == Memo::open) {
      if (!seal(entry.id)) return false;
      entry = memo_.get(index);
    }
    switch (entry.kind) {
      case Memo::absent:
        return bad(fmt::format("memo entry {} is used before it was stored: the file is damaged", index));
      case Memo::string:
        return push({entry.id, Tag::string});
      case Memo::frame:
        return push({entry.id, Tag::frame});
      case Memo::stack:
        return push({entry.id, Tag::stack});
      case Memo::table:
        return push(table_[entry.id]);
      case Memo::record:
        return push({entry.id, Tag::repeated});
      default:
        return push({0, static_cast<Tag>(entry.id)});
    }
  }

  // ---- arguments

  [[nodiscard]] static std::uint64_t little(const std::uint8_t* at, unsigned bytes) {
    std::uint64_t value = 0;
    if constexpr (std::endian::native == std::endian::little)
      std::memcpy(&value, at, bytes);
    else
      for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{at[i]} << (8 * i);
    return value;
  }

  /// True when `bytes` more than the opcode are in the window.
  bool need(std::ptrdiff_t bytes) { return end_ - p_ > bytes || cut_off(); }

  /// `length` bytes from p_ on, which moves behind them; only what exists is ever allocated.
  bool take(std::uint64_t length, std::string_view& out, bool keep = true) {
    if (length <= static_cast<std::uint64_t>(end_ - p_)) {
      out = {reinterpret_cast<const char*>(p_), static_cast<std::size_t>(length)};
      p_ += length;
      return true;
    }
    if (const auto size = input_.size_bytes(); size && length > *size - std::min(*size, offset()))
      return bad(fmt::format("{} of {} bytes, but only {} are left in the file", name(), length,
                             *size - std::min(*size, offset())));
    spill_.clear();
    while (length > 0) {
      const auto n = std::min<std::uint64_t>(length, static_cast<std::uint64_t>(end_ - p_));
      if (keep) spill_.append(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(n));
      p_ += n;
      length -= n;
      if (length > 0) {
        if (!refill()) return false;
        if (p_ == end_) return cut_off();
      }
    }
    out = spill_;
    return true;
  }

  bool string(unsigned length_bytes) {
    if (!need(length_bytes)) return false;
    const std::uint64_t length = little(p_ + 1, length_bytes);
    p_ += 1 + length_bytes;
    std::string_view text;
    return take(length, text) && push({index_of(symbols_.intern(text)), Tag::string});
  }

  bool skip_bytes(unsigned length_bytes) {
    if (!need(length_bytes)) return false;
    const std::uint64_t length = little(p_ + 1, length_bytes);
    p_ += 1 + length_bytes;
    std::string_view ignored;
    return take(length, ignored, false) && push({0, Tag::opaque});
  }

  bool long_integer(unsigned length_bytes) {
    if (!need(length_bytes)) return false;
    const std::uint64_t length = little(p_ + 1, length_bytes);
    p_ += 1 + length_bytes;
    if (length <= 8 && end_ - p_ >= 8) {  // the usual: one unaligned load
      std::uint64_t bits = 0;
      std::memcpy(&bits, p_, 8);
      const unsigned unused = 64 - 8 * static_cast<unsigned>(length);
      const bool negative = length > 0 && (p_[length - 1] & 0x80) != 0;
      if (length == 0)
        bits = 0;
      else if (negative)
        bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
      else
        bits = (bits << unused) >> unused;
      p_ += length;
      return push_integer(bits, negative);
    }
    std::string_view digits;
    if (!take(length, digits)) return false;
    const bool negative = !digits.empty() && (static_cast<unsigned char>(digits.back()) & 0x80) != 0;
    const char filler = negative ? '\xff' : '\0';
    std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const auto byte = static_cast<unsigned char>(digits[i]);
      if (i < 8) {
        const unsigned shift = 8 * static_cast<unsigned>(i);
        bits = (bits & ~(std::uint64_t{0xff} << shift)) | (std::uint64_t{byte} << shift);
      } else if (digits[i] != filler) {
        return push({0, Tag::opaque});  // beyond 64 bits; an error only where it is used
      }
    }
    if (negative && bits >> 63 == 0) return push({0, Tag::opaque});
    return push_integer(bits, negative);
  }

  /// The text form of an argument: up to the newline, without it.
  bool line(std::string& out) {
    ++p_;
    out.clear();
    for (;;) {
      const auto* newline = static_cast<const std::uint8_t*>(
          p_ == end_ ? nullptr : std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
      const std::uint8_t* const until = newline != nullptr ? newline : end_;
      out.append(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(until - p_));
      p_ = until;
      if (newline != nullptr) {
        ++p_;
        if (!out.empty() && out.back() == '\r') out.pop_back();
        return true;
      }
      if (out.size() > kMostLine) return bad(fmt::format("{} with an argument of over {} bytes", name(), kMostLine));
      if (!refill()) return false;
      if (p_ == end_) return cut_off();
    }
  }

  bool line_number(std::uint64_t& out, bool& negative) {
    if (!line(line_)) return false;
    std::string_view text = line_;
    if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
    negative = !text.empty() && text.front() == '-';
    if (negative) text.remove_prefix(1);
    std::uint64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > (~std::uint64_t{0} - 9) / 10)
        return bad(fmt::format("{} with the argument '{:.40}'; expected a number of 64 bits", name(), line_));
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (text.empty() || (negative && value > (std::uint64_t{1} << 63)))
      return bad(fmt::format("{} with the argument '{:.40}'; expected a number of 64 bits", name(), line_));
    out = negative ? ~value + 1 : value;
    negative = negative && value != 0;
    return true;
  }

  bool text_integer() {
    std::uint64_t value = 0;
    bool negative = false;
    if (!line_number(value, negative)) return false;
    // Protocol 0's booleans.
    if (op_ == 'I' && (line_ == "00" || line_ == "01")) return push({value, Tag::boolean});
    return push_integer(value, negative);
  }

  bool text_string() {
    if (!line(line_)) return false;
    std::string_view text = line_;
    if (op_ == 'S' && text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
      text = text.substr(1, text.size() - 2);
    return push({index_of(symbols_.intern(unescaped(text))), Tag::string});
  }

  bool real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, 8);
    return push({bits, Tag::real});
  }

  bool refuse() {
    if (op_ >= 0x8f && op_ <= 0x91) return bad(fmt::format("opcode {}: no snapshot holds a set", name()));
    return bad(
        fmt::format("opcode {} would make Python import or call something; nothing was executed. Expected a file of "
                    "torch.cuda.memory._dump_snapshot, which holds data only",
                    name()));
  }

  bool steps();
  bool step();

  ByteInput& input_;
  Symbols& symbols_;
  Schema& schema_;
  std::vector<std::uint8_t> buffer_;
  const std::uint8_t* p_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::uint64_t base_ = 0;  ///< offset of buffer_[0] in the file
  bool at_end_ = false;
  bool stopped_ = false;
  std::uint8_t op_ = 0;
  std::uint64_t op_offset_ = 0;
  std::uint64_t trailing_ = 0;
  std::string error_, read_error_, spill_, line_;

  std::vector<Value> stack_;
  std::size_t sp_ = 0;
  std::vector<std::size_t> marks_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_slots_;
  Memo memo_;
  struct Short {
    std::uint64_t key = ~std::uint64_t{0};  ///< bytes and length; no string of up to seven bytes has this one
    std::uint32_t id = 0;
  };
  std::array<Short, 64> shorts_{};
  std::vector<Value> table_;  ///< memoized values that are no names: rare
  std::uint64_t next_memo_ = 0;
};

/// Nine opcodes in ten are references, marks and small integers: done here, while the window lasts, with the place in
/// it in a register. One of all others, or an error of these, is left to step().
template <class Schema>
bool PickleMachine<Schema>::steps() {
  const std::uint8_t* p = p_;
  const std::uint8_t* const last = end_ - kLookahead;
  // A value that finds no room goes the long way, which makes some.
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
        // Some writers repeat short strings ("N/A") in every event: known by their bytes, without hashing.
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

/// One opcode and its argument.
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
    case 0x95:  // FRAME: advice for readers that want blocks
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
    case 'd':  // DICT and LIST: protocol 0's picklers close the mark at once and fill them one by one
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
      if (!line(line_)) return false;
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
    case 'U':   // SHORT_BINSTRING, Python 2's
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
      if (opcode_name(op_).empty()) return bad(fmt::format("0x{:02x} is no opcode: the file is damaged", op_));
      return refuse();
  }
}

}  // namespace vramtrack::trace
