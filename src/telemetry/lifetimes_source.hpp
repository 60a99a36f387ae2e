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

/// Takes in the events on its own thread, from open() to its end: the kernel's ring holds a second or so of them.
/// poll() waits for that thread for as long as a look at all processes takes, a few milliseconds.
class LifetimesSource final : public Source {
 public:
  /// Follows every program but this one. Each poll() returns the error that prevents it. `categories`, if not null:
  /// takes what each process holds by what it is for, at each poll; emptied at the end.
  explicit LifetimesSource(std::shared_ptr<TracedCategories> categories = nullptr);
  ~LifetimesSource() override;

  Result<Progress> poll(Timestamp now, Batch& out) override;
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  void run();

  const std::shared_ptr<TracedCategories> categories_;
  std::unique_ptr<Accounts> accounts_;  ///< null: it could not be opened
  std::mutex mutex_;                    ///< guards accounts_ and what follows
  Status failed_;
  std::vector<std::string> warnings_;
  bool is_ending_ = false;
  // Of the thread that polls.
  std::uint64_t reported_lost_ = 0;
  SourceNotes notes_;
  std::thread thread_;  ///< last: it uses all of these
};

}  // namespace vramtrack::telemetry
