#include "telemetry/lifetimes_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

namespace vramtrack::telemetry {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr int kLongestWait_ms = 500;
constexpr std::chrono::milliseconds kGather{100};

}  // namespace

LifetimesSource::LifetimesSource(std::shared_ptr<TracedCategories> categories) : categories_(std::move(categories)) {
  auto accounts =
      Accounts::open([self = static_cast<std::uint32_t>(::getpid())](std::uint32_t pid) { return pid != self; });
  if (!accounts) {
    failed_ = fail(accounts.error());
    return;
  }
  accounts_ = std::move(*accounts);
  // Only the polling thread handles signals.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LifetimesSource::~LifetimesSource() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
  if (categories_) categories_->set({});
}

/// Waits without the lock. Events that have arrived then wait a little for more, so that a busy program causes few
/// wake-ups: the ring has room for about 1600 stacks.
void LifetimesSource::run() {
  auto look = std::chrono::steady_clock::now();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
      Status status;
      if (const auto now = std::chrono::steady_clock::now(); now >= look) {
        look = now + kLookEvery;
        status = accounts_->find_targets();
        for (std::string& warning : accounts_->take_warnings()) warnings_.push_back(std::move(warning));
      }
      if (status) status = accounts_->poll(0);
      if (!status) {
        failed_ = status;
        return;
      }
    }
    accounts_->wait(kLongestWait_ms);
    std::this_thread::sleep_for(kGather);
  }
}

Result<Progress> LifetimesSource::poll(Timestamp now, Batch& out) {
  const std::lock_guard lock(mutex_);
  if (!failed_) return fail(failed_.error());
  for (std::string& warning : warnings_)
    if (std::find(notes_.warnings.begin(), notes_.warnings.end(), warning) == notes_.warnings.end())
      notes_.warnings.push_back(std::move(warning));
  warnings_.clear();
  if (categories_) categories_->set(accounts_->categories());
  for (trace::ProcessLifetimes& process : accounts_->report())
    out.events.push_back(trace::event_of(std::move(process), now));
  if (const std::uint64_t lost = accounts_->lost(); lost > reported_lost_) {
    Event note;
    note.time = now;
    note.text = lost_words(lost - reported_lost_);
    reported_lost_ = lost;
    out.events.push_back(std::move(note));
  }
  return Progress::more;
}

}  // namespace vramtrack::telemetry
