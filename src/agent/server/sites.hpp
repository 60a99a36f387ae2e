// ProbedSites: what the runs of `vramtrack run` on this machine report about their processes. Queries them rarely.
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

/// For any number of threads. Runs answer only their own user and root, so an agent of another user sees only its own.
class ProbedSites {
 public:
  struct Answer {
    enum class State : std::uint8_t { not_probed, not_yet, busy, known };
    State state = State::not_probed;
    std::shared_ptr<const std::string> text;  ///< a "vramtrack.trace_report.v1" document, if known
  };

  /// The processes of the agent's user, and of the users in `view` (may be null). Looked up at most once per
  /// kLookEvery.
  [[nodiscard]] std::vector<ProbedProcess> processes(const View* view);
  /// The sites of the run that contains the process, which belongs to `uid`. Takes at most kPatience; a run is queried
  /// at most once per kAskEvery.
  [[nodiscard]] Answer report(std::uint32_t pid, std::uint32_t uid);

  /// The memory of the processes under `vramtrack run --watch` by category, by pid. Runs are queried at most once per
  /// kAskEvery, each for at most kCategoriesPatience. In between, and for a run that does not answer, returns the
  /// earlier values.
  using Categories = std::map<std::uint32_t, std::vector<std::pair<std::string, double>>>;
  [[nodiscard]] Categories categories(const View* view);
  /// Parses one run's answer "PID:weights=BYTES,activations=BYTES PID:..."; anything in another form is ignored. Pure.
  static void read_categories(std::string_view text, Categories& into);

  static constexpr std::chrono::seconds kLookEvery{3};
  static constexpr std::chrono::seconds kAskEvery{2};
  static constexpr std::chrono::milliseconds kPatience{1500};
  static constexpr std::chrono::milliseconds kCategoriesPatience{300};

 private:
  using Clock = std::chrono::steady_clock;
  /// The latest answer of one run.
  struct Run {
    explicit Run(std::string its_folder) : folder(std::move(its_folder)) {}
    const std::string folder;
    std::timed_mutex mutex;  ///< guards the members below; held while the run is queried
    Clock::time_point asked{};
    Answer answer;
  };
  [[nodiscard]] std::shared_ptr<Run> run_in(const std::string& folder);

  std::mutex mutex_;  ///< guards the members below
  Clock::time_point looked_{};
  std::vector<ProbedProcess> processes_;
  std::mutex asking_;  ///< guards the members below; held while runs are queried
  Clock::time_point asked_categories_{};
  Categories categories_;
  std::list<std::shared_ptr<Run>> runs_;  ///< the most recently requested first
};

}  // namespace vramtrack::agent
