// Every setting, with its default. Values come from the command line, then the environment
// (VRAMTRACK_SECTION_KEY), then the file, then here; src/core/config.def is the one table from
// which parsing, `config show`, `--set` and docs/CONFIG.md are made (see core/settings.hpp).
#pragma once

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
  double horizon_days = 7.0;                 ///< judge: growth that ends later than this is slow_growth, no alert
  double min_growth_mb = 64.0;               ///< judge: net growth below this is never an alert
  std::vector<std::string> ignore_patterns;  ///< regular expressions on process commands
};

struct SeverityConfig {
  double warning_hours = 24.0;
  double critical_hours = 1.0;
};

struct WatchConfig {
  double interval_seconds = 1.0;
  double status_every_seconds = 10.0;  ///< plain mode: how often the table is printed
  bool record = true;
};

struct StoreConfig {
  std::string path;  ///< empty: $XDG_STATE_HOME/vramtrack/vramtrack.db
  double raw_hours = 48.0;
  double minute_days = 30.0;
  double max_size_mb = 2048.0;
  double flush_seconds = 5.0;
};

struct SourcesConfig {
  std::vector<std::string> enabled;  ///< empty: every live source
  std::string nvml_library;          ///< empty: libnvidia-ml.so.1 by the loader's search
  std::string sys_root = "/sys";
  std::string proc_root = "/proc";
};

struct AgentConfig {
  std::string listen = "127.0.0.1:9474";  ///< empty: no TCP
  std::string socket;                     ///< empty: in the runtime folder; "none": no Unix socket
  std::string token_file;                 ///< empty: no token
  std::vector<std::string> allowed_hosts;
  std::int64_t max_streams = 64;
};

struct MetricsConfig {
  bool enabled = true;
  bool per_process = false;
  std::int64_t top_processes = 10;
};

/// What `report` reckons with.
struct CostConfig {
  double usd_per_gpu_hour = 0;          ///< 0: not known, then there are GPU-hours and no money
  double checkpoint_every_minutes = 0;  ///< 0: not known, then a job is taken to have none
};

/// Whom to tell of alerts; nobody unless one of webhook, slack and exec is set.
struct NotifyConfig {
  std::string webhook;             ///< URL that gets vramtrack.notification.v1
  std::string webhook_token_file;  ///< empty: no Authorization header
  std::string slack;               ///< URL of an incoming webhook in Slack's shape
  std::vector<std::string> exec;   ///< program and arguments; no shell
  std::string min_severity = "watch";
  bool resolved = true;
  std::int64_t max_per_hour = 30;
  double timeout_seconds = 10.0;
  double retry_seconds = 5.0;  ///< before the second attempt; then twice as long each time, 15 minutes at most
  double keep_hours = 24.0;
  std::string ca_file;  ///< empty: the system's certificates
};

struct Config {
  DetectionConfig detection;
  SeverityConfig severity;
  WatchConfig watch;
  StoreConfig store;
  SourcesConfig sources;
  AgentConfig agent;
  MetricsConfig metrics;
  CostConfig cost;
  NotifyConfig notify;
};

}  // namespace vramtrack
