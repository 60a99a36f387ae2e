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
  // Each waits for the other, so a single thread would never finish.
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
  Pool pool;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 200; ++i) {
    threads.insert(thread_of_a_job(pool));
    while (pool.idle() == 0) std::this_thread::yield();  // it has finished its job, but is not idle yet
  }
  EXPECT_EQ(threads.size(), 1U);
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
