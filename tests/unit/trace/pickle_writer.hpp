// Writes pickles for the tests: Python-like values, in any protocol, like Python's pickler or PyTorch's (one batch).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace vramtrack::trace::test {

struct Value;
using Py = std::shared_ptr<Value>;
using List = std::vector<Py>;
using Dict = std::vector<std::pair<std::string, Py>>;
struct None {};
/// An integer of up to 128 bits, as two's complement: the sign is that of `high`.
struct Wide {
  std::uint64_t low;
  std::int64_t high;
};
struct Value {
  std::variant<None, bool, std::int64_t, Wide, double, std::string, List, Dict, std::pair<std::int64_t, std::int64_t>>
      is;
};

inline Py py(None) {
  return std::make_shared<Value>(Value{None{}});
}
inline Py py(bool b) {
  return std::make_shared<Value>(Value{b});
}
inline Py py(int i) {
  return std::make_shared<Value>(Value{std::int64_t{i}});
}
inline Py py(std::int64_t i) {
  return std::make_shared<Value>(Value{i});
}
inline Py py(std::uint64_t u) {
  return std::make_shared<Value>(Value{Wide{u, 0}});
}
inline Py py(Wide w) {
  return std::make_shared<Value>(Value{w});
}
inline Py py(double d) {
  return std::make_shared<Value>(Value{d});
}
inline Py py(const char* s) {
  return std::make_shared<Value>(Value{std::string(s)});
}
inline Py py(std::string s) {
  return std::make_shared<Value>(Value{std::move(s)});
}
inline Py py(List l) {
  return std::make_shared<Value>(Value{std::move(l)});
}
inline Py py(Dict d) {
  return std::make_shared<Value>(Value{std::move(d)});
}
inline Py pair(std::int64_t a, std::int64_t b) {
  return std::make_shared<Value>(Value{std::pair{a, b}});
}

/// Like Python's pickler for that protocol; `jit`: like PyTorch's C++ pickler (protocol 2, all items of a container in
/// one batch).
class Writer {
 public:
  explicit Writer(int protocol, bool jit = false) : protocol_(protocol), jit_(jit) {}

  std::string dump(const Py& value) {
    if (protocol_ >= 2) out_ += std::string("\x80") + static_cast<char>(protocol_);
    put(value);
    return out_ + '.';
  }

 private:
  void number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  void memoize(const void* object) {
    const std::size_t index = memo_.size();
    memo_[object] = index;
    if (protocol_ >= 4) {
      out_ += '\x94';
    } else if (protocol_ == 0) {
      out_ += "p" + std::to_string(index) + "\n";
    } else if (index < 256) {
      out_ += std::string("q") + static_cast<char>(index);
    } else {
      out_ += 'r';
      number(index, 4);
    }
  }
  bool known(const void* object) {
    const auto found = memo_.find(object);
    if (found == memo_.end()) return false;
    if (protocol_ == 0) {
      out_ += "g" + std::to_string(found->second) + "\n";
    } else if (found->second < 256) {
      out_ += std::string("h") + static_cast<char>(found->second);
    } else {
      out_ += 'j';
      number(found->second, 4);
    }
    return true;
  }
  void text(const std::string& s) {
    // Equal strings are one object, like PyTorch's keys.
    const std::string* const object = &*strings_.insert(s).first;
    if (known(object)) return;
    if (protocol_ == 0) {
      out_ += "V";
      for (const char c : s) {
        if (c == '\\')
          out_ += "\\u005c";
        else
          out_ += c;
      }
      out_ += '\n';
    } else if (protocol_ >= 4 && s.size() < 256) {
      out_ += std::string("\x8c") + static_cast<char>(s.size()) + s;
    } else {
      out_ += 'X';
      number(s.size(), 4);
      out_ += s;
    }
    memoize(object);
  }
  void integer(std::int64_t i) {
    if (protocol_ == 0) {
      out_ += "I" + std::to_string(i) + "\n";
    } else if (i >= 0 && i < 256) {
      out_ += std::string("K") + static_cast<char>(i);
    } else if (i >= 0 && i < 65536) {
      out_ += 'M';
      number(static_cast<std::uint64_t>(i), 2);
    } else if (i >= INT32_MIN && i <= INT32_MAX) {
      out_ += 'J';
      number(static_cast<std::uint64_t>(i), 4);
    } else {
      out_ += "\x8a\x08";
      number(static_cast<std::uint64_t>(i), 8);
    }
  }
  void items(std::size_t count, char single, char many, const std::function<void(std::size_t)>& item) {
    if (protocol_ == 0) {
      for (std::size_t i = 0; i < count; ++i) {
        item(i);
        out_ += single;
      }
      return;
    }
    const std::size_t batch = jit_ ? count + 1 : 1000;
    for (std::size_t begin = 0; begin < count; begin += batch) {
      const std::size_t end = std::min(count, begin + batch);
      const bool marked = jit_ || end - begin > 1;
      if (marked) out_ += '(';
      for (std::size_t i = begin; i < end; ++i) item(i);
      out_ += marked ? many : single;
    }
  }
  void put(const Py& value) {
    if (const auto* s = std::get_if<std::string>(&value->is)) return text(*s);
    if (const auto* i = std::get_if<std::int64_t>(&value->is)) return integer(*i);
    if (const auto* b = std::get_if<bool>(&value->is)) {
      out_ += protocol_ >= 2 ? (*b ? "\x88" : "\x89") : *b ? "I01\n" : "I00\n";
    } else if (const auto* d = std::get_if<double>(&value->is)) {
      if (protocol_ == 0) {
        out_ += "F" + std::to_string(*d) + "\n";
      } else {
        std::uint64_t bits = 0;
        std::memcpy(&bits, d, 8);
        out_ += 'G';
        for (int k = 7; k >= 0; --k) out_ += static_cast<char>(bits >> (8 * k));
      }
    } else if (const auto* w = std::get_if<Wide>(&value->is)) {
      if (protocol_ < 2) {
        out_ += "L" + std::to_string(w->low) + "L\n";
      } else {
        const bool nine = w->high != 0 || w->low >> 63 != 0;
        out_ += nine ? std::string("\x8a\x09") : std::string("\x8a\x08");
        number(w->low, 8);
        if (nine) number(static_cast<std::uint64_t>(w->high), 1);
      }
    } else if (std::holds_alternative<None>(value->is)) {
      out_ += 'N';
    } else if (known(value.get())) {
      return;
    } else if (const auto* p = std::get_if<std::pair<std::int64_t, std::int64_t>>(&value->is)) {
      if (protocol_ < 2) out_ += '(';
      integer(p->first);
      integer(p->second);
      out_ += protocol_ < 2 ? 't' : '\x86';
      memoize(value.get());
    } else if (const auto* l = std::get_if<List>(&value->is)) {
      out_ += protocol_ == 0 ? "(l" : "]";
      memoize(value.get());
      items(l->size(), 'a', 'e', [&](std::size_t i) { put((*l)[i]); });
    } else if (const auto* m = std::get_if<Dict>(&value->is)) {
      out_ += protocol_ == 0 ? "(d" : "}";
      memoize(value.get());
      items(m->size(), 's', 'u', [&](std::size_t i) {
        text((*m)[i].first);
        put((*m)[i].second);
      });
    }
  }

  int protocol_;
  bool jit_;
  std::string out_;
  std::map<const void*, std::size_t> memo_;
  std::set<std::string> strings_;
};

}  // namespace vramtrack::trace::test
