#include "health/checkup.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace vramtrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

HealthFacts::Device gpu(int index, const std::string& pci) {
  HealthFacts::Device device;
  device.info.id = "GPU-" + std::to_string(index);
  device.info.index = index;
  device.info.name = "Fake H200";
  device.info.pci_bus_id = pci;
  device.info.capacity_bytes = 80 * kGiB;
  device.health.emplace();
  device.health->temperature_celsius = 45;
  device.health->ecc_enabled = true;
  device.health->ecc_since_load = {0, 0};
  device.health->repair_pending = false;
  device.health->repair_failed = false;
  device.health->throttle.emplace();
  return device;
}

/// Two healthy NVIDIA GPUs, and an empty kernel log.
HealthFacts healthy() {
  HealthFacts facts;
  facts.devices = {gpu(0, "00000000:1d:00.0"), gpu(1, "00000000:65:00.0")};
  facts.nvml.emplace();
  facts.nvml->is_found = facts.nvml->works = true;
  facts.nvml->library_version = "550.54.14";
  facts.module_version = "550.54.14";
  facts.log.name = "/dev/kmsg";
  facts.log.span_words = "the kernel log of the last 24 h";
  facts.log.uptime_s = 10'000;
  return facts;
}

DriverEvent xid(std::uint64_t code, const std::string& address = "0000:65:00") {
  DriverEvent event;
  event.code = code;
  event.pci_address = address;
  event.count = 1;
  event.text = "NVRM: Xid (PCI:" + address + "): " + std::to_string(code) + ", x";
  event.since_boot_s = 9'400;
  return event;
}

HealthFinding only(const HealthFacts& facts) {
  const HealthCheckup checkup = check_health(facts);
  EXPECT_THAT(checkup.findings, SizeIs(1));
  return checkup.findings.empty() ? HealthFinding{} : checkup.findings.front();
}

TEST(HealthCheckup, WellIsHealthyAndSaysWhatExcludesTheHardware) {
  const HealthCheckup checkup = check_health(healthy());
  EXPECT_EQ(checkup.status, HealthStatus::healthy);
  EXPECT_THAT(checkup.findings, IsEmpty());
  EXPECT_THAT(checkup.unchecked, IsEmpty());
  ASSERT_THAT(checkup.devices, SizeIs(2));
  EXPECT_THAT(checkup.devices[0].excludes, SizeIs(4));
  EXPECT_EQ(health_line(checkup), "healthy: 2 GPUs\n");
  EXPECT_THAT(health_text(checkup, {}),
              AllOf(HasSubstr("no hardware XID in the kernel log of the last 24 h"),
                    HasSubstr("Nearly all leaks are software. If memory leaks on GPU 0, GPU 1, ")));
}

TEST(HealthCheckup, WhatIsSaidOfALeakHoldsForEachOfItsGpus) {
  HealthFacts facts = healthy();
  facts.devices[1].health->repair_pending.reset();
  EXPECT_THAT(
      health_text(check_health(facts), {}),
      HasSubstr("nothing points to the hardware (no uncorrected memory error since the driver was loaded; no "
                "throttling due to heat or the power supply; no hardware XID in the kernel log of the last 24 h)"));
  for (HealthFacts::Device& device : facts.devices) device.health.reset();
  EXPECT_THAT(health_text(check_health(facts), {}), Not(HasSubstr("leaks"))) << "little is known";
}

TEST(HealthCheckup, AnXidThatNamesNoGpuExcludesNoGpu) {
  HealthFacts facts = healthy();
  facts.log.events = {xid(79, "")};
  EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy);
  EXPECT_THAT(check_health(facts).devices[0].unknown, SizeIs(1));
  EXPECT_THAT(health_text(check_health(facts), {}), Not(HasSubstr("no hardware XID")));
  facts.log.events = {xid(31, "")};
  EXPECT_THAT(check_health(facts).devices[0].unknown, IsEmpty()) << "a program's own error";
  facts.log.events.clear();
  facts.log.dropped = 1;
  EXPECT_THAT(check_health(facts).devices[0].unknown, SizeIs(1));
}

