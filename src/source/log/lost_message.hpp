// Lines in a log that say that a GPU no longer answers: what nvidia-smi prints in place of readings, and the driver.
#pragma once

#include <string_view>

namespace vramtrack {

/// "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", "GPU is lost. Reboot the system to
/// recover this GPU", "GPU has fallen off the bus". Pure; quick for other lines.
bool tells_lost_gpu(std::string_view line);

}  // namespace vramtrack
