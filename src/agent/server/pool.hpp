// Pool: threads that serve one connection each; created on demand, ended after idling.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace vramtrack::agent {

/// run(job) is thread-safe. There are at most as many threads as unfinished jobs, which the caller limits.
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// Waits for the jobs to end.
  ~Pool() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    work_.notify_all();
    ended_.wait(lock, [this] { return threads_ == 0; });
  }

  /// False if no thread could be created; the job is dropped.
  bool run(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() <= idle_) {
      work_.notify_one();
      return true;
    }
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
      return true;
    } catch (const std::system_error&) {
      jobs_.pop_back();
      return false;
    }
  }

  /// The number of threads that wait for a job.
  [[nodiscard]] std::size_t idle() {
    const std::lock_guard lock(mutex_);
    return idle_;
  }

 private:
  static constexpr std::chrono::seconds kIdle{10};

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      const bool woken = work_.wait_for(lock, kIdle, [this] { return stopping_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty() && (stopping_ || !woken)) break;
      if (jobs_.empty()) continue;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
    if (--threads_ == 0) ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> jobs_;
  std::size_t idle_ = 0;
  std::size_t threads_ = 0;
  bool stopping_ = false;
};

}  // namespace vramtrack::agent