TEST(HealthCheckup, AnXidOfTheHardwareIsUnhealthyAndNamesTheGpu) {
  HealthFacts facts = healthy();
  facts.log.events = {xid(79)};
  const HealthFinding finding = only(facts);
  EXPECT_EQ(finding.severity, HealthSeverity::critical);
  EXPECT_EQ(finding.device.index, 1);
  EXPECT_EQ(finding.cause, "hardware");
  EXPECT_EQ(finding.what, "XID 79: the GPU has fallen off the bus");
  EXPECT_THAT(finding.evidence, StartsWith("/dev/kmsg, 1 message, written 10m"));
  EXPECT_THAT(finding.advice, HasSubstr("restart the machine"));
  const HealthCheckup checkup = check_health(facts);
  EXPECT_EQ(checkup.status, HealthStatus::unhealthy);
  EXPECT_EQ(health_line(checkup), "unhealthy: GPU 1: " + finding.what + "\n");
  EXPECT_THAT(health_text(checkup, {}), HasSubstr("leaks on GPU 0, look for")) << "GPU 1 is not called sound";
}

TEST(HealthCheckup, AnXidOfAProgramSaysNothingOfTheGpu) {
  HealthFacts facts = healthy();
  facts.log.events = {xid(31)};
  facts.log.events[0].pid = 4242;
  facts.log.events[0].process = "python3";
  const HealthFinding finding = only(facts);
  EXPECT_EQ(finding.severity, HealthSeverity::info);
  EXPECT_THAT(finding.what, HasSubstr("(pid 4242 python3)"));
  const HealthCheckup checkup = check_health(facts, HealthSeverity::warning);
  EXPECT_EQ(checkup.status, HealthStatus::healthy);
  EXPECT_FALSE(checkup.devices[1].has_fault);
}

TEST(HealthCheckup, AWarningFailsWhereItIsAskedTo) {
  HealthFacts facts = healthy();
  facts.devices[0].health->throttle->add(Throttle::thermal_software);
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy);
  EXPECT_EQ(health_line(check_health(facts)), "healthy: 2 GPUs, 1 warning\n");
  EXPECT_EQ(check_health(facts, HealthSeverity::warning).status, HealthStatus::unhealthy);
  EXPECT_EQ(only(facts).kind, "thermal");
  EXPECT_EQ(only(facts).cause, "power");
}

TEST(HealthCheckup, MemoryErrorsAndRepairsHaveTheirEvidence) {
  HealthFacts facts = healthy();
  facts.devices[0].health->ecc_since_load.uncorrected = 2;
  EXPECT_EQ(only(facts).kind, "memory_errors");
  EXPECT_THAT(only(facts).evidence, HasSubstr("2 uncorrected"));
  facts = healthy();
  facts.devices[0].health->repair_failed = true;
  EXPECT_EQ(only(facts).severity, HealthSeverity::critical);
  EXPECT_THAT(only(facts).evidence, HasSubstr("repair failed: yes"));
  facts = healthy();
  facts.devices[0].health->repair_pending = true;
  EXPECT_EQ(only(facts).severity, HealthSeverity::warning);
}

TEST(HealthCheckup, ARecoveryThatTheDriverAsksFor) {
  const auto severity = [](const std::string& wanted) {
    HealthFacts facts = healthy();
    facts.log.events = {xid(154)};
    facts.log.events[0].text =
        "NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 " + wanted;
    return only(facts).severity;
  };
  EXPECT_EQ(severity("(GPU Reset Required)"), HealthSeverity::critical);
  EXPECT_EQ(severity("(Node Reboot Required)"), HealthSeverity::critical);
  EXPECT_EQ(severity("(Drain P2P)"), HealthSeverity::warning);
  EXPECT_EQ(severity(")("), HealthSeverity::warning);
}

TEST(HealthCheckup, AnUnknownXidIsAWarning) {
  HealthFacts facts = healthy();
  facts.log.events = {xid(4711)};
  EXPECT_EQ(only(facts).severity, HealthSeverity::warning);
  EXPECT_EQ(only(facts).cause, "");
  facts.log.events[0].text = "NVRM: Xid (PCI:0000:65:00): 4711, NEW_UNIT Fatal XC0 i0 Link 03 (0x00000001)";
  EXPECT_EQ(only(facts).severity, HealthSeverity::critical) << "the driver says so";
  EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy);
}

