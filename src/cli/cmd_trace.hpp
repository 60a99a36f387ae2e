// What the verbs of `vramtrack trace` have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/result.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/trace_report.hpp"

namespace vramtrack::cli {

constexpr int kTraceDone = 0;
constexpr int kTraceLeak = 1;  ///< exit code of `report`: a site leaks
constexpr int kTraceFailed = 2;
constexpr int kTraceSuspected = 3;  ///< exit code of `report`: no site leaks, but one began to grow late

/// Options that a verb does not declare keep their defaults.
struct TraceOptions {
  std::vector<std::string> files;
  std::string output;  ///< empty: standard output
  std::string format;
  bool host = false;  ///< pinned host memory
  std::uint32_t top = 10;
  std::string from, to;  ///< moments, as typed
  std::string suppressions;
  std::vector<std::string> libraries, own;  ///< path prefixes
};

/// A trace that has been read, with its names.
struct OpenTrace {
  trace::ProbeTrace trace;
  std::unique_ptr<trace::ProbeNames> names;
};

extern const CommandInfo trace_live_verb;
extern const CommandInfo trace_report_verb;
extern const CommandInfo trace_top_verb;
extern const CommandInfo trace_diff_verb;
extern const CommandInfo trace_flamegraph_verb;
extern const CommandInfo trace_page_verb;
extern const CommandInfo trace_export_verb;

/// Opens `files` as one run, with the moments that --since and --until name.
Result<std::unique_ptr<OpenTrace>> open_run(const std::vector<std::string>& files, const TraceOptions& options,
                                            trace::Symbols& symbols, trace::NativeNames* native,
                                            trace::ChangeVisit visit = {});
/// The same for interactive use: a Progress shows how much has been read.
Result<std::unique_ptr<OpenTrace>> open_run(Console& console, const std::vector<std::string>& files,
                                            const TraceOptions& options, trace::Symbols& symbols,
                                            trace::NativeNames* native, trace::ChangeVisit visit = {});
/// Resolves native frames in this build; null if the build cannot.
std::unique_ptr<trace::NativeNames> native_names();
/// Prints the error; returns kTraceFailed.
int trace_failed(Console& console, const Error& error);
/// Writes to --output or standard output, then returns `exit_code`.
int trace_written(Console& console, const TraceOptions& options, std::string_view text, int exit_code);

/// Prints the report of the traces in `options.files`. Returns the exit code, which depends on whether a site leaks.
int report_traces(const TraceOptions& options, Console& console);

/// Declares FILE ..., --host, --output, and the prefixes of the user's own code.
void add_trace_files(Arguments& arguments, TraceOptions& into);
void add_trace_moments(Arguments& arguments, TraceOptions& into);

/// Live bytes selected by --host, --since and --until, with a title.
struct NamedChange {
  trace::Profile profile;
  std::string title;
};
Result<NamedChange> chosen_profile(OpenTrace& run, const TraceOptions& options);

}  // namespace vramtrack::cli
