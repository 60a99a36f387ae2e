// What a launcher does with signals while its program runs.
#pragma once

#include <sys/types.h>

namespace vramtrack::run {

/// While one lives, signals that were sent with kill are kept for the program, which gets what its launcher gets; what
/// a terminal sends (Ctrl-C) reaches the program by itself. None of them ends this process. SIGRTMIN asks for a mark.
/// A file at its size limit is an error of the write, not SIGXFSZ. Signals that were ignored stay ignored. A signal
/// ends a poll(). At most one at a time.
class LauncherSignals {
 public:
  LauncherSignals();
  ~LauncherSignals();
  LauncherSignals(const LauncherSignals&) = delete;
  LauncherSignals& operator=(const LauncherSignals&) = delete;

  /// Sends `program` what came for it since the last call.
  static void pass_on(pid_t program);
  /// How often a mark was asked for since the last call.
  static int marks();
};

}  // namespace vramtrack::run