TEST(HealthCheckup, AFatalErrorOfNvlinkIsUnhealthy) {
  for (std::uint64_t code = 144; code <= 150; ++code) {
    HealthFacts facts = healthy();
    facts.log.events = {xid(code)};
    facts.log.events[0].text =
        fmt::format("NVRM: Xid (PCI:0000:65:00): {}, RLW_SRC_TRACK Fatal XC1 i0 Link 03 (0x00000007 0x00000001)", code);
    EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy) << code;
    EXPECT_EQ(only(facts).cause, "hardware");
  }
}

TEST(HealthCheckup, AGpuOffTheBusIsToldOnceAndAlsoWhereTheDriverListsItNoMore) {
  HealthFacts facts = healthy();
  facts.devices.pop_back();
  DriverEvent lost = xid(0);
  lost.kind = DriverEvent::Kind::off_the_bus;
  facts.log.events = {xid(79), lost};
  EXPECT_THAT(only(facts).what, StartsWith("XID 79"));
  EXPECT_EQ(health_device_words(only(facts).device), "GPU at 0000:65:00");
  facts.log.events = {lost};
  EXPECT_EQ(only(facts).kind, "off_the_bus");
  EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy);
}

TEST(HealthCheckup, TheXidsOfGpusThatAreNotAskedForAreLeftOut) {
  HealthFacts facts = healthy();
  facts.wanted = {0};
  facts.others = {facts.devices[1].info};
  facts.devices.pop_back();
  facts.log.events = {xid(79)};
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy);
  facts.wanted = {0, 5};
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown) << "GPU 5 is not there";
}

TEST(HealthCheckup, ALostGpuIsUnhealthyOneThatMayNotBeAskedIsUnknown) {
  HealthFacts facts = healthy();
  facts.nvml->silent = {{2, true, "GPU is lost (15)"}};
  EXPECT_EQ(only(facts).kind, "gpu_lost");
  EXPECT_EQ(only(facts).evidence, "GPU is lost (15)");
  facts.nvml->silent = {{2, false, "no permission (4)"}};
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown);
  facts = healthy();
  facts.devices[1].lost = "GPU is lost (15)";
  EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy);
}

TEST(HealthCheckup, AMismatchOfLibraryAndModule) {
  HealthFacts facts = healthy();
  facts.devices.clear();
  facts.nvml->works = false;
  facts.nvml->is_mismatched = true;
  facts.nvml->path = "/usr/lib/libnvidia-ml.so.550.54.14";
  facts.nvml->reason = "NVML does not start: driver/library version mismatch (18)";
  facts.module_version = "535.104.05";
  DriverEvent event;
  event.kind = DriverEvent::Kind::version_mismatch;
  event.count = 3;
  facts.log.events = {event};
  const HealthFinding finding = only(facts);
  EXPECT_EQ(finding.kind, "driver_mismatch");
  EXPECT_THAT(finding.evidence, AllOf(HasSubstr("library 550.54.14"), HasSubstr("kernel module 535.104.05")));
  EXPECT_EQ(health_device_words(finding.device), "this machine");
  // If the library works here, another program's library did not match.
  facts = healthy();
  facts.log.events = {event};
  EXPECT_EQ(only(facts).kind, "client_mismatch");
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy);
}

TEST(HealthCheckup, WhatCouldNotBeReadIsUnknownAndNeverHealthy) {
  HealthFacts facts = healthy();
  facts.log.error = "/dev/kmsg cannot be opened: Operation not permitted";
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown);
  EXPECT_THAT(health_line(check_health(facts)), HasSubstr("Operation not permitted"));
  EXPECT_THAT(check_health(facts).devices[0].unknown, SizeIs(1));
  facts.log.is_wanted = false;
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy) << "it was left out on purpose";
  facts = healthy();
  facts.devices[0].health.reset();
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown);
  facts = healthy();
  facts.devices.clear();
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown) << "no GPU was found";
  facts.nvml->works = false;
  facts.nvml->reason = "NVML does not start: timeout (10)";
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown) << "the driver is loaded, and does not answer";
  EXPECT_EQ(check_health(HealthFacts{}).status, HealthStatus::unknown);
}

TEST(HealthCheckup, AFindingOutweighsWhatIsUnknown) {
  HealthFacts facts = healthy();
  facts.log.error = "no permission";
  facts.devices[0].health->ecc_since_load.uncorrected = 1;
  EXPECT_EQ(check_health(facts).status, HealthStatus::unhealthy);
}

