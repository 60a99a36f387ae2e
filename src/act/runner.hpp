// Runner: carries out what the ladder orders, on a thread of its own, and writes it down.
//
//   see(View) -> Ladder -> orders -> runner's thread: proof -> intent on disk -> act -> result on disk -> Ladder
//
// Nothing is done unless its intent could be written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "act/audit.hpp"
#include "act/ladder.hpp"

namespace vramtrack::act {

struct RunnerOptions {
  Policies policies;
  ActConfig config;
  std::string audit_path;          ///< empty: nothing is kept, and so nothing is done but a dry run
  std::string off_file;            ///< while it exists nothing is done; empty: there is none
  std::string boot_id;             ///< of this start of the machine
  std::string own_user;            ///< whom this program runs as
  bool simulated = false;          ///< the processes are not real: always a dry run
  Tools tools;                     ///< `run` may be empty: programs are then run as act/run_program does
  std::function<Timestamp()> now;  ///< the time of day; from the runner's thread
  StepLimit limit;                 ///< empty: none beside those of `config`; called in see()
  /// Each line of the record, once it is written (or could not be). On the runner's thread.
  std::function<void(const AuditEntry& entry)> written;
  /// For tests of crashes: called on the runner's thread at "intent" (it is on disk), "performed" and "done".
  std::function<void(std::string_view point, const Order& order)> at_point;
};

/// What a surface shows.
struct ActsState {
  struct Standing {
    std::string id;
    std::string policy;
    Subject subject;
    std::string phase;  ///< "climbing", "standing", "returning", "ending"
    std::size_t step = 0;
    std::size_t steps = 0;
    std::string next;  ///< the next action; empty: none is left
    Timestamp began;
    bool dry_run = false;
    std::vector<std::string> held;  ///< actions that are to be undone
  };
  bool enabled = false;
  bool dry_run = true;
  bool off = false;
  std::string off_why;
  std::vector<std::string> policies;
  std::vector<Standing> climbs;
  std::vector<AuditEntry> acts;  ///< the last 256, the oldest first
  std::uint64_t revision = 0;    ///< changes with each change of the above
};

class Runner {
 public:
  static constexpr std::size_t kMostRecent = 256;

  /// Takes up what an earlier run left, and starts the thread. Errors: the audit cannot be read or written, or another
  /// program has it open. REQUIRES: `now`.
  static Result<std::unique_ptr<Runner>> open(RunnerOptions options);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  /// Ends programs that are under way. What is held stays held, and is taken up by the next run.
  ~Runner();

  /// Takes one View. On the sampling thread; never waits for a file, a program or an act. O(series).
  void see(const View& view);
  /// The same of what is seen of it.
  void see(const Observation& seen);

  /// Writes something down that is about no step: an event "say" of the climb `id`, which need not be one.
  void say(const std::string& id, const Subject& subject, const std::string& text, bool is_for_people = false);

  /// From now on these, as after a reload.
  void use(Policies policies, ActConfig config);
  /// Makes or removes the off file. Any thread. Errors: it cannot be written; then acting is off all the same, until
  /// this program ends.
  Status switch_off(bool off, const std::string& by);

  /// Any thread.
  [[nodiscard]] ActsState state() const;
  [[nodiscard]] std::uint64_t revision() const;
  /// Whether an act holds this process now: it is frozen, stopped or throttled, and will be let go. Any thread.
  [[nodiscard]] bool holds(std::uint32_t pid, std::uint64_t start_ticks) const;
  /// Whether every order that is out has been carried out and settled by the next see(). For tests and for the end:
  /// waits at most `at_most_s`.
  bool settle(double at_most_s);
  /// What a person should read in the log, each taken once. Any thread.
  std::vector<std::string> take_messages();

 private:
  struct Core;
  explicit Runner(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::act
