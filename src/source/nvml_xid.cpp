#include "source/nvml_xid.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace vramtrack::nvml {
namespace {

struct Meaning {
  std::uint64_t code;
  std::string_view text;
};

/// NVIDIA, "XID Errors", table of common XIDs; those a watcher of memory meets.
constexpr std::array kMeanings = {
    Meaning{8, "a kernel ran into the time limit"},
    Meaning{13, "a program's kernel failed (often an access out of bounds)"},
    Meaning{31, "a program accessed unmapped GPU memory"},
    Meaning{32, "a corrupted command stream"},
    Meaning{38, "the driver's firmware failed"},
    Meaning{43, "a program was stopped after its own error"},
    Meaning{45, "a program's work was removed (it was killed or failed before)"},
    Meaning{48, "an uncorrectable memory error"},
    Meaning{61, "an internal controller halted"},
    Meaning{62, "an internal controller halted"},
    Meaning{63, "a memory row or page was retired"},
    Meaning{64, "retiring a memory row or page failed"},
    Meaning{68, "the video decoder failed"},
    Meaning{69, "a graphics engine class error"},
    Meaning{74, "an NVLink error"},
    Meaning{79, "the GPU has fallen off the bus"},
    Meaning{92, "many correctable memory errors"},
    Meaning{94, "an uncorrectable memory error that was contained to one program"},
    Meaning{95, "an uncorrectable memory error that was not contained"},
    Meaning{119, "the GPU's system processor does not answer"},
    Meaning{120, "the GPU's system processor failed"},
    Meaning{140, "an unrecovered memory error"},
};

}  // namespace

std::string describe_xid(std::uint64_t code) {
  for (const Meaning& meaning : kMeanings)
    if (meaning.code == code) return fmt::format("XID {}: {}", code, meaning.text);
  return fmt::format("XID {}: see NVIDIA's list of XID errors", code);
}

}  // namespace vramtrack::nvml
