// Times and periods as typed by the user, for every command that takes them.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "core/result.hpp"
#include "core/time.hpp"
#include "core/time_range.hpp"

namespace vramtrack {
class Catalog;
struct TicksRead;
}  // namespace vramtrack

namespace vramtrack::cli {

/// Parses "2026-01-02T03:04[:05][Z|+02:00]", "14:30" (today), "today", "yesterday", "yesterday 14:30", "now", or a time
/// before `now`: "2h", "2 hours ago". Times without a zone are in `timezone` (empty: local). Errors name the option.
Result<Timestamp> parse_moment(const std::string& option, const std::string& text, const std::string& timezone,
                               Timestamp now);

/// A period as typed; its time zone may come from --timezone. Empty strings: not given.
struct PeriodArguments {
  std::string since;
  std::string until;
};

/// Declares --since and --until. The texts are for --help; empty: the usual ones.
void add_period(Arguments& arguments, PeriodArguments& into, std::string since_help = {}, std::string until_help = {});

/// A duration in --since counts back from `--until` if `from_end`, else from `now`.
Result<TimeRange> time_range(const PeriodArguments& period, const std::string& timezone, Timestamp now,
                             bool from_end = false);

/// For a recording without a sample in `asked`: its extent and the times that were asked for, ": it is from A to B, and
/// --since is C". Empty if nothing was read or no period was given.
std::string outside_period(const TicksRead& read, const TimeRange& asked, const Catalog& catalog);

}  // namespace vramtrack::cli
