// A program that runs under the probe: started, recorded into a trace file, watched, and brought to its end.
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
  std::vector<std::string> program;  ///< and its arguments
  std::string output;                ///< the trace file; %p: this process's pid
  std::string probe_folder;          ///< where the probe's library is; empty: beside the binary
  Limits limits;
  bool exact = false;  ///< frameworks allocate each tensor at the driver
  bool kept = true;    ///< the probe looks what keeps memory, within a Python program
};

struct RunOutcome {
  ProgramEnd end;
  std::string trace;          ///< the file that was written; empty: no process used a GPU API that the probe sees
  std::size_t processes = 0;  ///< that made a ring
  std::uint64_t records = 0;
  std::vector<std::uint32_t> left_behind;     ///< processes that outlive the program: recorded until its end
  std::uint64_t limit_bytes = 0;              ///< that was in force at the end; 0: none
  bool has_driver_calls = false;              ///< some process called a GPU driver where the probe sees it
  std::vector<UnrecordedProcess> unrecorded;  ///< that could make no ring
  std::vector<EscapedProcess> escaped;        ///< that use a driver without the probe
  bool is_incomplete = false;                 ///< the recording failed on the way, and the listener was warned
};

/// Told while the program runs, on the caller's thread.
struct RunListener {
  Warn warn;  ///< limits that were passed, memory that ran out, what could not be read; for people
  /// An alert of a series, with its View; empty: nobody listens.
  std::function<void(const AlertTold& told)> alert;
  /// With alerts: names native frames for what the judge is told of lines; may be empty, or return null.
  std::function<std::unique_ptr<trace::NativeNames>()> native_names;
  /// With alerts: lines that have begun to rise a short while ago; may be empty.
  std::function<void(const LateRise& rise)> late_rise;
  /// After each second, once there is a trace file: what is in it so far may be read.
  std::function<void(const std::string& trace)> second;
  /// The sites so far, one line of JSON, for who asks through the control socket; empty: none yet.
  std::function<std::string()> report;
};

/// Runs the program to its end. Signals go to it (see signals.hpp); its standard streams are this process's. An Error:
/// it was not started.
Result<RunOutcome> run_program(const RunSettings& settings, const Config& config, const RunListener& listener);

}  // namespace vramtrack::run
