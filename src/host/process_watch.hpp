// ProcessWatch: turns a driver's lists of (device, pid, bytes), poll by poll, into samples of stable series,
// identities in the Catalog, and process_ended events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "host/process.hpp"

namespace vramtrack {

/// What the kernel does not show about the listed processes, as of the last poll.
struct Unseen {
  std::size_t unresolved = 0;     ///< listed by the driver, but not in /proc
  std::size_t maps_denied = 0;    ///< libraries not readable, so the framework may be unknown
  std::size_t without_bytes = 0;  ///< listed without an amount of memory
  friend bool operator==(const Unseen&, const Unseen&) = default;
};

/// One per live source. Not thread-safe; used from the one writer thread.
///
///     begin(now);  for each device: listed(...) per process, or unanswered(device);  end(batch);
///
/// Cost in a steady poll: one read of /proc/PID/stat per process and no allocation. A process seen first costs its
/// identity (process.hpp) and one read of its maps; the maps are read again 10 s, 1 min and 5 min later, for
/// libraries load late and a server's title is set late.
class ProcessWatch {
 public:
  /// `catalog` must outlive the watch.
  ProcessWatch(std::string proc_root, Catalog& catalog);

  /// A number for the device, for the calls below. The same id gets the same number.
  std::size_t device(const std::string& device_id);

  void begin(Timestamp now);
  /// `pid` holds `bytes` of `device`; nullopt: it holds memory there, but how much could not be read. At most once
  /// per poll for each device and pid. `kind` as in ProcessInfo, `gpu_ratio` as in ProcessLoad.
  void listed(std::size_t device, std::uint32_t pid, std::optional<std::uint64_t> bytes, std::string_view kind,
              std::optional<double> gpu_ratio = std::nullopt);
  /// The device's list could not be read in this poll: nothing is concluded from a process's absence on it.
  void unanswered(std::size_t device);
  /// Appends the poll's samples, by pid and then device, and its events, by pid and then start ticks: the same lists
  /// give the same batch, in whatever order the driver lists them.
  ///  * A listed process gives a sample when its bytes are known, and its load.
  ///  * One that is no longer listed on an answering device, but lives, has released the memory: one sample
  ///    of 0 bytes, then none until it is listed again.
  ///  * One that is no longer listed and no longer lives: process_ended for all devices. If /proc does not
  ///    show it, absence from the list must suffice. A series that never had a sample is retired with it, because
  ///    nobody else knows it.
  void end(Batch& out);

  [[nodiscard]] const Unseen& unseen() const { return unseen_; }
  /// Whether `pid` is visible in /proc now; to distinguish a sane list of pids from a misread one.
  [[nodiscard]] bool visible(std::uint32_t pid);

 private:
  struct Holding {
    std::size_t device = 0;
    SeriesId series{};
    std::uint64_t listed_in_poll = 0;
    std::optional<std::uint64_t> bytes;
    std::optional<double> gpu_ratio;
    bool sampled = false;
    bool open = true;  ///< the last event was not a release
  };
  struct Entry {
    ProcessInfo info;
    std::vector<Holding> holdings;  ///< by device
    std::uint64_t checked_in_poll = 0;
    std::uint64_t listed_in_poll = 0;
    std::optional<double> cpu_ratio;
    std::optional<std::uint64_t> host_bytes;
    double cpu_s = 0;  ///< as of `cpu_read`
    Timestamp cpu_read = Timestamp::min();
    int maps_reads = 0;
    Timestamp next_maps_read;
    bool maps_denied = false;
  };

  void check_identity(std::uint32_t pid, Entry& entry);
  void note_load(Entry& entry, const Alive& alive) const;
  void identify(std::uint32_t pid, Entry& entry);
  void read_framework(Entry& entry);
  Holding& holding(Entry& entry, std::size_t device);
  /// A process has ended: forgets those of its series that never had a sample.
  void retire_unsampled(const Entry& entry);
  /// Completes an entry at the end of a poll; true if it is over and can be forgotten.
  bool close_entry(std::uint32_t pid, Entry& entry, Batch& out);

  std::string proc_root_;
  Catalog& catalog_;
  std::vector<std::string> device_ids_;
  std::vector<std::uint64_t> unanswered_in_poll_;
  std::map<std::uint32_t, Entry> entries_;  ///< by pid, so that the output of end() has one order
  std::vector<Event> pending_events_;       ///< of pids found to be reused while listed
  Timestamp now_;
  std::uint64_t poll_ = 0;
  Unseen unseen_;
  std::set<std::string> withholding_;  ///< of this poll: see Catalog
  std::string path_;                   ///< scratch
};

/// The warnings to issue for `unseen`, each with what to do; empty if all is seen. `unprivileged` states
/// whether running as root could help.
std::vector<std::string> unseen_warnings(const Unseen& unseen, bool unprivileged);

}  // namespace vramtrack
