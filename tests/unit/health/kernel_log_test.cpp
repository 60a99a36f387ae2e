#include "health/kernel_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Kind = DriverEvent::Kind;

std::vector<DriverEvent> read(const std::string& text) {
  DriverLogReader reader;
  reader.lines(text);
  return reader.events();
}

DriverEvent only(const std::string& text) {
  const std::vector<DriverEvent> events = read(text);
  EXPECT_THAT(events, SizeIs(1)) << text;
  return events.empty() ? DriverEvent{} : events.front();
}

const std::string kXid79 = "NVRM: Xid (PCI:0000:65:00): 79, pid=4242, name=python3, GPU has fallen off the bus.";

TEST(KernelLog, AnXidHasItsGpuItsNumberAndItsProcess) {
  const DriverEvent event = only(kXid79 + "\n");
  EXPECT_EQ(event.kind, Kind::xid);
  EXPECT_EQ(event.pci_address, "0000:65:00");
  EXPECT_EQ(event.code, 79U);
  EXPECT_EQ(event.pid, 4242U);
  EXPECT_EQ(event.process, "python3");
  EXPECT_EQ(event.text, kXid79);
  EXPECT_EQ(event.since_boot_s, std::nullopt);
}

TEST(KernelLog, EveryLogsPrefix) {
  for (const char* prefix : {"", "[    4.303882] ", "[ 4564.303882] ", "[Mon Nov 23 03:12:05 2026] ",
                             "Jun  5 22:36:51 node8 kernel: ", "Jun  5 22:36:51 node8 kernel: [ 4564.303882] ",
                             "2026-06-05T22:36:51+00:00 node8 kernel: ", "kern  :err   : [ 4564.303882] ",
                             "[ 4564.303882] node8 kernel: ", "<3>[ 4564.303882] ", "[ 4564.303882][ T1234] ",
                             "3,1234,4564303882,-;", "                 "})
    EXPECT_EQ(only(prefix + kXid79).code, 79U) << prefix;
  EXPECT_DOUBLE_EQ(only("[ 4564.303882] " + kXid79).since_boot_s.value_or(0), 4564.303882);
  EXPECT_DOUBLE_EQ(only("[ 4564.303882][ T1234] " + kXid79).since_boot_s.value_or(0), 4564.303882);
  EXPECT_EQ(only("[Mon Nov 23 03:12:05 2026] " + kXid79).since_boot_s, std::nullopt);
}

TEST(KernelLog, OlderAndNewerFormsOfTheLine) {
  EXPECT_EQ(only("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.").pid, std::nullopt);
  const DriverEvent unknown =
      only("NVRM: Xid (PCI:0000:0F:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception");
  EXPECT_EQ(unknown.pid, std::nullopt);
  EXPECT_EQ(unknown.process, "");
  EXPECT_EQ(unknown.pci_address, "0000:0f:00");
  EXPECT_EQ(only("NVRM: Xid (0000:03:00): 13, 0001 00000000 0000a297").pci_address, "0000:03:00");
  EXPECT_EQ(only("NVRM: Xid (PCI:0000:c1:00 GPU-I:05): 31, pid=7, name=a, MMU Fault").pci_address, "0000:c1:00");
  EXPECT_EQ(only("NVRM: Xid (PCI:00000008:01:00): 48, pid=7, name=a").pci_address, "0008:01:00");
}

TEST(KernelLog, SeveralOfOneKindAreOneEvent) {
  const auto events = read(
      "[1.000000] NVRM: Xid (PCI:0000:65:00): 31, pid=1, name=a, x\n"
      "[2.000000] NVRM: Xid (PCI:0000:66:00): 31, pid=2, name=b, x\n"
      "[3.500000] NVRM: Xid (PCI:0000:65:00): 31, pid=3, name=c, y\n");
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].count, 2U);
  EXPECT_EQ(events[0].pid, 3U) << "the last one is told";
  EXPECT_EQ(events[0].since_boot_s, 3.5);
  EXPECT_EQ(events[1].count, 1U);
}

