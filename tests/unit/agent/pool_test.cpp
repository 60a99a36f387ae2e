#include "agent/server/pool.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <thread>

namespace vramtrack::agent {
namespace {

/// Runs one job, waits for it and returns the thread it ran on.
std::thread::id thread_of_a_job(Pool& pool) {
  std::promise<std::thread::id> ran;
  auto on = ran.get_future();
  EXPECT_TRUE(pool.run([&] { ran.set_value(std::this_thread::get_id()); }));
  return on.get();
}

TEST(Pool, JobsRunBesideEachOther) {
  std::promise<void> first;
  std::promise<void> second;
  Pool pool;
  // Each waits for the other: one thread alone would never end.
  pool.run([&] {
    first.set_value();
    second.get_future().wait();
  });
  pool.run([&] {
    first.get_future().wait();
    second.set_value();
  });
}

TEST(Pool, JobsOneAfterAnotherShareThreads) {
  constexpr std::size_t kJobs = 200;
  Pool pool;
  std::set<std::thread::id> threads;
  for (std::size_t i = 0; i < kJobs; ++i) threads.insert(thread_of_a_job(pool));
  // A thread that has just ended its job may not be idle yet; one more is made then, and stays.
  EXPECT_LT(threads.size(), kJobs / 4);
}

TEST(Pool, ItsEndWaitsForTheJobs) {
  std::promise<void> go;
  bool ended = false;
  auto pool = std::make_unique<Pool>();
  std::promise<void> begun;
  pool->run([&] {
    begun.set_value();
    go.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  go.set_value();
  pool.reset();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace vramtrack::agent