TEST(HealthCheckup, AMachineWithoutNvidiasDriverNeedsNoKernelLog) {
  HealthFacts facts = healthy();
  facts.nvml->works = false;
  facts.module_version.clear();
  facts.log.error = "/dev/kmsg cannot be opened";
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy);
  facts.log.is_named = true;
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown) << "the user named that file";
}

DeviceLedger ledger_of(const HealthFacts::Device& device, std::uint64_t used, std::uint64_t unattributed) {
  DeviceLedger one;
  one.device = device.info;
  one.used_bytes = used;
  one.driver_bytes = used - unattributed;
  one.unattributed_bytes = unattributed;
  return one;
}

TEST(HealthCheckup, MemoryLeftOver) {
  HealthFacts facts = healthy();
  facts.ledger.emplace();
  facts.ledger->devices = {ledger_of(facts.devices[0], kGiB / 2, 0), ledger_of(facts.devices[1], 8 * kGiB, 7 * kGiB)};
  const HealthFinding finding = only(facts);
  EXPECT_EQ(finding.kind, "memory_left_over");
  EXPECT_EQ(finding.device.index, 1);
  EXPECT_EQ(finding.what, "7.0 GiB in use are held by no process");
  EXPECT_THAT(finding.evidence, HasSubstr("8.0 GiB in use, 0 MiB held by 0 processes"));
  EXPECT_FALSE(check_health(facts).devices[1].has_fault) << "memory that is left over is no fault of the hardware";
  facts.ledger->devices[1].used_bytes.reset();
  EXPECT_EQ(check_health(facts).status, HealthStatus::unknown);
}

TEST(HealthCheckup, AProcessThatIsLeftOverButNotAService) {
  HealthFacts facts = healthy();
  facts.ledger.emplace();
  facts.ledger->devices = {ledger_of(facts.devices[0], kGiB, 0)};
  LedgerLine line;
  line.holder.info.pid = 4242;
  line.holder.info.command = "python train.py";
  line.holder.info.user = "ada";
  line.bytes = kGiB;
  line.holder.state = HolderState::service;
  facts.ledger->devices[0].lines = {line};
  EXPECT_EQ(check_health(facts).status, HealthStatus::healthy);
  facts.ledger->devices[0].lines[0].holder.state = HolderState::zombie;
  EXPECT_EQ(only(facts).kind, "process_left_over");
  EXPECT_THAT(only(facts).what, HasSubstr("pid 4242 python train.py of ada"));
  EXPECT_THAT(only(facts).evidence, HasSubstr("zombie"));
}

TEST(HealthCheckup, EveryOutputIsPrintableWhateverTheNamesAre) {
  HealthFacts facts = healthy();
  const std::string hostile = "x\x1b[31m\n\xff\xe2\x80\xae y";
  facts.devices[1].info.name = hostile;
  facts.log.events = {xid(79), xid(63, hostile)};
  facts.log.events[0].process = facts.log.events[0].text = hostile;
  facts.log.error = hostile;
  facts.nvml->silent = {{3, true, hostile}, {4, false, std::string(5000, '\xc3')}};
  const HealthCheckup checkup = check_health(facts);
  for (const std::string& text : {health_text(checkup, {}), health_line(checkup), health_json(checkup)})
    EXPECT_EQ(printable_lines(text), text);
  EXPECT_LE(health_line(checkup).size(), 200U);
  const auto document = nlohmann::json::parse(health_json(checkup));
  EXPECT_EQ(document["schema"], "vramtrack.health.v1");
  EXPECT_EQ(document["exit_code"], 1);
}

TEST(HealthCheckup, TheLineStaysShort) {
  HealthFacts facts = healthy();
  facts.log.error = std::string(300, 'a') + "\xc3\xa4";
  EXPECT_EQ(health_line(check_health(facts)).size(), 200U);
  facts.log.error = std::string(148, 'a') + "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
  const std::string line = health_line(check_health(facts));
  EXPECT_EQ(printable_lines(line), line) << "no half a character";
}

TEST(HealthCheckup, TheVersionInTheNameOfALibrary) {
  EXPECT_EQ(version_of_library("/usr/lib/libnvidia-ml.so.550.54.14"), "550.54.14");
  for (const char* path :
       {"", "libnvidia-ml.so", "libnvidia-ml.so.1", "libnvidia-ml.so.", "libnvidia-ml.so..1", "x.so.5.a"})
    EXPECT_EQ(version_of_library(path), "") << path;
}

}  // namespace
}  // namespace vramtrack
