// SitesWatch: requests the lines of the displayed process in the background, because a run may answer slowly.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "core/result.hpp"
#include "report/sites.hpp"

namespace vramtrack::top {

/// The report about a process from this user's runs on this machine. Takes up to two seconds.
Result<SitesNow> sites_of_run(std::uint32_t pid);

class SitesWatch {
 public:
  /// Called on the watch's own thread, one call at a time.
  using Ask = std::function<Result<SitesNow>(std::uint32_t pid)>;

  explicit SitesWatch(Ask ask, std::chrono::milliseconds every = std::chrono::seconds{3})
      : ask_(std::move(ask)), every_(every) {}
  /// Waits for a call in progress.
  ~SitesWatch();
  SitesWatch(const SitesWatch&) = delete;
  SitesWatch& operator=(const SitesWatch&) = delete;

  /// Returns the last report about this process at once; requests a new one if it is old. Called by one thread only.
  SitesNow look(std::uint32_t pid);

 private:
  using Clock = std::chrono::steady_clock;
  void run(std::uint32_t pid);

  const Ask ask_;
  const std::chrono::milliseconds every_;
  std::thread thread_;
  std::mutex mutex_;  ///< guards the following members
  bool is_asking_ = false;
  std::uint32_t pid_ = 0;  ///< the process of newest_
  SitesNow newest_;
  Clock::time_point next_{};
};

}  // namespace vramtrack::top
