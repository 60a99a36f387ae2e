// A process held by a pidfd: from the question on screen to the signal, it is the same process, whatever happens to its
// pid.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "core/series.hpp"

namespace vramtrack {

class HeldProcess {
 public:
  /// Opens the process with that pid and these start ticks. Errors: it has ended (reaped or not), its pid now
  /// belongs to another process, its start is unknown (so it cannot be identified), it is this program itself or
  /// init, or this kernel has no pidfd (before 5.3).
  static Result<HeldProcess> open(const std::string& proc_root, std::uint32_t pid, std::uint64_t start_ticks);
  HeldProcess(HeldProcess&& other) noexcept : fd_(other.fd_), info_(std::move(other.info_)) { other.fd_ = -1; }
  HeldProcess& operator=(HeldProcess&& other) noexcept;
  ~HeldProcess();

  /// As /proc shows it now, not as it was first seen.
  [[nodiscard]] const ProcessInfo& info() const { return info_; }
  /// Errors: it has ended meanwhile; not permitted, with what to do.
  [[nodiscard]] Status send(int signal) const;

 private:
  HeldProcess(int fd, ProcessInfo info) : fd_(fd), info_(std::move(info)) {}
  int fd_ = -1;
  ProcessInfo info_;
};

}  // namespace vramtrack
