// Runs a program under the probe: starts it, records it into a trace file, watches it, and waits for its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/result.hpp"
#include "host/child_program.hpp"
#include "live/pipeline.hpp"
#include "run/collector.hpp"
#include "run/escapes.hpp"
#include "run/run_lifetimes.hpp"
#include "trace/probe_names.hpp"

namespace vramtrack::run {

struct RunSettings {
  std::vector<std::string> program;  ///< the program and its arguments
  std::string output;                ///< the trace file; %p: this process's pid
  std::string probe_folder;          ///< location of the probe's library; empty: next to the binary
  Limits limits;
  bool exact = false;  ///< frameworks allocate each tensor from the driver
  bool kept = true;    ///< the probe searches for what keeps memory, within a Python program
};

struct RunOutcome {
  ProgramEnd end;
  std::string trace;          ///< the file that was written; empty: no process used a GPU API that the probe sees
  std::size_t processes = 0;  ///< number of processes that had a ring
  std::uint64_t records = 0;
  std::vector<std::uint32_t> left_behind;     ///< processes that outlive the program; they are recorded until its end
  std::uint64_t limit_bytes = 0;              ///< the limit in force at the end; 0: none
  bool has_driver_calls = false;              ///< whether any process called a GPU driver in a way that the probe sees
  std::vector<UnrecordedProcess> unrecorded;  ///< processes that could not create a ring
  std::vector<EscapedProcess> escaped;        ///< processes that use a driver without the probe
  bool is_incomplete = false;                 ///< the recording failed during the run, and the listener was warned
};

/// Called while the program runs, on the caller's thread.
struct RunListener {
  Warn warn;  ///< receives exceeded limits, out-of-memory and read errors, for messages
  /// Called for an alert of a series, with its View; empty if alerts are not needed.
  std::function<void(const AlertNotice& change)> alert;
  /// With alerts: provides names of native frames for the judge; may be empty, or return null.
  std::function<std::unique_ptr<trace::NativeNames>()> native_names;
  /// With alerts: called for lines that began to rise recently; may be empty.
  std::function<void(const LateRise& rise)> late_rise;
  /// Called every second, once there is a trace file that may be read.
  std::function<void(const std::string& trace)> second;
  /// The sites so far, one line of JSON, for requests through the control socket; empty: none yet.
  std::function<std::string()> report;
};

/// Runs the program to its end. Forwards signals to it (see signals.hpp); it uses this process's standard streams. An
/// Error if it was not started.
Result<RunOutcome> run_program(const RunSettings& settings, const Config& config, const RunListener& listener);

}  // namespace vramtrack::run
