// Lines and cells in a log that say that a GPU no longer answers: what nvidia-smi prints in place of readings, and the
// driver.
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

/// "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", "GPU is lost. Reboot the system to
/// recover this GPU", "GPU has fallen off the bus". Pure; quick for other lines.
bool tells_lost_gpu(std::string_view line);

enum class CellError : std::uint8_t {
  none,      ///< a reading, or a value that this GPU or driver does not have: "[N/A]", "[Not Supported]"
  failed,    ///< "[Unknown Error]", "ERR!", "[Insufficient Permissions]"
  gpu_lost,  ///< "[GPU is lost]", "[GPU requires reset]"
};

/// What the cell of a table says in place of a reading. Pure.
CellError cell_error(std::string_view cell);

}  // namespace vramtrack
