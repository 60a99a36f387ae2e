// One table of codes serves every program: each number counts only if the line names its interface and calls it an
// error, or if no other interface uses it.
#include "explain/codes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "explain/explanation.hpp"
#include "explain/reader.hpp"

namespace vramtrack::explain {
namespace {

Cause cause_of(const std::string& text) {
  const auto explanation = explain(read_messages(text));
  EXPECT_TRUE(explanation) << text;
  return explanation ? explanation->cause : Cause::leak;
}

TEST(Codes, OfALackOfMemory) {
  for (const std::string text :
       {"wt: cublas error 3", "wt: cudnn status 2 in the forward pass", "nvenc: encoder error 10",
        "scene: clEnqueueNDRangeKernel ( -4 )", "post: vkQueueSubmit: -2", "zeMemAlloc result 0x70000003",
        "ui: draw call error 0x8876017C", "ui: GL error 0x505 in glTexStorage", "npu: acl error 207001",
        "qsv: encode error -4"})
    EXPECT_EQ(cause_of(text), Cause::unknown) << text;
  for (const std::string text : {"step 3 of nvenc", "sorting: error 3", "zeMemFree result 0x70000001", "ui: code 1285",
                                 "clCreateBuffer(-30)", "vkQueueSubmit: -4", "error 207001 of the shop"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Codes, TheValueDecidesNotTheCall) {
  for (const std::string value : {"-10", "-1000072003"})
    EXPECT_EQ(other_code_in("vkAllocateMemory failed " + value), value);
  for (const std::string value : {"-1", "-2", "-12", "-1000069000"})
    EXPECT_EQ(other_code_in("vkAllocateMemory failed " + value), "");
}

TEST(Codes, ThatNameAnObjectTooLargeAreALimit) {
  EXPECT_EQ(cause_of("gl: could not allocate the table: clCreateBuffer(-61)"), Cause::limit);
  EXPECT_EQ(cause_of("render: opencl error -40 for the atlas"), Cause::limit);
  EXPECT_EQ(cause_of("render: CL_INVALID_IMAGE_SIZE"), Cause::limit);
}

TEST(Codes, ThatNameTheHostsMemoryDecideNothing) {
  for (const std::string text : {"vkCreateDevice: error -1", "opencl error -6", "zeInit result 0x70000002"}) {
    const auto explanation = explain(read_messages(text));
    ASSERT_TRUE(explanation) << text;
    EXPECT_NE(explanation->because.find("code for the host's memory"), std::string::npos) << explanation->because;
  }
}

TEST(Codes, OfAnotherFailureBesideAGuessOfAPerson) {
  const std::string end =
      "Execution of the buffer was ended: Impacting Interactivity\n"
      "(0000000e: kIOGPUCommandBufferCallbackErrorImpactingInteractivity)\n";
  const std::string guess =
      "\nI think that this is the system killing it, which is not the same as the OOM that others have seen\n";
  EXPECT_TRUE(explain(read_messages(guess)));
  EXPECT_FALSE(explain(read_messages(end + guess)));
  EXPECT_TRUE(explain(read_messages("(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n")));
}

}  // namespace
}  // namespace vramtrack::explain
