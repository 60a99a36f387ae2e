// One spelling for PCI addresses: drivers, sysfs and tools each have their own.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// The form that NVML and recordings use: "0000:1D:00.0" and "1d:00.0" give "00000000:1d:00.0". Empty if `text` is not
/// a PCI address. Surrounding space is ignored. Pure.
std::string pci_address_of(std::string_view text);

/// The same; anything but a PCI address is returned in lower case and otherwise unchanged. Pure.
std::string normal_pci_address(std::string_view text);

}  // namespace vramtrack
