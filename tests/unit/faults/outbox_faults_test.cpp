// The outbox when calls fail: each call for its file in turn, and each allocation of its threads. Every accepted
// message is delivered in the end, once.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>
#include <thread>

#include "../temp_folder.hpp"
#include "act/notify.hpp"
#include "act/queue_file.hpp"
#include "act/run_program.hpp"
#include "fault_io.hpp"
#include "fault_memory.hpp"

namespace vramtrack::act {
namespace {

using namespace vramtrack::testing;
using ::testing::Contains;
using ::testing::HasSubstr;

class OutboxFaults : public ::testing::Test {
 protected:
  OutboxFaults() {
    io_plan().let(false);
    memory_plan().let(false);
    watch_this_thread();
    count_this_thread_as_own();
  }
  ~OutboxFaults() override {
    io_plan().disarm();
    memory_plan().disarm();
    watch_all_threads(false);
    io_plan().let(true);
    memory_plan().let(true);
  }

  /// A notifier that appends the ids of its messages to a file.
  [[nodiscard]] NotifierOptions options(const TempFolder& folder) const {
    NotifierOptions out;
    out.queue_path = folder.file("queue.json");
    out.config.exec = {"/bin/sh", "-c", "echo \"$VRAMTRACK_ALERT_ID\" >> " + folder.file("told")};
    out.config.max_per_hour = 100000;
    out.config.retry_seconds = 0.01;
    out.host = "node7";
    out.now = [] { return Timestamp{std::chrono::system_clock::now().time_since_epoch()}; };
    return out;
  }
  static Note note(int device) {
    Note out;
    out.key = {Metric::device_used, "GPU-" + std::to_string(device), 0, 0, {}};
    out.incident = out.key.device_id;
    out.severity = Severity::critical;
    out.time = Timestamp{std::chrono::hours{500000}};
    out.text = "GPU " + std::to_string(device) + " leaks, in words that no short string holds";
    return out;
  }
  static std::vector<std::string> told(const TempFolder& folder) {
    std::vector<std::string> out;
    std::ifstream in(folder.file("told"));
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  /// Waits for something that happens soon.
  static bool until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(OutboxFaults, EachCallOfTheFileThatFailsLeavesTheOldOrTheNew) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  const std::string first(70000, 'a');
  const std::string second(80000, 'b');
  for (const int number : {EIO, ENOSPC, EINTR})
    for (const auto how : {FaultPlan::How::once, FaultPlan::How::from_then_on}) {
      if (number == EINTR && how == FaultPlan::How::from_then_on) continue;  // a call interrupted forever
      std::int64_t n = 1;
      std::int64_t errors = 0;
      for (;; ++n) {
        SCOPED_TRACE("call " + std::to_string(n));
        TempFolder folder;
        const std::string path = folder.file("sub/queue.json");
        const int files = open_files();
        std::string written;
        bool failed = false;
        fail_with_errno(number);
        {
          const Armed armed(io_plan(), io_call::all, n, how);
          const auto file = under(io_plan(), [&] { return QueueFile::open(path); });
          for (const std::string* text : {&first, &second}) {
            if (!file) break;
            if (under(io_plan(), [&] { return file->write(*text); }))
              written = *text;
            else
              failed = true;
            const auto read = under(io_plan(), [&] { return file->read(); });
            if (read && !failed) {
              EXPECT_EQ(read->value_or(""), written);
            }
            failed = failed || !read;
          }
          failed = failed || !file;
        }
        EXPECT_EQ(open_files(), files);
        if (io_plan().injected() == 0) break;
        errors += failed;
        const auto file = QueueFile::open(path);
        ASSERT_TRUE(file) << file.error().message;
        const auto read = file->read();
        ASSERT_TRUE(read) << read.error().message;
        // Reported messages are there; unreported ones may be.
        const std::string there = read->value_or("");
        if (there != written) {
          EXPECT_TRUE(failed && (there == first || there == second) && there.size() > written.size()) << there.size();
        }
        if (HasFailure()) return;
      }
      std::cout << "outbox I/O: " << (how == FaultPlan::How::once ? "once" : "from then on") << ", errno " << number
                << ": up to call " << n - 1 << ", " << errors << " errors\n";
    }
  fail_with_errno(EIO);
}

TEST_F(OutboxFaults, WhatCouldNotBeSavedIsSavedLater) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  TempFolder folder;
  NotifierOptions given = options(folder);
  given.config.exec = {"/bin/sleep", "1000"};  // no outcome comes between
  given.config.timeout_seconds = 1000;
  auto notifier = Notifier::open(given);
  ASSERT_TRUE(notifier) << notifier.error().message;
  watch_all_threads(true);
  {
    const Armed armed(io_plan(), io_call::rename, 1, FaultPlan::How::once);
    io_plan().let(true);
    (*notifier)->notify(note(0));
    ASSERT_TRUE(until([&] {
      std::ifstream in(given.queue_path);
      const std::string saved(std::istreambuf_iterator<char>(in), {});
      return saved.find("GPU-0") != std::string::npos;
    }));
    EXPECT_EQ(io_plan().injected(), 1);
    io_plan().let(false);
  }
  EXPECT_THAT((*notifier)->take_warnings(), Contains(HasSubstr("would not survive a restart")));
}

TEST_F(OutboxFaults, AQueueThatCannotBeReadIsKept) {
  if (!io_can_fail()) GTEST_SKIP() << "a sanitizer stands between";
  TempFolder folder;
  std::ofstream(folder.file("queue.json")) << "what an earlier run left";
  {
    const Armed armed(io_plan(), io_call::read, 1, FaultPlan::How::once);
    const auto notifier = under(io_plan(), [&] { return Notifier::open(options(folder)); });
    ASSERT_TRUE(notifier) << notifier.error().message;
    EXPECT_THAT((*notifier)->take_warnings(), Contains(HasSubstr("cannot be read")));
  }
  std::ifstream in(folder.file("queue.json.damaged"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "what an earlier run left");

  std::ofstream(folder.file("queue.json")) << "what another run left";
  const Armed armed(io_plan(), io_call::read | io_call::rename, 1, FaultPlan::How::from_then_on);
  const auto refused = under(io_plan(), [&] { return Notifier::open(options(folder)); });
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot rename"));
}

TEST_F(OutboxFaults, ABurstIsToldOnceEach) {
  TempFolder folder;
  auto notifier = Notifier::open(options(folder));
  ASSERT_TRUE(notifier) << notifier.error().message;
  constexpr int kNotes = 60;
  // One after another, so that the queue is saved while the first ones are reported.
  for (int i = 0; i < kNotes; ++i) {
    (*notifier)->notify(note(i));
    ASSERT_TRUE(until([&] { return (*notifier)->counts().incidents > static_cast<std::uint64_t>(i); }));
  }
  EXPECT_EQ((*notifier)->flush(60), 0U);
  std::vector<std::string> ids = told(folder);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kNotes));
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST_F(OutboxFaults, EachAllocationThatFailsLosesNothingAndTellsNothingTwice) {
  if (!memory_can_fail()) GTEST_SKIP() << "a sanitizer has the allocator";
  std::int64_t n = 1;
  std::int64_t runs = 0;
  for (;; n = every_call() ? n + 1 : n + 1 + n / 3, ++runs) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    TempFolder folder;
    const NotifierOptions given = options(folder);
    Note notes[2] = {note(0), note(1)};
    {
      const Armed armed(memory_plan(), memory_call::own | memory_call::others, n, FaultPlan::How::once);
      auto notifier = under(memory_plan(), [&] { return Notifier::open(given); });
      if (!notifier) {
        EXPECT_FALSE(notifier.error().message.empty());
        notifier = Notifier::open(given);
      }
      ASSERT_TRUE(notifier) << notifier.error().message;
      memory_plan().let(true);
      for (Note& one : notes) (*notifier)->notify(std::move(one));
      // Wait for the last one: an attempt interrupted at the end would be repeated by the next run.
      EXPECT_TRUE(until([&] { return (*notifier)->flush(60) == 0; }));
      notifier->reset();
      memory_plan().let(false);
    }
    // The next run sends a message that was attempted without memory.
    {
      const auto notifier = Notifier::open(given);
      ASSERT_TRUE(notifier) << notifier.error().message;
      EXPECT_EQ((*notifier)->flush(60), 0U);
    }
    std::vector<std::string> ids = told(folder);
    EXPECT_EQ(ids.size(), 2U);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end()) << "told twice";
    if (HasFailure() || memory_plan().injected() == 0) break;
  }
  std::cout << "outbox memory: " << runs << " runs, the last at allocation " << n << '\n';
}

TEST_F(OutboxFaults, AProgramForWhichMemoryIsMissingIsNotStarted) {
  if (!memory_can_fail()) GTEST_SKIP() << "a sanitizer has the allocator";
  const std::atomic<bool> stop{false};
  std::int64_t n = 1;
  for (;; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const TempFolder folder;
    const std::string ran = folder.file("ran");
    const std::vector<std::string> argv = {"/bin/sh", "-c", "echo \"$0\" >'" + ran + "'; cat >>'" + ran + "'",
                                           "its name"};
    std::optional<Outcome> outcome;  // none: it threw
    {
      const Armed armed(memory_plan(), memory_call::own, n, FaultPlan::How::once);
      try {
        outcome = under(memory_plan(), [&] { return run_program(argv, "its input", {}, 60, stop); });
      } catch (const std::bad_alloc&) {
      }
    }
    const bool delivered = outcome && outcome->kind == Outcome::Kind::delivered;
    EXPECT_EQ(std::filesystem::exists(ran), delivered);
    if (delivered) {
      std::ifstream in(ran);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "its name\nits input");
    }
    if (HasFailure() || memory_plan().injected() == 0) break;
  }
  EXPECT_GT(n, 10);
}

}  // namespace
}  // namespace vramtrack::act
