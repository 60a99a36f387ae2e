// Meaning: what a word means for memory, in logs and in failure messages. The words are data: words.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

/// What a word means: in the label of a figure, the title of a column, a key or the name of a metric.
enum class Meaning : std::uint8_t {
  none,
  used,
  allocated,  ///< by the program, in live tensors
  reserved,   ///< by the program's allocator
  free,
  total,
  peak,
  current,  ///< not the peak: used or allocated, as the rest of its line says
  memory,   ///< memory of any kind
  vram,     ///< memory of a GPU
  gpu,
  rank,  ///< one of several processes, each with its own GPU
  pid,
  step,  ///< this and the following: counts of a program's work
  iteration,
  epoch,
  batch,
  request,
  rate,      ///< how busy something is; for memory, in per cent, how full
  time,      ///< in column titles
  change,    ///< by how much something grew or shrank
  limit,     ///< the total of the memory that it stands beside
  share,     ///< a part of something, between 0 and 1
  process,   ///< of one process
  host,      ///< of the machine, not of a GPU
  ram,       ///< memory of the machine
  resident,  ///< memory of a process, on the machine
  swap,      ///< of the machine, but not in its memory: on a disk, or addresses alone
  site,      ///< a place on a card where its temperature is taken
  things,    ///< counted in place of bytes: pages, blocks
  measured,  ///< a separate quantity, even beside words for a GPU's memory: bandwidth, temperature
  other,     ///< not the used memory of a GPU, unless it is explicitly a GPU's
};

/// The meaning of one word; none if it is not in the table. Case is ignored.
Meaning meaning_of(std::string_view word);
/// The word in lower case, for ASCII and Cyrillic letters alike.
std::string lowered_word(std::string_view word);

}  // namespace vramtrack