TEST(KernelLog, AFatalMessageIsNotLostBehindALaterOneThatIsNot) {
  const auto events = read(
      "[1.000000] NVRM: Xid (PCI:0000:65:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x02100611)\n"
      "[2.000000] NVRM: Xid (PCI:0000:65:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226)\n"
      "[3.000000] NVRM: Xid (PCI:0000:65:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226)\n");
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_THAT(events[0].text, HasSubstr("NETIR_LINK_DOWN Fatal"));
  EXPECT_EQ(events[0].count, 1U);
  EXPECT_EQ(events[1].count, 2U);
}

TEST(KernelLog, AGpuOffTheBusInEachOfTheDriversWords) {
  for (const char* line :
       {"NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", "NVRM: GPU at 0000:65:00.0 has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:65:00.0 installed in this system has fallen off the bus and is not"}) {
    const DriverEvent event = only(line);
    EXPECT_EQ(event.kind, Kind::off_the_bus) << line;
    EXPECT_EQ(event.pci_address, "0000:65:00") << line;
  }
}

TEST(KernelLog, AVersionMismatchOnOneLineOrOnTwo) {
  for (const char* text :
       {"NVRM: API mismatch: the client has the version 550.54.14, but this kernel module has the version 535.104.05.  "
        "Please make sure",
        "[ 5080.898738] NVRM: API mismatch: the client has the version 550.54.14, but\n"
        "               NVRM: this kernel module has the version 535.104.05.  Please\n"
        "               NVRM: make sure that this kernel module and all NVIDIA driver\n"}) {
    const DriverEvent event = only(text);
    EXPECT_EQ(event.kind, Kind::version_mismatch);
    EXPECT_EQ(event.client_version, "550.54.14");
    EXPECT_EQ(event.module_version, "535.104.05");
  }
}

TEST(KernelLog, WhatWasBeforeTheDriverWasLoadedIsForgotten) {
  const std::string load = "[9.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n";
  EXPECT_THAT(read(kXid79 + "\n" + load), IsEmpty());
  EXPECT_THAT(read(load + kXid79 + "\n"), SizeIs(1));
}

TEST(KernelLog, ARecoveryThatIsNotNeededAnyMoreEndsItsGpusErrors) {
  const auto events = read(
      "NVRM: Xid (PCI:0000:65:00): 48, pid=1, name=a, DBE\n"
      "NVRM: Xid (PCI:0000:66:00): 48, pid=1, name=a, DBE\n"
      "NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset "
      "Required)\n"
      "NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 "
      "(None)\n");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].pci_address, "0000:66:00");
}

