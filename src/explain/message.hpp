// Message: one out-of-memory message of a text, or a table near one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "explain/roles.hpp"
#include "explain/wording.hpp"

namespace vramtrack::explain {

/// The memory of one array, or one operation. Its texts are untrusted: print them through core/printable.
struct Holding {
  std::string_view table;  ///< the name of the table's wording: "bfc_dump"
  double bytes = 0;
  std::uint64_t count = 1;   ///< total of allocations of this kind
  std::string shape;         ///< "f32[4096,128,3]"; empty: not reported
  std::string by;            ///< the operation, with its line if reported; empty: not reported
  double padding_bytes = 0;  ///< of the bytes, added by the layout
};

/// The system where the program ran, according to the text, if vramtrack does not run there.
enum class System : std::uint8_t { any, windows, apple, browser, phone };

/// One message.
struct Message {
  const Wording* wording = nullptr;
  std::uint64_t line = 0;       ///< its first line number, from 1
  std::uint64_t last_line = 0;  ///< last line of a table
  std::string text;             ///< its first line, at most 300 bytes; untrusted: print through core/printable
  std::string before;           ///< the text before it on its line, at most 256 bytes: a logger's words
  Figures figures;
  std::string went_on;            ///< the line that reports that the program continued; untrusted; empty: none
  Remarks remarks;                ///< untrusted
  std::set<std::string> refused;  ///< options, in lower case, that the text before it says are ignored; at most 16
  System system = System::any;
  std::vector<double> held;          ///< memory that earlier readings in the text reported as allocated, at most 64
  double batch = 0;                  ///< the last batch size in the text before it; 0: none
  std::vector<OtherProcess> others;  ///< at most 64
  std::vector<Holding> largest;      ///< from a table: at most 8, the largest first
};

}  // namespace vramtrack::explain
