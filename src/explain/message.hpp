// Message: one out-of-memory message of a text, or a table beside one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explain/roles.hpp"
#include "explain/wording.hpp"

namespace vramtrack::explain {

/// A process that a message names beside the one that failed.
struct OtherProcess {
  double pid = 0;  ///< 0: not told
  double bytes = 0;
  std::string name;  ///< foreign; empty: not told
};

/// What one array, or one operation, holds. Its texts are foreign: print them through core/printable.
struct Holding {
  std::string_view table;  ///< the name of the table's wording: "bfc_dump"
  double bytes = 0;
  std::uint64_t count = 1;   ///< allocations that are so large together
  std::string shape;         ///< "f32[4096,128,3]"; empty: not told
  std::string by;            ///< the operation, with its line where that is told; empty: not told
  double padding_bytes = 0;  ///< of the bytes, what the layout adds
};

/// Where the program ran, as the text tells, if vramtrack does not run there.
enum class System : std::uint8_t { any, windows, apple, browser, phone };

/// One message.
struct Message {
  const Wording* wording = nullptr;
  std::uint64_t line = 0;       ///< on which it begins, from 1
  std::uint64_t last_line = 0;  ///< of a table
  std::string text;             ///< its first line, at most 300 bytes; foreign bytes: print them through core/printable
  std::string before;           ///< what stands before it on its line, at most 256 bytes: a logger's words
  Figures figures;
  std::string went_on;  ///< the line by which the program tells that it went on; foreign; empty: none does
  Remarks remarks;      ///< foreign
  System system = System::any;
  std::vector<double> held;          ///< what the text said was allocated, in readings before it, at most 64
  double batch = 0;                  ///< the size of the batch that the text named last before it; 0: none
  std::vector<OtherProcess> others;  ///< at most 64
  std::vector<Holding> largest;      ///< of a table: at most 8, the largest first
};

}  // namespace vramtrack::explain
