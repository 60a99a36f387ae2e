// Wording: one message as one program prints it. All of them stand in wordings.def, one line each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "explain/pattern.hpp"

namespace vramtrack::explain {

/// Why memory could not be had. The causes of `snapshot oom` (docs/snapshot.md), and two that only messages have.
enum class Cause : std::uint8_t {
  leak,           ///< what the program holds grew from one failure to the next
  fragmentation,  ///< enough was free, and not in one piece
  bad_size,       ///< the size of the request is itself wrong: no machine has as much
  too_big,        ///< what the program wanted at once was more than there was
  full,           ///< the program's own memory filled the device, and the request was small
  limit,          ///< there was room, but a limit did not allow it
  outside,        ///< others hold it: other processes, or libraries beside the allocator
  host,           ///< the host's memory ran out, not a GPU's
  unknown,        ///< cannot be told from the message
};
/// "too_big": in JSON and in the table of fixtures.
std::string_view cause_name(Cause cause);

/// What a match is.
enum class Role : std::uint8_t {
  device,   ///< a failure to get memory of a GPU
  host,     ///< a failure to get memory of the host
  context,  ///< no failure: figures that help to judge one nearby
  frame,    ///< no failure: a line of a traceback that shows in which program it happened
  event,    ///< no failure to get memory: another failure, or a warning, that belongs to the story
};

struct Wording {
  std::string_view name;      ///< unique
  std::string_view program;   ///< "PyTorch"
  std::string_view versions;  ///< that print it
  Role role = Role::device;
  Cause otherwise = Cause::unknown;  ///< where the figures of the message decide nothing
  std::string_view
      setting;  ///< of the program, that limits or divides the memory; of an event: what happened; may be empty
  std::string_view text;  ///< as Pattern reads it
};

/// A program that the line of a statement (statement.hpp) names by one of `marks`, parted by '|'.
struct ProgramMark {
  std::string_view marks;
  Wording wording;  ///< without a text
};

/// "PyTorch"; "the program", where no wording knows it.
std::string_view who(const Wording& wording);
/// What is short is the memory on a chip, which a kernel declares, not the memory of the device.
bool is_on_chip(const Wording& wording);

/// All of wordings.def, in its order.
std::span<const Wording> wordings();
/// All marks of wordings.def; the first that fits is meant.
std::span<const ProgramMark> marks();

}  // namespace vramtrack::explain
