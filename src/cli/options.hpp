// The command line, parsed. Only options.cpp knows the parsing library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"

namespace vramtrack::cli {

enum class Command : std::uint8_t {
  watch,
  agent,
  top,
  replay,
  analyze,
  report,
  simulate,
  snapshot,
  test,
  doctor,
  config_show,
  config_path,
  config_init
};

/// Of `snapshot` alone; files, json, output and capacity_bytes are those of the others.
struct SnapshotOptions {
  std::string verb;                       ///< summary, leaks, ...
  std::optional<std::uint32_t> device;    ///< none: all
  std::uint32_t top = 10;                 ///< sites to show
  std::vector<std::uint64_t> used_bytes;  ///< of the device at each snapshot
  bool at_peak = false;
  std::string format;  ///< of an export
};

/// What was asked for. Options that a command does not have keep their defaults.
struct Options {
  Command command = Command::watch;

  // every command
  std::optional<std::string> config_file;
  std::vector<std::string> assignments;  ///< of --set, in order

  // those that detect
  std::optional<std::string> detector;
  bool explain = false;
  bool json = false;

  // watch, top
  bool once = false;
  bool no_record = false;
  bool or_simulate = false;
  std::optional<double> interval_s;
  std::optional<double> duration_s;
  std::optional<double> every_s;
  std::vector<std::string> sources;

  // agent
  std::optional<std::string> listen;

  // top
  std::string theme;
  bool read_only = false;
  bool no_agent = false;

  // replay, analyze, top (--replay)
  std::vector<std::string> files;
  std::string from;  ///< as typed: its time zone may come from --timezone
  std::string to;
  std::string input_format;
  std::string timezone;
  std::optional<std::uint64_t> capacity_bytes;
  std::string start;  ///< as from
  std::optional<double> sample_interval_s;
  std::string unit;

  // replay, simulate, top, agent
  double speed = 0;  ///< 0: as fast as possible

  // simulate, top and agent (--scenario)
  std::string scenario;  ///< a built-in name or a file
  std::optional<std::uint64_t> seed;
  std::optional<double> within_s;
  bool list = false;
  std::string csv;
  std::string process_csv;
  bool notify = false;

  // report
  std::string report_format = "text";
  std::string output;             ///< empty: standard output
  std::vector<std::string> gpus;  ///< indices or ids
  std::optional<double> checkpoint_every_s;
  std::vector<std::string> last_checkpoints;  ///< TIME, or JOB=TIME

  SnapshotOptions snapshot;

  // test
  std::vector<std::string> program;  ///< and its arguments
  std::string limit = "0.2 MiB/iter";
  double error_rate = 1e-4;
  std::string mark;   ///< empty: the one made most often
  std::string junit;  ///< empty: none

  // config init
  bool force = false;
};

/// Either options to act on, or what to print and how to exit (--help, --version, a usage error).
struct Parsed {
  std::optional<Options> options;
  int exit_code = 0;
  std::string out;
  std::string error;  ///< without "vramtrack: "
};

/// Memory of a whole GPU: "24GiB". Errors: those of parse_bytes(), and less than 1 MiB (the unit was forgotten).
Result<std::uint64_t> parse_capacity(std::string_view text);

Parsed parse_options(int argc, const char* const* argv);

}  // namespace vramtrack::cli
