// ProbedSites: what the runs of `vramtrack run` on this machine report about their processes. Asks them, seldom.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/view.hpp"

namespace vramtrack::agent {

/// A living process under the probe.
struct ProbedProcess {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
};

/// From any number of threads. Runs answer their own user and root: an agent of another user sees its own alone.
class ProbedSites {
 public:
  struct Answer {
    enum class State : std::uint8_t { not_probed, not_yet, busy, known };
    State state = State::not_probed;
    std::shared_ptr<const std::string> text;  ///< "vramtrack.trace_report.v1", where it is known
  };

  /// Of the agent's user, and of the users of the processes in `view` (may be null). Looked up at most once in
  /// kLookEvery.
  [[nodiscard]] std::vector<ProbedProcess> processes(const View* view);
  /// The sites of the run that holds the process, which is `uid`'s. Takes at most kPatience; a run is asked at most
  /// once in kAskEvery.
  [[nodiscard]] Answer report(std::uint32_t pid, std::uint32_t uid);

  /// What the processes under `vramtrack run --watch` hold by category, by pid. Runs are asked at most once in
  /// kAskEvery, each for at most kCategoriesPatience; meanwhile, and of one that does not answer, what was known
  /// before.
  using Categories = std::map<std::uint32_t, std::vector<std::pair<std::string, double>>>;
  [[nodiscard]] Categories categories(const View* view);
  /// Parses one run's answer "PID:weights=BYTES,activations=BYTES PID:..."; what has another form is left out. Pure.
  static void read_categories(std::string_view text, Categories& into);

  static constexpr std::chrono::seconds kLookEvery{3};
  static constexpr std::chrono::seconds kAskEvery{2};
  static constexpr std::chrono::milliseconds kPatience{1500};
  static constexpr std::chrono::milliseconds kCategoriesPatience{300};

 private:
  using Clock = std::chrono::steady_clock;
  /// What one run answered last.
  struct Run {
    explicit Run(std::string its_folder) : folder(std::move(its_folder)) {}
    const std::string folder;
    std::timed_mutex mutex;  ///< guards what follows; held while the run is asked
    Clock::time_point asked{};
    Answer answer;
  };
  [[nodiscard]] std::shared_ptr<Run> run_in(const std::string& folder);

  std::mutex mutex_;  ///< guards what follows
  Clock::time_point looked_{};
  std::vector<ProbedProcess> processes_;
  std::mutex asking_;  ///< guards what follows; held while runs are asked
  Clock::time_point asked_categories_{};
  Categories categories_;
  std::list<std::shared_ptr<Run>> runs_;  ///< the one that was asked for last comes first
};

}  // namespace vramtrack::agent
