#include "core/xid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Xid, AnUnknownNumberRefersToNvidiasList) {
  EXPECT_EQ(describe_xid(79), "XID 79: the GPU has fallen off the bus");
  for (const std::uint64_t code : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12345}, ~std::uint64_t{0}}) {
    EXPECT_EQ(find_xid(code), nullptr);
    EXPECT_EQ(describe_xid(code), "XID " + std::to_string(code) + ": see NVIDIA's list of XID errors");
  }
}

}  // namespace
}  // namespace vramtrack
