// The facts about a probed process that a run needs immediately, from its records: devices, framework totals,
// libraries. The reader of the trace extracts everything else.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "probe/wire.hpp"

namespace vramtrack::run {

struct ProbedDevice {
  std::string uuid;
  std::string name;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< as last reported by the framework
  std::uint64_t reserved_bytes = 0;
};

/// An allocation that was refused or failed.
struct MemoryOut {
  int device = 0;
  std::uint64_t asked_bytes = 0;
  bool by_limit = false;
};

/// One search of the probe for what keeps memory (src/probe/kept.hpp).
struct KeptLook {
  std::vector<std::string> keepers;  ///< untrusted
  std::string why;                   ///< why it is incomplete or was refused; empty: it is complete
};

/// Takes the records of one process, in order. Bounded memory: texts are kept complete only while they are short and
/// few, like those of devices and libraries.
class ProcessFacts {
 public:
  void take(std::span<const probe::Slot> records);

  /// Whether a call of a driver was recorded, which a limit requires.
  [[nodiscard]] bool has_driver_calls() const { return has_driver_calls_; }
  [[nodiscard]] const std::map<int, ProbedDevice>& devices() const { return devices_; }
  /// Paths of libraries loaded since the last call.
  std::vector<std::string> new_modules();
  /// The failures since the last call, at most the first 16.
  std::vector<MemoryOut> memory_outs();
  /// The number of searches finished so far, and the newest of them.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] const KeptLook& newest_look() const { return newest_look_; }

 private:
  void add_text(const probe::Slot& piece);
  [[nodiscard]] std::string text(std::uint64_t number) const;
  void take(const probe::Slot& slot);
  void take_kept(const probe::Slot& slot);

  std::map<std::uint32_t, std::string> texts_;
  std::map<int, ProbedDevice> devices_;
  std::vector<std::string> modules_;
  std::vector<MemoryOut> outs_;
  bool has_driver_calls_ = false;
  KeptLook open_look_, newest_look_;
  std::uint64_t looks_ = 0;
};

}  // namespace vramtrack::run
