#include "core/pci_address.hpp"

#include <algorithm>

#include "core/ascii.hpp"
#include "core/printable.hpp"

namespace vramtrack {

std::string pci_address_of(std::string_view text) {
  constexpr std::size_t kDomainDigits = 8;
  std::string out = lower(trimmed(text));
  const auto colons = std::count(out.begin(), out.end(), ':');
  if (colons == 1) out.insert(0, "0:");
  const std::size_t domain = out.find(':');
  if (colons < 1 || colons > 2 || domain == 0 || domain > kDomainDigits) return {};
  out.insert(0, kDomainDigits - domain, '0');
  // Exactly 00000000:1d:00.0
  constexpr std::string_view kForm = "00000000:00:00.0";
  const auto fits = [](char c, char form) { return form == '0' ? is_hex_digit(c) : c == form; };
  return std::equal(out.begin(), out.end(), kForm.begin(), kForm.end(), fits) ? out : std::string();
}

std::string normal_pci_address(std::string_view text) {
  std::string address = pci_address_of(text);
  return address.empty() ? lower(text) : address;
}

}  // namespace vramtrack
