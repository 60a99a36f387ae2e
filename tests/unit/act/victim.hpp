// A real process that counts the signals it receives, for the tests of acts.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>

#include "act/subject.hpp"
#include "host/process.hpp"

namespace vramtrack::act {

/// Handles SIGUSR1, ignores SIGTERM or ends on it, and waits. It ends with this object at the latest.
class Victim {
 public:
  explicit Victim(bool ignores_term) {
    shared() = static_cast<Counts*>(
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    counts_ = shared();
    pid_ = ::fork();
    if (pid_ == 0) {
      std::signal(SIGUSR1, [](int) { ++shared()->usr1; });
      if (ignores_term)
        std::signal(SIGTERM, [](int) { ++shared()->term; });
      else
        std::signal(SIGTERM, SIG_DFL);
      shared()->ready = 1;
      for (;;) ::pause();
    }
    while (counts_->ready == 0) ::usleep(100);
    std::string path;
    if (const auto alive = process_alive("/proc", pid(), path)) start_ticks_ = alive->start_ticks;
  }
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(counts_, sizeof(Counts));
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  [[nodiscard]] int usr1() const { return counts_->usr1; }
  [[nodiscard]] int term() const { return counts_->term; }
  /// Waits until it handles SIGTERM, for at most some seconds: the seconds in these tests are not real ones.
  void handles_term() const {
    for (int i = 0; i < 10000 && counts_->term == 0; ++i) ::usleep(200);
  }
  /// 'T' stopped, 'S' asleep; '?' ended.
  [[nodiscard]] char state() const {
    std::string path;
    const auto alive = process_alive("/proc", pid(), path);
    return alive ? alive->state : '?';
  }
  /// The kernel may need a moment; returns false if the state is not reached.
  [[nodiscard]] bool becomes(std::string_view states) const {
    for (int i = 0; i < 50000; ++i) {
      if (states.find(state()) != std::string_view::npos) return true;
      ::usleep(200);
    }
    return false;
  }
  [[nodiscard]] Subject subject() const {
    Subject s;
    s.process = {pid(), start_ticks_, {}};
    if (const auto info = read_process("/proc", pid())) {
      s.user = info->user;
      s.command = info->command;
    }
    s.device_id = "GPU-1";
    s.severity = Severity::critical;
    s.confidence = 0.99;
    s.used_bytes = 1'000'000'000;
    s.because = "it grows";
    return s;
  }

 private:
  struct Counts {
    std::atomic<int> usr1{0};
    std::atomic<int> term{0};
    std::atomic<int> ready{0};
  };
  static Counts*& shared() {
    static Counts* counts = nullptr;
    return counts;
  }
  Counts* counts_ = nullptr;
  pid_t pid_ = -1;
  std::uint64_t start_ticks_ = 0;
};

}  // namespace vramtrack::act
