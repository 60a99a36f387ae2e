// Work: passes machines from the thread that reads to the threads that judge.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "fleet/gpus.hpp"

namespace vramtrack::fleet {

/// `threads` threads call `judge` for each machine passed to put(). At most `most` wait; then put() blocks, which
/// bounds the memory. finish() waits until all are judged, and so does the destructor.
class Work {
 public:
  Work(unsigned threads, std::size_t most, std::function<void(const Machine&)> judge)
      : most_(most), judge_(std::move(judge)) {
    for (unsigned i = 0; i < (threads > 0 ? threads : 1); ++i)
      threads_.emplace_back([this] {
        while (const auto machine = take()) judge_(*machine);
      });
  }
  ~Work() { finish(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void put(Machine machine) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return machines_.size() < most_; });
    machines_.push_back(std::move(machine));
    changed_.notify_all();
  }
  void finish() {
    {
      const std::scoped_lock lock(mutex_);
      is_closed_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::optional<Machine> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_closed_ || !machines_.empty(); });
    if (machines_.empty()) return std::nullopt;
    Machine machine = std::move(machines_.front());
    machines_.pop_front();
    changed_.notify_all();
    return machine;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Machine> machines_;
  const std::size_t most_;
  std::function<void(const Machine&)> judge_;
  bool is_closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vramtrack::fleet
