// Wording: one message as one program prints it. All of them are in wordings.def, one line each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "explain/pattern.hpp"

namespace vramtrack::explain {

/// Why memory could not be allocated. The causes of `snapshot oom` (docs/snapshot.md), and two that only messages have.
enum class Cause : std::uint8_t {
  leak,           ///< the program's memory grew from one failure to the next
  fragmentation,  ///< enough was free, but not in one piece
  bad_size,       ///< the size of the request is itself invalid: no machine has that much
  too_big,        ///< the program requested more at once than the empty device could give
  full,           ///< the program's own memory was in the way of a request that the empty device could hold
  limit,          ///< there was room, but a limit blocked it
  outside,        ///< others hold it: other processes, or libraries next to the allocator
  host,           ///< the host's memory ran out, not a GPU's
  resource,       ///< something other than the memory of a device or host: on-chip memory, threads, addresses
  unknown,        ///< the message does not show it
};
/// "too_big": in JSON and in the table of fixtures.
std::string_view cause_name(Cause cause);

/// The kind of a match.
enum class Role : std::uint8_t {
  device,    ///< a failure to allocate GPU memory
  host,      ///< a failure to allocate host memory
  resource,  ///< a failure to get a resource that is neither: see Cause::resource
  context,   ///< not a failure: figures that help to judge one nearby
  frame,     ///< not a failure: a traceback line that shows the program
  event,     ///< not a memory failure: another failure, or a warning, that belongs to the sequence
};

struct Wording {
  std::string_view name;      ///< unique
  std::string_view program;   ///< "PyTorch"
  std::string_view versions;  ///< versions that print it
  Role role = Role::device;
  Cause otherwise = Cause::unknown;  ///< if the figures of the message are inconclusive
  std::string_view
      setting;            ///< of the program, limiting or dividing the memory; of an event: what happened; may be empty
  std::string_view text;  ///< as Pattern reads it; several are separated by "||"
};

/// A program that the line of a statement (statement.hpp) names with one of `marks`, separated by '|'.
struct ProgramMark {
  std::string_view marks;
  Wording wording;  ///< without a text
};

/// The texts of a wording: one, or several that say the same.
std::vector<std::string_view> texts_of(const Wording& wording);
/// "PyTorch"; "the program", if no wording identifies it.
std::string_view who(const Wording& wording);
/// The resource that ran out, where the cause is one: "memory on the chip".
std::string_view resource_of(const Wording& wording);

/// All of wordings.def, in its order.
std::span<const Wording> wordings();
/// All marks of wordings.def; the first match counts.
std::span<const ProgramMark> marks();

}  // namespace vramtrack::explain
