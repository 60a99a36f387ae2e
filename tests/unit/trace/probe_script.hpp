// Writes the records of a program with the probe, for tests of the reader.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "probe/wire.hpp"
#include "trace/probe_file.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::trace {

/// The records of one process. Every event is one microsecond after the previous one, unless `now_us` is set.
class ProbeScript {
 public:
  std::vector<probe::Slot> slots;
  std::uint64_t now_us = 0;

  void put(probe::Record record, probe::Call call, int device, std::uint8_t flags, std::uint32_t number,
           std::uint64_t a, std::uint64_t address, std::uint64_t bytes) {
    slots.push_back({probe::head_of(record, call, device, flags, number), a, address, bytes});
  }

  std::uint32_t text(std::string_view words) {
    const auto [known, is_new] = texts_.try_emplace(std::string(words), static_cast<std::uint32_t>(texts_.size()) + 1);
    if (!is_new) return known->second;
    std::size_t at = 0;
    do {
      std::array<std::uint64_t, 2> piece{};
      std::memcpy(piece.data(), words.data() + at, std::min<std::size_t>(probe::kTextBytes, words.size() - at));
      put(probe::Record::text, probe::Call::none, 0, 0, known->second, at | words.size() << 32U, piece[0], piece[1]);
      at += probe::kTextBytes;
    } while (at < words.size());
    return known->second;
  }

  struct Python {
    std::string file, name;
    std::uint32_t line = 0;
    bool is_entry = true;
  };
  /// Innermost frame first; all native frames precede the Python ones.
  std::uint32_t stack(const std::vector<std::uint64_t>& native, const std::vector<Python>& python) {
    const std::uint32_t number = ++stacks_;
    const std::uint64_t count = std::uint64_t{native.size() + python.size()} << 32U;
    std::uint64_t at = 0;
    for (const std::uint64_t address : native)
      put(probe::Record::frame, probe::Call::none, 0, 0, number, at++ | count, address, 0);
    for (const Python& frame : python) {
      const std::uint32_t code = ++codes_;
      put(probe::Record::code, probe::Call::none, 0, 0, code, frame.line,
          text(frame.file) | std::uint64_t{text(frame.name)} << 32U, 0);
      const auto flags = static_cast<std::uint8_t>(probe::kPythonFrame | (frame.is_entry ? probe::kEntryFrame : 0));
      put(probe::Record::frame, probe::Call::none, 0, flags, number, at++ | count, code, frame.line);
    }
    return number;
  }
  /// A stack with one line of the program itself.
  std::uint32_t line(const std::string& file, std::uint32_t line) { return stack({}, {{file, "f", line}}); }

  void module(const std::string& path, std::uint64_t begin, std::uint64_t length, std::uint64_t offset = 0) {
    put(probe::Record::module, probe::Call::none, 0, 0, text(path), offset, begin, length);
  }
  void alloc(std::uint64_t address, std::uint64_t bytes, std::uint32_t stack,
             probe::Call call = probe::Call::cu_mem_alloc, int device = 0) {
    put(probe::Record::alloc, call, device, 0, stack, probe::when(now_us++, 0), address, bytes);
  }
  void free(std::uint64_t address, probe::Call call = probe::Call::cu_mem_alloc, int device = 0) {
    put(probe::Record::free, call, device, 0, 0, probe::when(now_us++, 0), address, 0);
  }
  void mark(std::string_view name) {
    put(probe::Record::mark, probe::Call::none, 0, 0, text(name), probe::when(now_us, 0), 0, 0);
  }

 private:
  std::map<std::string, std::uint32_t> texts_;
  std::uint32_t stacks_ = 0, codes_ = 0;
};

/// Replays the trace of that process alone, to its end.
inline void replay(ProbeTrace& trace, const std::vector<probe::Slot>& slots) {
  (void)trace.process(static_cast<std::uint32_t>(trace.processes().size()), {4711, 99, 1'000'000, "./program --fast"});
  (void)trace.slots(0, slots);
  trace.finish();
}

}  // namespace vramtrack::trace
