// Runner: carries out the ladder's orders, on its own thread, and records them.
//
//   see(View) -> Ladder -> orders -> runner's thread: proof -> intent on disk -> act -> result on disk -> Ladder
//
// Nothing is done unless its intent could be written first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "act/audit.hpp"
#include "act/ladder.hpp"

namespace vramtrack::act {

struct RunnerOptions {
  Policies policies;
  ActConfig config;
  std::string audit_path;          ///< empty: nothing is recorded, so only dry runs are possible
  std::string off_file;            ///< while this file exists, nothing is done; empty: there is no such file
  std::string boot_id;             ///< identifies this boot of the machine
  std::string own_user;            ///< the user that this program runs as
  bool simulated = false;          ///< the processes are not real: always a dry run
  Tools tools;                     ///< `run` may be empty: programs are then run by act/run_program
  std::function<Timestamp()> now;  ///< the time of day; from the runner's thread
  std::vector<Limit> limits;       ///< those of a fleet, in addition to those of `config`
  /// For crash tests. Called on the runner's thread at "begin" (it is not on disk yet), "intent" (it is), "performed"
  /// and "done"; and, without an order, at "written": after each line of the record, before people are notified.
  std::function<void(std::string_view point, const Order& order)> at_point;
};

/// The state that user interfaces show.
struct ActsState {
  struct Standing {
    std::string id;
    std::string policy;
    Subject subject;
    std::string phase;  ///< "climbing", "standing", "returning", "ending"
    std::size_t step = 0;
    std::size_t steps = 0;
    std::string next;  ///< the next action; empty: none left
    Timestamp began;
    bool dry_run = false;
    std::vector<std::string> held;  ///< actions in force that will be undone
  };
  bool enabled = false;
  bool dry_run = true;
  bool off = false;
  std::string off_why;
  std::vector<std::string> policies;
  std::vector<Standing> climbs;
  std::vector<AuditEntry> acts;  ///< the last 256, oldest first
  std::optional<Breaker> breaker;
  std::size_t nodes_acted_on = 0;                ///< within the breaker's window
  std::int64_t nodes_allowed = 0;                ///< 0: there is no such limit
  std::map<std::string, std::uint64_t> refused;  ///< claims that nothing confirmed, by reason
  std::uint64_t record_failures = 0;             ///< lines that could not be written
  std::uint64_t revision = 0;                    ///< increases with each change of the above
};

class Runner {
 public:
  static constexpr std::size_t kMostRecent = 256;

  /// Continues with the state that an earlier run left, and starts the thread. Errors: the audit cannot be read or
  /// written, or another program has it open. REQUIRES: `now`.
  static Result<std::unique_ptr<Runner>> open(RunnerOptions options);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  /// Ends running programs. Acts in force stay so, and the next run takes them over.
  ~Runner();

  /// Call it before this program ends. Waits for the act in progress (at most `at_most_s`), ends it, and undoes acts
  /// that keep processes from running or growing, so that no process waits for a program that no longer runs. Their
  /// step is due again in the next run. Acts that cannot be undone, and those on the node, are left to the next run:
  /// they are recorded and reported together with the command that undoes them. Nothing is done afterwards. On the
  /// sampling thread.
  void release(double at_most_s);

  /// Processes one View. On the sampling thread; never waits for a file, a program or an act. O(series).
  void see(const View& view);
  /// The same, with an observation of a View.
  void see(const Observation& seen);

  /// Accepts new claims and news of known ones: they are on the disk when it returns. Returns how many were new. Any
  /// thread. Errors: the record cannot be written, and then no claim was accepted.
  Result<std::size_t> take(const std::vector<Claim>& claims);
  /// The climbs of claims, including those that wait for evidence and those that have ended. Any thread.
  [[nodiscard]] std::vector<Climb> claims() const;
  /// A claim that has not ended; nullopt if there is none with that id. Any thread, also from within Tools::prove.
  [[nodiscard]] std::optional<Claim> claim(const std::string& id) const;
  /// Closes the breaker for a person, named in `by`. False: it was not open. Any thread. Errors: the record cannot be
  /// written; then the breaker stays open.
  Result<bool> close_breaker(const std::string& by);

  /// Replaces policies and configuration, for example after a reload.
  void use(Policies policies, ActConfig config);
  /// Creates or removes the off file. Any thread. Errors: the file cannot be written; then acting is off nevertheless,
  /// until this program ends.
  Status switch_off(bool off, const std::string& by);

  /// Any thread.
  [[nodiscard]] ActsState state() const;
  /// How often each outcome (AuditEntry::event) occurred in this run, by action and outcome. Any thread.
  [[nodiscard]] std::map<std::pair<std::string, std::string>, std::uint64_t> outcomes() const;
  [[nodiscard]] std::uint64_t revision() const;
  /// The processes on this machine that an act keeps from running or growing now, by pid and start ticks, in words:
  /// "pid 42 is frozen by policy P". Any thread.
  [[nodiscard]] std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> held() const;
  /// Waits until every pending order has been carried out, so that the next see() accepts its result; returns whether
  /// all were. For tests and for the end of the program: waits at most `at_most_s`.
  bool wait_for_orders(double at_most_s);
  /// Messages for the log, each returned once. Any thread.
  std::vector<std::string> take_messages();

 private:
  struct Core;
  explicit Runner(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::act
