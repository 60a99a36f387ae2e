// The data of a timeline page: its levels of detail, and its permitted size.
#include "trace/render/page.hpp"

#include <gmock/gmock.h>

#include "trace/call_category.hpp"

namespace vramtrack::trace {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<PagePart> of_events(int events) {
  std::vector<PagePart> parts(1);
  parts[0].stack_of = [](Holder) { return kNoStack; };
  for (int i = 0; i < events; ++i) parts[0].activity.take(i * 10, 1, i % 2 == 0 ? 2 : -1, 0);
  return parts;
}

TEST(PageData, OfFewEventsThereIsOneLevel) {
  const Symbols symbols;
  const std::string text = page_json("t", of_events(4096), symbols);
  EXPECT_NE(text.find(R"("levels":[],"levels_left_out":false)"), std::string::npos);
  EXPECT_NE(text.find(R"("first_event":0,"last_event":4095,"last_us":40950)"), std::string::npos);
}

TEST(PageData, OfManyEventsFinerLevelsComeInPieces) {
  const Symbols symbols;
  // 40,000 points, each an event; 10,000 and 2,500 of them at the coarser levels.
  const std::string text = page_json("t", of_events(40'000), symbols);
  EXPECT_EQ(count(text, R"("data":")"), 3U + 10U);
  EXPECT_NE(text.find(R"({"event":36864,"us":368640,"data":"{\"points\":{\"event\":[36864,36865,)"), std::string::npos);
  EXPECT_NE(text.find(R"("levels_left_out":false)"), std::string::npos);
}

TEST(PageData, ALevelThatDoesNotFitIsLeftOut) {
  const Symbols symbols;
  const std::string text = page_json("t", of_events(40'000), symbols, 600'000);
  EXPECT_EQ(count(text, R"("data":")"), 3U) << "the coarser of the two";
  EXPECT_NE(text.find(R"("levels_left_out":true)"), std::string::npos);
  EXPECT_LT(text.size(), 1'000'000U);
  EXPECT_NE(page_json("t", of_events(40'000), symbols, 0).find(R"("levels":[],"levels_left_out":true)"),
            std::string::npos);
}

TEST(PageData, TheStacksOfALineAreOneLayer) {
  Symbols symbols;
  const auto frame = [&](std::string_view name, std::string_view file, std::uint32_t line) {
    return symbols.intern(Frame{symbols.intern(name), symbols.intern(file), line});
  };
  const FrameId step = frame("step", "/home/me/train.py", 7);
  const FrameId other = frame("other", "/home/me/train.py", 9);
  const FrameId torch = frame("linear", "/venv/site-packages/torch/nn/functional.py", 3);
  const FrameId main = frame("main", "/home/me/main.py", 1);
  const std::vector<StackId> stacks = {symbols.intern(std::vector<FrameId>{step, main}),
                                       symbols.intern(std::vector<FrameId>{torch, step, main}),
                                       symbols.intern(std::vector<FrameId>{torch, other, main})};
  std::vector<PagePart> parts(1);
  parts[0].stack_of = [&](Holder holder) { return stacks[holder]; };
  parts[0].activity.take(0, 0, 10, 0);
  parts[0].activity.take(1, 1, 20, 0);
  parts[0].activity.take(2, 2, 25, 0);
  std::string text = page_json("t", parts, symbols);
  EXPECT_EQ(count(text, R"("site":")"), 2U);
  EXPECT_THAT(
      text, testing::HasSubstr(R"("site":"/home/me/train.py:7 step","category":"activations, unknown","stacks":2,)"
                               R"("stack":["/home/me/train.py:7 step","/home/me/main.py:1 main"],"steps":[0,10,1,30])"))
      << "the highest first";
  EXPECT_LT(text.find("train.py:7"), text.find("train.py:9"));
  // A trace names lines by its known modules.
  parts[0].line_of = [&](StackId) { return std::optional(main); };
  text = page_json("t", parts, symbols);
  EXPECT_THAT(text,
              testing::HasSubstr(R"("site":"/home/me/main.py:1 main","category":"activations, unknown","stacks":3)"));
  EXPECT_EQ(count(text, R"("site":")"), 1U);
}

/// One stack allocates with two calls.
TEST(PageData, WhatTheDriverTakesIsNamedByItsCall) {
  const Symbols symbols;
  std::vector<PagePart> parts(1);
  parts[0].stack_of = [](Holder) { return kNoStack; };
  parts[0].category_of = [](Holder holder, Category of_stack) {
    return category_of(probe::info_of(holder == 0 ? probe::Call::cu_context : probe::Call::cu_mem_alloc), of_stack);
  };
  parts[0].activity.take(0, 0, 300, 0);
  parts[0].activity.take(1, 1, 20, 0);
  const std::string text = page_json("t", parts, symbols);
  EXPECT_THAT(text, testing::HasSubstr(R"({"name":"contexts","steps":[0,300]})"));
  EXPECT_THAT(text, testing::HasSubstr(R"({"name":"unknown","steps":[1,20]})"));
}

}  // namespace
}  // namespace vramtrack::trace
