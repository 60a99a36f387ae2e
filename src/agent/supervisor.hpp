// What the agent says to systemd: its state by the notify protocol, its log by priorities.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::agent {

/// Sends `state` ("READY=1") to $NOTIFY_SOCKET, the sd_notify protocol of systemd.service(5); nothing where it is not
/// set. Never fails: without a supervisor it does nothing.
void notify_supervisor(std::string_view state);

/// Seconds between two WATCHDOG=1 that the supervisor wants at most; 0: none.
double watchdog_seconds();

/// "RELOADING=1" with the time that systemd wants beside it.
std::string reloading_state();

/// As syslog's; journald reads them as "<4>" before a line.
enum class Level : int { error = 3, warning = 4, notice = 5, info = 6 };

/// Writes each line of `text` to standard error: for journald with its priority, else with "vramtrack: ".
void log(Level level, std::string_view text);

}  // namespace vramtrack::agent
