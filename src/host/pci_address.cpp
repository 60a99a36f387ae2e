#include "host/pci_address.hpp"

#include <algorithm>
#include <cctype>

namespace vramtrack {

std::string normal_pci_address(std::string_view text) {
  std::string address(text);
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto colons = std::count(address.begin(), address.end(), ':');
  if (address.find('.') == std::string::npos || colons < 1 || colons > 2) return address;
  if (colons == 1) return "00000000:" + address;
  const std::size_t domain = address.find(':');
  if (domain < 8) address.insert(0, 8 - domain, '0');
  return address;
}

}  // namespace vramtrack
