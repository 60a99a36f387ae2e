// ProcessProgress: what the kernel reports about the progress of a process, and what kind of program it is.
// Facts only: engine/stalls draws the conclusions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// The kind of a process, as far as it affects whether it may rest. All but `worker` rest by nature.
enum class ProcessNature : std::uint8_t {
  worker,          ///< nothing else is known: a program that should work until it ends
  notebook,        ///< a Jupyter kernel: rests while nobody runs a cell
  model_server,    ///< vLLM, Triton, TGI, an Ollama runner, ...: rests while it gets no requests
  display,         ///< draws on a screen
  driver_service,  ///< MPS, persistence, monitoring
  prompt,          ///< waits for a person to type
};

/// Sockets that others can connect to.
struct ListeningSockets {
  std::vector<std::uint16_t> ports;  ///< TCP ports of services, in order, each once
  std::uint32_t local = 0;           ///< Unix sockets
  std::uint32_t clients = 0;         ///< open connections to `ports`
  std::uint32_t waiting = 0;         ///< connections that nobody has accepted, or whose data nobody has read
  friend bool operator==(const ListeningSockets&, const ListeningSockets&) = default;
};

/// One reading. Counters start with the process. A value that cannot be read is nullopt: unknown, never zero.
struct ProcessProgress {
  char state = '?';                                ///< of its main thread: 'R', 'S', 'D', 'T', 't', 'Z'
  double cpu_s = 0;                                ///< of all its threads together
  std::optional<std::uint64_t> io_bytes;           ///< read and written by system calls; sockets mostly not counted
  std::optional<std::uint64_t> read_bytes;         ///< from files since it began, by calls or mapped
  std::optional<std::uint64_t> switches;           ///< how often its main thread went to sleep
  std::uint32_t children = 0;                      ///< living children and their descendants
  double children_cpu_s = 0;                       ///< of these, and of children that it has waited for
  std::optional<std::uint64_t> children_io_bytes;  ///< of these
  std::uint32_t parent_pid = 0;
  std::optional<double> parent_cpu_s;  ///< if the parent belongs to the same job: one process group
  bool orphaned = false;               ///< the process that started it has ended
  bool helper = false;                 ///< a worker of Python's multiprocessing: it works only for its parent
  bool foreground = false;             ///< of a terminal
  bool frozen = false;                 ///< by the freezer of its cgroup
  bool held_by_policy = false;         ///< a policy of vramtrack froze, stopped or throttled it
  std::uint32_t tracer_pid = 0;        ///< the debugger attached to it; 0: none
  ProcessNature nature = ProcessNature::worker;
  std::string what;                           ///< in words: "Jupyter kernel", "vLLM server"; empty: an ordinary program
  std::string waits_in;                       ///< the kernel function in which it sleeps: "futex_wait_queue"
  std::optional<ListeningSockets> listening;  ///< its own, and those of the servers it works for; read while it rests
};

/// The progress of one process, which ProcessKey identifies.
struct ProgressReading {
  Timestamp time;
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  std::string host;  ///< as in SeriesKey::host
  ProcessProgress progress;
};

}  // namespace vramtrack
