#include "agent/server/published.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "patience.hpp"

namespace vramtrack::agent {
namespace {

std::shared_ptr<const View> view_of(int second) {
  auto view = std::make_shared<View>();
  view->time = Timestamp{std::chrono::seconds{second}};
  return view;
}

TEST(Published, CountsItsGenerations) {
  Published published;
  EXPECT_EQ(published.latest(), nullptr);
  published.publish(view_of(1), {});
  EXPECT_EQ(published.latest()->generation, 1U);
  published.publish(view_of(2), {});
  EXPECT_EQ(published.latest()->generation, 2U);
  EXPECT_EQ(published.latest()->view->time, Timestamp{std::chrono::seconds{2}});
}

TEST(Published, WaitingEndsWithTheNextOneOrTheClose) {
  Published published;
  published.publish(view_of(1), {});
  EXPECT_EQ(published.wait_after(0, std::chrono::milliseconds{0})->generation, 1U);
  EXPECT_EQ(published.wait_after(1, std::chrono::milliseconds{0}), nullptr);
  std::thread writer([&] { published.publish(view_of(2), {}); });
  const auto next = published.wait_after(1, std::chrono::minutes{1});
  writer.join();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->generation, 2U);
  published.close();
  EXPECT_TRUE(published.closed());
  EXPECT_EQ(published.wait_after(0, std::chrono::minutes{1}), nullptr);
}

TEST(Published, TheCloseEndsAWaitForWhatDoesNotCome) {
  Published published;
  published.publish(view_of(1), {});
  published.close();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(published.wait_after(1, std::chrono::minutes{10}), nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, patience(std::chrono::seconds{5}));
}

/// Without its lock, a reader would use memory that the writer frees: a crash or an older generation would follow.
TEST(Published, ReadersHoldWhatTheWriterReplaces) {
  constexpr int kRounds = 200'000;
  Published published;
  published.publish(view_of(1), {});
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!done) {
        const auto now = published.latest();
        const auto second =
            std::chrono::duration_cast<std::chrono::seconds>(now->view->time.time_since_epoch()).count();
        if (now->generation < last || static_cast<std::uint64_t>(second) != now->generation) ++wrong;
        last = now->generation;
      }
    });
  for (int second = 2; second <= kRounds; ++second) published.publish(view_of(second), {});
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace vramtrack::agent
