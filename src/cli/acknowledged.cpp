#include "cli/acknowledged.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace vramtrack::cli {

std::vector<AcknowledgedAlert> AcknowledgedFile::read() const {
  std::vector<AcknowledgedAlert> out;
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::int64_t raised_ns = 0;
    std::string metric;
    AcknowledgedAlert alert;
    if (!(fields >> raised_ns >> metric >> alert.key.pid >> alert.key.pid_start_ticks)) continue;
    const auto known = parse_metric(metric);
    // The device's name is the rest of the line: it may hold anything but a line's end.
    if (!known || !std::getline(fields >> std::ws, alert.key.device_id)) continue;
    alert.key.metric = *known;
    alert.raised = Timestamp{std::chrono::nanoseconds{raised_ns}};
    out.push_back(std::move(alert));
  }
  return out;
}

Status AcknowledgedFile::append(const AcknowledgedAlert& alert) const {
  const std::string line =
      fmt::format("{} {} {} {} {}\n", alert.raised.time_since_epoch().count(), to_string(alert.key.metric),
                  alert.key.pid, alert.key.pid_start_ticks, alert.key.device_id);
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  // One write of a short line to a file opened for appending is not torn by another program's.
  const bool written = fd >= 0 && ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int cause = errno;
  if (fd >= 0) ::close(fd);
  if (!written)
    return fail(fmt::format("cannot keep the acknowledgement in {}: {}; it holds until this program ends", path_,
                            std::strerror(cause)));
  return {};
}

}  // namespace vramtrack::cli
