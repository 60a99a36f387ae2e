// Waiting: until memory of GPUs is free, or processes have let go of it. Conditions on ledgers; no I/O, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "live/ledger.hpp"

namespace vramtrack {

/// What is waited for. All of the conditions that are given must hold at once.
struct WaitFor {
  std::vector<std::string> gpus;            ///< indices or UUIDs; empty: all GPUs
  std::optional<std::uint64_t> free_bytes;  ///< this much is free on each of the GPUs
  bool is_empty = false;                    ///< no process holds memory of the GPUs, or none of those named below
  bool is_gone = false;                     ///< the processes of `pids` have ended, and the driver does not list them
  std::vector<std::uint32_t> pids;
  std::vector<std::string> users;
  std::vector<std::string> containers;  ///< ids, or how they begin; also the pod's UID
  /// Whether only some processes are meant by is_empty.
  [[nodiscard]] bool names_processes() const { return !pids.empty() || !users.empty() || !containers.empty(); }
};

/// One process on one of the GPUs that are waited for.
struct WaitHolder {
  Holder holder;
  DeviceInfo device;                   ///< its id is empty: it holds no GPU's memory, but has not ended
  std::optional<std::uint64_t> bytes;  ///< empty: the driver does not report it, or does not list the process
  bool is_in_the_way = false;          ///< what is waited for is about it
};

/// One GPU that is waited for.
struct WaitDevice {
  DeviceInfo device;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> free_bytes;  ///< empty: capacity or use are not known
  std::uint64_t unattributed_bytes = 0;     ///< in use, and held by no process that the driver lists
};

/// The state of a wait at one look.
struct WaitLook {
  std::vector<std::string> unmet;   ///< "GPU 0: 3.1 GiB are free, not 20.0 GiB"; empty: the wait is over
  std::vector<WaitDevice> devices;  ///< in the order of the ledger
  std::vector<WaitHolder> holders;  ///< the largest first
  [[nodiscard]] bool is_met() const { return unmet.empty(); }
};

/// The start of the process that lives under `pid` now, in ticks; nullopt: none does.
using StartOf = std::function<std::optional<std::uint64_t>(std::uint32_t pid)>;

/// Compares ledgers, one after the other, with what is waited for. The first look decides which processes the pids
/// mean: a later process of the same pid with another start time is another one.
class Waiting {
 public:
  Waiting(WaitFor what, StartOf start_of);

  /// An Error: it can never be met (no such GPU, more than the GPU has, memory in use that the driver does not
  /// report). Only the first look has one: a GPU that does not answer later may return.
  Result<WaitLook> look(const Ledger& ledger);

 private:
  [[nodiscard]] bool is_meant(const DeviceLedger& one) const;
  [[nodiscard]] bool is_meant(const Holder& holder) const;
  [[nodiscard]] bool is_same(const Holder& holder) const;
  [[nodiscard]] Status check(const std::vector<const DeviceLedger*>& devices) const;
  void remember_starts(const Ledger& ledger);
  void add_device(const DeviceLedger& one, WaitLook& out) const;
  void add_alive(const Ledger& ledger, WaitLook& out) const;

  WaitFor what_;
  StartOf start_of_;
  bool is_first_ = true;
  /// For each pid: the start of the process that is meant; 0: only the driver shows it; absent: there was none.
  std::map<std::uint32_t, std::uint64_t> starts_;
};

/// "GPU 0", "MIG instance 3"; "no GPU" without an id.
std::string device_words(const DeviceInfo& device);
/// What is waited for, for people, behind "waiting for": "20.0 GiB free on GPU 0", "pid 4242 to end".
std::string wait_words(const WaitFor& what);
/// The state for people: what is not met, and who holds what and whether that is alive; one line each, printable.
std::string wait_text(const WaitLook& look);
/// The same as one line of JSON, schema "vramtrack.wait.v1" (docs/wait.md). `state`: "waiting", "met", "timeout".
std::string wait_json(const WaitLook& look, std::string_view state, double waited_s);
/// What does not change while nothing happens: who holds memory, in which state, and roughly how much.
std::string wait_signature(const WaitLook& look);

}  // namespace vramtrack