TEST(KernelLog, ARecordOfKmsg) {
  DriverLogReader reader;
  reader.kmsg_record("3,1234,5678901234,-;" + kXid79 + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:65:00.0\n");
  ASSERT_THAT(reader.events(), SizeIs(1));
  EXPECT_DOUBLE_EQ(reader.events()[0].since_boot_s.value_or(0), 5678.901234);
  EXPECT_EQ(reader.events()[0].text, kXid79);
}

TEST(KernelLog, ARecordOfSeveralLines) {
  DriverLogReader reader;
  reader.kmsg_record(
      "3,7,100,-;NVRM: API mismatch: the client has the version 550.54.14, but\\x0aNVRM: this kernel module "
      "has the version 535.104.05.  Please\\x0aNVRM: make sure\n");
  ASSERT_THAT(reader.events(), SizeIs(1));
  EXPECT_EQ(reader.events()[0].module_version, "535.104.05");
}

TEST(KernelLog, WhatAProgramWroteToKmsgAndWhatIsTooOldIsLeftOut) {
  DriverLogReader reader;
  reader.kmsg_record("11,1234,5678901234,-;" + kXid79);  // facility 1: a user's program
  reader.kmsg_record("3,1234,99000000,-;" + kXid79, 100);
  reader.kmsg_record("3,1234,201000000,-;" + kXid79, 100, 200);
  EXPECT_THAT(reader.events(), IsEmpty());
  reader.kmsg_record("3,1234,100000000,-;" + kXid79, 100, 200);
  EXPECT_THAT(reader.events(), SizeIs(1));
}

TEST(KernelLog, OtherLinesAndProgramsNamesAreNoMessages) {
  for (const char* line :
       {"", "\n", "NVRM:", "NVRM: ", "NVRM: Xid", "NVRM: Xid (", "NVRM: Xid ()", "NVRM: Xid (PCI:0000:65:00): ",
        "NVRM: Xid (PCI:0000:65:00): x, pid=1", "NVRM: Xid (PCI:0000:65:00): -79, pid=1",
        "NVRM: Xid (PCI:0000:65:00): 99999999999999999999, pid=1", "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034",
        "Out of memory: Killed process 7 (NVRM: Xid (PCI:0000:65:00): 79, x)",
        "Jun  5 22:36:51 node8 trainer: NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.",
        "usb 1-1: device has fallen off the bus", ";NVRM: Xid (PCI:0000:65:00): 79, x",
        "x y;NVRM: Xid (PCI:0000:65:00): 79, x", "[1.0]NVRM: Xid (PCI:0000:65:00): 79, x"})
    EXPECT_THAT(read(line), IsEmpty()) << line;
}

TEST(KernelLog, WhatAProgramPutsBeforeAMessageIsNotBelieved) {
  for (const char* prefix : {"Jun  5 22:36:51 node8 evil[7]: [ 4564.303882] ", "Jun  5 22:36:51 node8 evil: kernel: ",
                             "Jun  5 22:36:51 node8 evil[7]: kernel: [ 4564.303882] ", "[ 4564.303882] evil: [ 1.0] ",
                             "user  :notice: [ 4564.303882] ", "<14>[ 4564.303882] ", "<9>", "] ", "x] ", "[1.0] x "})
    EXPECT_THAT(read(prefix + kXid79), IsEmpty()) << prefix;
}

TEST(KernelLog, LongTextsAreCut) {
  const std::string name(5000, 'n');
  const DriverEvent event = only("NVRM: Xid (PCI:0000:65:00): 31, pid=1, name=" + name + ", x");
  EXPECT_EQ(event.process.size(), 64U);
  EXPECT_EQ(event.text.size(), 256U);
  EXPECT_THAT(read(std::string(1 << 20, ' ') + kXid79), IsEmpty()) << "only the beginning of a line is read";
}

TEST(KernelLog, AFloodTakesBoundedMemory) {
  DriverLogReader reader;
  for (int code = 0; code < 5000; ++code) reader.line("NVRM: Xid (PCI:0000:65:00): " + std::to_string(code) + ", x");
  EXPECT_THAT(reader.events(), SizeIs(1024));
  EXPECT_EQ(reader.dropped(), 5000U - 1024);
}

TEST(KernelLog, AnAddressThatIsNoneIsEmpty) {
  for (const char* address : {"", "PCI:", "PCI:0000", "PCI:0000:6:00", "PCI:zzzz:65:00", "PCI:000000000:65:00",
                              "PCI:0000:65:000", "PCI:0000:65"})
    EXPECT_EQ(only(std::string("NVRM: Xid (") + address + "): 79, x").pci_address, "") << address;
}

TEST(KernelLog, TheVersionOfTheModule) {
  EXPECT_EQ(
      module_version_of("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
                        "GCC version:  gcc version 12.3.0\n"),
      "535.104.05");
  EXPECT_EQ(module_version_of("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build"),
            "550.54.14");
  for (const char* text : {"", "\n", "NVRM version:", "x 5 y", "\nNVRM version: x  550.54.14"})
    EXPECT_EQ(module_version_of(text), "") << text;
}

RC_GTEST_PROP(KernelLog, AnyBytesAreReadWithoutFault, (const std::string& text)) {
  DriverLogReader reader;
  reader.lines("NVRM: Xid (" + text);
  reader.lines("NVRM: API mismatch: " + text);
  reader.kmsg_record("3,1,2,-;NVRM: " + text);
  for (const DriverEvent& event : reader.events()) RC_ASSERT(event.text.size() <= 256U);
}

}  // namespace
}  // namespace vramtrack
