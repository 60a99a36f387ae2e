// SitesWatch: reports are shown even if a source is slow.
#include "top/sites_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace vramtrack::top {
namespace {

using State = SitesNow::State;

SitesNow known(const std::string& program) {
  SitesNow now{State::known};
  now.report.program = program;
  return now;
}

template <class Condition>
void until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(SitesWatch, AnswersAtOnceAndTellsWhatCame) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  SitesWatch watch([gate](std::uint32_t pid) -> Result<SitesNow> {
    gate.wait();
    return known(std::to_string(pid));
  });
  EXPECT_EQ(watch.look(7).state, State::unknown);
  EXPECT_EQ(watch.look(7).state, State::unknown) << "while it is asked";
  go.set_value();
  until([&] { return watch.look(7).state == State::known; });
  EXPECT_EQ(watch.look(7).report.program, "7");
}

TEST(SitesWatch, AnotherProcessHasItsOwnAnswer) {
  SitesWatch watch([](std::uint32_t pid) -> Result<SitesNow> { return known(std::to_string(pid)); });
  until([&] { return watch.look(7).state == State::known; });
  until([&] {
    const SitesNow now = watch.look(8);
    EXPECT_TRUE(now.state == State::unknown || now.report.program == "8");
    return now.state == State::known;
  });
}

TEST(SitesWatch, AsksAgainWhenTheAnswerIsOld) {
  std::atomic<int> asked = 0;
  {
    SitesWatch often([&](std::uint32_t) -> Result<SitesNow> { return known(std::to_string(++asked)); },
                     std::chrono::milliseconds{0});
    until([&] { return often.look(7).state == State::known && asked > 3; });
  }
  asked = 0;
  SitesWatch seldom([&](std::uint32_t) -> Result<SitesNow> { return known(std::to_string(++asked)); },
                    std::chrono::hours{1});
  until([&] { return seldom.look(7).state == State::known; });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seldom.look(7).report.program, "1");
}

TEST(SitesWatch, WhatIsKnownStaysWhileARunIsSilent) {
  std::atomic<int> asked = 0;
  SitesWatch watch(
      [&](std::uint32_t) -> Result<SitesNow> {
        const int n = ++asked;
        if (n == 1) return known("first");
        if (n == 2) return SitesNow{State::not_yet};
        if (n == 3) return fail("no answer");
        return SitesNow{State::not_probed};
      },
      std::chrono::milliseconds{0});
  State last = State::unknown;
  until([&] {
    const SitesNow now = watch.look(7);
    if (now.state == State::known) {
      EXPECT_EQ(now.report.program, "first");
    }
    EXPECT_NE(now.state, State::not_yet);
    last = now.state;
    return last == State::not_probed;  // it has ended
  });
  EXPECT_GE(asked, 4);
}

}  // namespace
}  // namespace vramtrack::top
