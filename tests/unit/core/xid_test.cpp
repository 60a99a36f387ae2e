#include "core/xid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace vramtrack {
namespace {

using ::testing::EndsWith;
using ::testing::Not;

TEST(Xid, EachIsFoundAndSaysWhatToDo) {
  ASSERT_GT(known_xids().size(), 40U);
  for (const XidInfo& info : known_xids()) {
    EXPECT_EQ(find_xid(info.code), &info);
    EXPECT_FALSE(info.meaning.empty()) << info.code;
    EXPECT_FALSE(info.advice.empty()) << info.code;
    EXPECT_THAT(std::string(info.advice), Not(EndsWith("."))) << info.code;
  }
}

TEST(Xid, TheCauseAndTheSeverityOfTheUsualOnes) {
  const auto is = [](std::uint64_t code, XidCause cause, XidSeverity severity) {
    const XidInfo* info = find_xid(code);
    return info != nullptr && info->cause == cause && info->severity == severity;
  };
  for (const std::uint64_t code : {13U, 31U, 43U, 45U})
    EXPECT_TRUE(is(code, XidCause::application, XidSeverity::info)) << code;
  for (const std::uint64_t code : {48U, 64U, 74U, 79U, 95U})
    EXPECT_TRUE(is(code, XidCause::hardware, XidSeverity::critical)) << code;
  for (const std::uint64_t code : {63U, 92U, 94U})
    EXPECT_TRUE(is(code, XidCause::hardware, XidSeverity::warning)) << code;
  for (const std::uint64_t code : {119U, 120U}) EXPECT_TRUE(is(code, XidCause::driver, XidSeverity::critical)) << code;
  EXPECT_TRUE(is(54, XidCause::power, XidSeverity::critical));
}

/// The numbers that the catalog uses, and no others. As in NVIDIA's "GPU Memory Error Management": memory that was set
/// aside successfully waits for a reset.
TEST(Xid, ErrorsOfMemoryAreNeverHealthy) {
  for (const std::uint64_t code : {63U, 94U, 160U, 161U}) EXPECT_EQ(xid_severity(code), XidSeverity::warning) << code;
  for (const std::uint64_t code : {48U, 64U, 95U, 171U, 172U})
    EXPECT_EQ(xid_severity(code), XidSeverity::critical) << code;
}

TEST(Xid, TheTableHasEachNumberOfTheCatalog) {
  constexpr std::pair<std::uint64_t, std::uint64_t> kUsed[] = {
      {8, 8},   {11, 11}, {13, 14}, {25, 25}, {31, 32}, {37, 41},  {43, 46},   {48, 48},   {54, 54},   {60, 60},
      {62, 64}, {66, 72}, {74, 80}, {82, 86}, {88, 89}, {92, 110}, {119, 121}, {126, 137}, {139, 172},
  };
  for (const auto& [first, last] : kUsed)
    for (std::uint64_t code = first; code <= last; ++code) EXPECT_NE(find_xid(code), nullptr) << code;
  // Its immediate action is to reset the GPU or restart the machine.
  for (const std::uint64_t code : {46U, 62U, 64U, 79U, 95U, 109U, 110U, 119U, 120U, 136U, 140U, 143U, 158U})
    EXPECT_EQ(xid_severity(code), XidSeverity::critical) << code;
}

TEST(Xid, TheLineOfTheDriverSaysWhetherAnErrorIsFatal) {
  for (std::uint64_t code = 144; code <= 150; ++code) {
    const std::string begin = "NVRM: Xid (PCI:0000:04:00): " + std::to_string(code);
    EXPECT_NE(xid_severity(code), XidSeverity::info) << code;
    EXPECT_EQ(xid_severity(code, begin + ", RLW_REMAP Fatal XC0 i0 Link 03 (0x00000004 0x00000040)"),
              XidSeverity::critical);
    EXPECT_EQ(xid_severity(code, begin + ", RLW, fatal, cross-contain=0, injected=0, Link 3 (0x00000004)"),
              XidSeverity::critical);
    for (const char* harmless : {"Nonfatal", "nonfatal,", "Non-fatal"})
      EXPECT_EQ(xid_severity(code, begin + ", NETIR_BER_EVENT " + harmless + " XC0 i0 Link 03 (0x00086226)"),
                xid_severity(code))
          << code;
  }
  EXPECT_EQ(xid_severity(4711), XidSeverity::warning);
  EXPECT_EQ(xid_severity(4711, "NVRM: Xid (PCI:0000:04:00): 4711, NEW_UNIT Fatal"), XidSeverity::critical);
  const std::string of_process = "NVRM: Xid (PCI:0000:04:00): 4711, pid=1, name=";
  EXPECT_EQ(xid_severity(4711, of_process + "fatal, NEW_UNIT Nonfatal"), XidSeverity::warning)
      << "a name is nobody's word";
  EXPECT_EQ(xid_severity(4711, of_process + "not, NEW_UNIT Fatal"), XidSeverity::critical);
  EXPECT_EQ(xid_severity(4711, "NVRM: Xid (PCI:0000:04:00): 4711, NON_FATAL_UNIT"), XidSeverity::warning);
  for (const char* denied : {"a non fatal error", "non - fatal", "NOT FATAL", "this is not a fatal error",
                             "it isn't fatal", "no fatal error", "fatal=0, link 3", "Fatal: no", "never fatal",
                             "Nonfatal", "severity non-fatal (fatal: false)"})
    EXPECT_EQ(xid_severity(4711, std::string("NVRM: Xid (PCI:0000:04:00): 4711, ") + denied), XidSeverity::warning)
        << denied;
  for (const char* fatal : {"fatal", "a non-fatal error became fatal", "fatal=1", "Fatal: link 3", "note: fatal error",
                            "not recovered, fatal", "uncorrectable (Fatal)"})
    EXPECT_EQ(xid_severity(4711, std::string("NVRM: Xid (PCI:0000:04:00): 4711, ") + fatal), XidSeverity::critical)
        << fatal;
  EXPECT_EQ(xid_severity(31, "NVRM: Xid (PCI:0000:04:00): 31, pid=7, name=fatal, MMU Fault"), XidSeverity::info)
      << "a program's name";
}

TEST(Xid, AnUnknownNumberRefersToNvidiasList) {
  EXPECT_EQ(describe_xid(79), "XID 79: the GPU has fallen off the bus");
  for (const std::uint64_t code : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12345}, ~std::uint64_t{0}}) {
    EXPECT_EQ(find_xid(code), nullptr);
    EXPECT_EQ(describe_xid(code), "XID " + std::to_string(code) + ": see NVIDIA's list of XID errors");
  }
}

}  // namespace
}  // namespace vramtrack
