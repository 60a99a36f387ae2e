// LifetimesSource: the allocations of all running programs as a live source: events `lifetimes`.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "source/source.hpp"
#include "telemetry/accounts.hpp"

namespace vramtrack::telemetry {

/// Processes the events on its own thread, from open() to destruction: the kernel's ring holds about one second of
/// them. While that thread scans all processes, for a few milliseconds, poll() waits.
class LifetimesSource final : public Source {
 public:
  /// Follows every program but this one. If an error prevents that, each poll() returns it. `categories`, if not null,
  /// receives the memory of each process by category at each poll, and is emptied at the end.
  explicit LifetimesSource(std::shared_ptr<TracedCategories> categories = nullptr);
  ~LifetimesSource() override;

  Result<Progress> poll(Timestamp now, Batch& out) override;
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  void run();

  const std::shared_ptr<TracedCategories> categories_;
  std::unique_ptr<Accounts> accounts_;  ///< null if it could not be opened
  std::mutex mutex_;                    ///< guards accounts_ and the members below
  Status failed_;
  std::vector<std::string> warnings_;
  bool is_ending_ = false;
  // Used only by the polling thread.
  std::uint64_t reported_lost_ = 0;
  SourceNotes notes_;
  std::thread thread_;  ///< last, because it uses all of these
};

}  // namespace vramtrack::telemetry
