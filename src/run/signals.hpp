// How a launcher handles signals while its program runs.
#pragma once

#include <sys/types.h>

namespace vramtrack::run {

/// During its lifetime, signals sent with kill are forwarded to the program, which gets what its launcher gets; signals
/// from a terminal (Ctrl-C) reach the program directly. None of them ends this process. SIGRTMIN requests a mark. A
/// file at its size limit causes a write error, not SIGXFSZ. Ignored signals stay ignored. A signal ends a poll(). At
/// most one object at a time.
class LauncherSignals {
 public:
  LauncherSignals();
  ~LauncherSignals();
  LauncherSignals(const LauncherSignals&) = delete;
  LauncherSignals& operator=(const LauncherSignals&) = delete;

  /// Sends `program` the signals received since the last call.
  static void pass_on(pid_t program);
  /// The number of marks requested since the last call.
  static int marks();
};

}  // namespace vramtrack::run
