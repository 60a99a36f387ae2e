// Every setting, with its default. Values come from the command line, then the environment
// (VRAMTRACK_SECTION_KEY), then the file, then the defaults here. Parsing, `config show`, `--set` and docs/CONFIG.md
// are all made from one table, src/core/config.def (see core/settings.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// Thresholds of the detectors; units are in the names of the file's keys (config.def), MB = 2^20 bytes.
struct DetectionConfig {
  std::string detector = "judge";
  double min_r_squared = 0.7;
  double min_slope_mb_per_sec = 1.0;
  double confidence_threshold = 0.75;
  std::int64_t minimum_samples = 20;
  double minimum_duration_minutes = 5.0;
  double analysis_window_hours = 1.0;
  double spike_percent = 20.0;
  double spike_window_seconds = 30.0;
  double leak_prior = 0.1;                   ///< judge: share of growing series that leak, before any evidence
  double horizon_days = 7.0;                 ///< judge: growth that fills memory later is slow_growth, not an alert
  double lead_time_minutes = 60.0;           ///< the time people need before the end: when a leak raises an alert
  double min_growth_mb = 64.0;               ///< judge: net growth below this is never an alert
  std::vector<std::string> ignore_patterns;  ///< regular expressions on process commands
};

/// Alerts that are raised only on request.
struct AlertConfig {
  bool headroom = false;  ///< alert when a process's known need does not fit
};

struct SeverityConfig {
  double warning_hours = 24.0;
  double critical_hours = 1.0;
};

/// When a process that holds memory counts as making no progress.
struct StallConfig {
  double minutes = 30.0;         ///< 0: do not look for stalls
  double min_memory_mb = 256.0;  ///< MB = 2^20 bytes

  [[nodiscard]] double min_memory_bytes() const { return min_memory_mb * (1 << 20); }
  /// Time between two looks at a process: short enough to see rest and work alternate, long enough to cost very little.
  [[nodiscard]] double look_s() const { return std::min(30.0, minutes * 60 / 20); }
};

struct WatchConfig {
  double interval_seconds = 1.0;
  double status_every_seconds = 10.0;  ///< plain mode: how often the table is printed
  bool record = true;
  bool experience = true;  ///< compare programs with their earlier runs; only in a watch that records
};

/// What watch and agent see of the allocations of running programs.
struct TelemetryConfig {
  bool enabled = false;
};

struct StoreConfig {
  std::string path;   ///< empty: $XDG_STATE_HOME/vramtrack/vramtrack.db
  std::string group;  ///< the group that may read it; empty: only its owner
  double raw_hours = 48.0;
  double minute_days = 30.0;
  double max_size_mb = 2048.0;
  double flush_seconds = 5.0;
};

struct SourcesConfig {
  std::vector<std::string> enabled;  ///< empty: every live source
  std::string nvml_library;          ///< empty: the libnvidia-ml.so.1 that the loader finds
  std::string sys_root = "/sys";
  std::string proc_root = "/proc";
};

struct AgentConfig {
  std::string listen = "127.0.0.1:9474";  ///< empty: no TCP
  std::string socket;                     ///< empty: in the runtime folder; "none": no Unix socket
  std::string token_file;                 ///< empty: no token
  std::vector<std::string> allowed_hosts;
  std::int64_t max_streams = 64;
  std::string tls_certificate;  ///< PEM, with its chain; empty: plain HTTP
  std::string tls_key;          ///< PEM
};

struct MetricsConfig {
  bool enabled = true;
  bool per_process = false;
  std::int64_t top_processes = 10;
};

/// The figures that `report` calculates with.
struct CostConfig {
  double usd_per_gpu_hour = 0;          ///< 0: unknown; the report then has GPU-hours but no money
  double checkpoint_every_minutes = 0;  ///< 0: unknown; a job is then assumed to have none
};

/// Who is notified of alerts; nobody unless webhook, slack or exec is set.
struct NotifyConfig {
  std::string webhook;             ///< URL that receives vramtrack.notification.v1
  std::string webhook_token_file;  ///< empty: no Authorization header
  std::string slack;               ///< URL of an incoming webhook in Slack's format
  std::vector<std::string> exec;   ///< program and arguments; no shell
  std::string min_severity = "watch";
  bool resolved = true;
  std::int64_t max_per_hour = 30;
  double timeout_seconds = 10.0;
  double retry_seconds = 5.0;  ///< before the second attempt; doubles each time, up to 15 minutes
  double keep_hours = 24.0;
  std::string ca_file;                         ///< empty: the system's certificates
  std::vector<std::string> silenced_gpus;      ///< indices or ids; nobody is notified of their alerts
  std::vector<std::string> silenced_commands;  ///< regular expressions; likewise
};

/// What may be done about a leak beyond reporting it. Nothing is done unless a policy names it (act/policy.hpp).
struct ActConfig {
  bool enabled = false;
  bool dry_run = true;  ///< write down what would be done, but do nothing
  std::int64_t max_acts_per_hour = 10;
  std::int64_t max_retries = 3;  ///< per workload per day
  std::string off_file;          ///< empty: beside the store
  std::vector<std::string> deny_users;
  std::vector<std::string> deny_commands;  ///< regular expressions on process commands
  double timeout_seconds = 60.0;           ///< for a program that a step runs
};

/// The settings of `vramtrack actuate` besides the policies: where alerts come from, which agents verify them, and
/// how much may be done to a fleet.
struct ActuateConfig {
  std::string listen = "127.0.0.1:9836";
  std::string agents = "http://{instance}";  ///< a template, filled from an alert's labels
  std::vector<std::string> agent_hosts;      ///< which hosts are agents: actuate/agent_hosts.hpp
  std::string node = "{Hostname}";           ///< a template as well
  std::string state;                         ///< a folder; empty: in the user's state folder
  std::string token_file;                    ///< for clients that post alerts; empty: none
  std::string agent_token_file;              ///< for the agents; empty: none
  std::string agent_ca_file;                 ///< empty: the system's certificates
  double poll_seconds = 5.0;
  std::int64_t breaker_nodes = 3;
  double breaker_share = 0;  ///< share of fleet_nodes; 0: not used
  std::int64_t fleet_nodes = 0;
  double breaker_window_minutes = 60.0;
  std::int64_t max_acts_per_node_per_hour = 6;
};

/// The text of the file that has [[policy]] tables; act/policy.hpp reads them. Empty: no file has any.
struct PolicyFile {
  std::string name;
  std::string toml;
};

struct Config {
  // Out of line; otherwise each file that has one would generate them.
  Config();
  Config(const Config&);
  Config& operator=(const Config&);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  DetectionConfig detection;
  AlertConfig alert;
  SeverityConfig severity;
  StallConfig stall;
  WatchConfig watch;
  TelemetryConfig telemetry;
  StoreConfig store;
  SourcesConfig sources;
  AgentConfig agent;
  MetricsConfig metrics;
  CostConfig cost;
  NotifyConfig notify;
  ActConfig act;
  ActuateConfig actuate;
  PolicyFile policies;
};

}  // namespace vramtrack
