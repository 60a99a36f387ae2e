// Escapes: finds processes of a run that use a GPU's driver without the probe. They are neither recorded nor limited.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vramtrack::run {

struct EscapedProcess {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string command;  ///< untrusted
  std::string library;  ///< the file name of the driver's library: "libcuda.so.1"
};

/// Follows a program and its descendants by polling: it misses a process that lives for less than the polling interval,
/// one with parents that all ended between two polls, and one with mappings that this user may not read. A process is
/// one image: it is examined again after exec. Not thread-safe.
class Escapes {
 public:
  /// `proc_root` is "/proc" except in tests.
  explicit Escapes(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  void follow(std::uint32_t pid) { known_.try_emplace(pid); }
  /// Examines all current processes; returns those found to have escaped since the last call. Cost: some 20 us per
  /// process, 10 us per thread, and 100 us per process without the probe (so far).
  std::vector<EscapedProcess> look();
  /// The same, but only for processes without the probe (so far), and without looking for children.
  std::vector<EscapedProcess> look_at_doubtful();
  /// Whether one of these is young. It may load a driver and end at any moment, so examine it every millisecond.
  [[nodiscard]] bool has_young() const;
  /// All escaped processes so far.
  [[nodiscard]] const std::vector<EscapedProcess>& all() const { return all_; }

 private:
  struct Image {
    std::uint64_t start_ticks = 0;
    std::string auxiliary;  ///< from /proc/PID/auxv: addresses that each exec randomises
    std::uint32_t looks = 0;
    bool is_classified = false;  ///< it has the probe or has escaped
  };
  std::vector<EscapedProcess> look_at(std::vector<std::uint32_t> open, bool with_children);
  void add_children(std::uint32_t pid, std::vector<std::uint32_t>& open);

  std::string proc_root_;
  std::map<std::uint32_t, Image> known_;  ///< by pid: those present at the last poll
  std::vector<EscapedProcess> all_;
};

}  // namespace vramtrack::run
