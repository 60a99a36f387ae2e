#include "core/pci_address.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(PciAddress, HasOneSpelling) {
  for (const char* text : {"0000:1D:00.0", "00000000:1D:00.0", "1d:00.0", " 0000:1d:00.0\n"})
    EXPECT_EQ(pci_address_of(text), "00000000:1d:00.0") << text;
  EXPECT_EQ(pci_address_of("10000:e1:00.1"), "00010000:e1:00.1");
}

TEST(PciAddress, IsEmptyForWhatIsNone) {
  for (const char* text : {"", "GPU-1", "1d", "1d:00", "1d.00.0", ":1d:00.0", "000000000:1d:00.0", "0:0:1d:00.0",
                           "0000:1d:00.0.1", "0000:1g:00.0", "0000:1d:00"})
    EXPECT_EQ(pci_address_of(text), "") << text;
  EXPECT_EQ(normal_pci_address("Platform:ABC"), "platform:abc");
}

}  // namespace
}  // namespace vramtrack
