// Accounting: the parts of a device's memory, so that the rows below it add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/view.hpp"

namespace vramtrack {

struct Accounting {
  enum class Rest : std::uint8_t {
    none,          ///< the processes hold all of it
    driver,        ///< no more than the driver's own share (core/driver_share.hpp)
    unattributed,  ///< more than that, and no visible process holds it
    dead,          ///< the same, and a process that held memory here has ended
    too_much       ///< the processes' sum is above the device's use: shared memory is counted with each of them
  };
  std::optional<double> used_bytes;      ///< absent if the driver does not report it
  double processes_bytes = 0;            ///< including the processes' host memory, if the device shares that
  std::size_t processes = 0;             ///< live processes with memory on this device or on its MIG instances
  std::optional<double> reserved_bytes;  ///< reserved by the driver in addition to the used memory
  double rest_bytes = 0;                 ///< never negative; for `too_much`, the excess
  Rest rest = Rest::none;
};

/// O(series).
Accounting account(const View& view, const DeviceKey& device);

/// The part that processes do not explain: "410 MiB driver", "2.1 GiB held by no visible process", "1.0 GiB counted
/// twice"; empty if they explain everything, or if the driver does not report it.
std::string rest_words(const Accounting& accounting, const Scale& scale);

/// "3 processes 19.8 GiB + 0.4 GiB driver = 20.2 GiB used".
std::string accounting_words(const Accounting& accounting, const Scale& scale);

}  // namespace vramtrack
