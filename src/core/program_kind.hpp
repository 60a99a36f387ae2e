// ProgramKind: the kind of program that a process is, judging by its command. It shows what may be expected: whether it
// may rest (nature), and whether it can have a daily load (detect/facts).
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

enum class ProgramKind : std::uint8_t {
  unknown,
  training,
  serving,   ///< serves clients
  notebook,  ///< runs what a person types
  batch,     ///< works through its input and ends
  desktop,   ///< draws on a screen
  service,   ///< of the driver: MPS, persistence, monitoring
};

struct ProgramFound {
  ProgramKind kind = ProgramKind::unknown;
  std::string_view what;  ///< "vLLM server"; empty: nothing is known. A literal
};

/// `command`: its arguments joined by spaces; `name`: its comm; `kind`: as ProcessInfo::kind. Pure; O(lines of
/// program_kind.def). A command can be made to look like any of these: use the answer only in favour of a process.
ProgramFound program_of(std::string_view command, std::string_view name, std::string_view kind);

/// Whether a program of this kind has no clients, so that its load does not depend on the time of day.
constexpr bool has_no_clients(ProgramKind kind) {
  return kind == ProgramKind::training || kind == ProgramKind::notebook || kind == ProgramKind::batch;
}

}  // namespace vramtrack
