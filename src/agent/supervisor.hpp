// What the agent reports to systemd: its state through the notify protocol, and its log with priorities.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::agent {

/// Sends `state` ("READY=1") to $NOTIFY_SOCKET with the sd_notify protocol of systemd.service(5). Never fails: without
/// a supervisor, that is, if the variable is not set, it does nothing.
void notify_supervisor(std::string_view state);

/// The longest time in seconds that the supervisor allows between two WATCHDOG=1; 0: no watchdog.
double watchdog_seconds();

/// Returns "RELOADING=1" with the time that systemd requires beside it.
std::string reloading_state();

/// The levels of syslog; journald reads them as "<4>" before a line.
enum class Level : int { error = 3, warning = 4, notice = 5, info = 6 };

/// Writes each line of `text` to standard error: with its priority if journald reads it, else with "vramtrack: ".
void log(Level level, std::string_view text);

}  // namespace vramtrack::agent
