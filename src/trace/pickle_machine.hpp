// PickleMachine: runs the data opcodes of a pickle over a window of its bytes and passes containers to a schema as they
// fill. Included by one .cpp; the schema is a template parameter so that its hot functions are inlined.
//
//   bytes -> opcode -> stack of Values -> SETITEMS / APPENDS -> schema.set / schema.append -> schema.seal
//
// A pickle opens a container (EMPTY_LIST), fills it and only then puts it where it belongs. Its role is known
// nevertheless, because its key and its parent are below it on the stack: parent MARK key [here]. So the schema is
// asked for the role at opening, and only containers with a role get a slot. A container is sealed (replaced by its
// result, its slot free again) as soon as the next one is opened beside it, something refers to it, or it is attached.
// Filling a sealed container is an error; a list that contains itself ends with that error, too.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "trace/pickle_value.hpp"
#include "trace/pickle_window.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Schema: see SnapshotSchema, the only one besides those of the tests. It has
///   using Slot       with members role (0: none), is_dict, memo (1 + index, 0: none), at (place on the stack)
///   u8 root(bool is_dict); u8 role_of(const Slot& parent, StringId key or none, bool is_dict)
///   void opened(Slot& child, const Slot* parent, StringId key, u64 position)
///   bool set(Slot&, StringId key, Value), bool append(Slot&, Value), bool seal(Slot&, Value& out)
///   std::string error   why one of these returned false
template <class Schema>
class PickleMachine : public PickleWindow {
 public:
  PickleMachine(ByteInput& input, Symbols& symbols, Schema& schema)
      : PickleWindow(input), symbols_(symbols), schema_(schema) {}

  /// Reads from the first byte to STOP, and past the padding after it.
  Status run() {
    if (!refill()) return result();
    if (!check_beginning()) return result();
    while (!stopped_)
      if (!steps()) return result();
    return skip_padding() ? Status{} : result();
  }

 private:
  static constexpr std::size_t kMostMarks = 1000;
  static constexpr std::size_t kMostSlots = 65536;

  // ---- values

  bool push(Value value) {
    if (sp_ == stack_.size()) {
      // A list of ten million records written in one batch is all on the stack, but each took tens of bytes.
      if (sp_ > 65536 + offset() / 4) return bad("a stack of more values than any snapshot needs");
      stack_.resize(std::max<std::size_t>(1024, stack_.size() * 2));
    }
    stack_[sp_++] = value;
    return true;
  }
  bool push_integer(std::uint64_t bits, bool negative = false) { return push({bits, Tag::integer, negative}); }

  /// Index of the first value above the innermost MARK.
  [[nodiscard]] std::size_t base() const { return marks_.empty() ? 0 : marks_.back(); }

  bool underflow() { return bad(fmt::format("{} with an empty stack: the file is damaged", name())); }
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
      // "list [here] APPEND" or "list MARK ... [here] ... APPENDS", where the top is complete.
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
      // The slots may move, and the parent with them.
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

  /// Replaces the open container at stack_[at] by its result, there and in the memo.
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
    if (stack_[key_at].tag != Tag::string) return true;  // not a key that we need
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
    // Each object takes at least a byte, and ids count objects, so a larger id is an attack on memory.
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
          // A second name for a container that is still being filled; no pickler writes that.
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
    if (length <= 8 && end_ - p_ >= 8) {  // the usual case: one unaligned load
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
        return push({0, Tag::opaque});  // over 64 bits; an error only if it is used
      }
    }
    if (negative && bits >> 63 == 0) return push({0, Tag::opaque});
    return push_integer(bits, negative);
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
    if (!line()) return false;
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

  Symbols& symbols_;
  Schema& schema_;
  bool stopped_ = false;

  std::vector<Value> stack_;
  std::size_t sp_ = 0;
  std::vector<std::size_t> marks_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_slots_;
  Memo memo_;
  struct Short {
    std::uint64_t key = ~std::uint64_t{0};  ///< bytes and length; no string of up to seven bytes has this key
    std::uint32_t id = 0;
  };
  std::array<Short, 64> shorts_{};
  std::vector<Value> table_;  ///< memoized values other than names (rare)
  std::uint64_t next_memo_ = 0;
};

}  // namespace vramtrack::trace

#include "trace/pickle_opcodes.hpp"  // its members
