// Subjects, Views and policies for the tests of containment.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "act/ladder.hpp"
#include "act/policy.hpp"

namespace vramtrack::act {

inline Timestamp at(double seconds) {
  return Timestamp{} + std::chrono::hours(24 * 365) + from_seconds(seconds);
}

inline Subject leaking(std::uint32_t pid = 4242) {
  Subject s;
  s.process = {pid, 1000 + pid, {}};
  s.user = "alice";
  s.command = "python train.py";
  s.device_id = "GPU-1";
  s.device_index = 0;
  s.device_name = "NVIDIA H200";
  s.severity = Severity::warning;
  s.pattern = Pattern::gradual_leak;
  s.confidence = 0.97;
  s.growth_bytes_per_s = {1e6, 2e6, 3e6};
  s.ends_in_s = Interval{1000, 1200, 1500};
  s.used_bytes = 8'000'000'000;
  s.held_s = 90;
  s.because = "slope > 0 at p=0.0004";
  return s;
}

/// The subjects, their living processes, and a device that holds them and another 1 GB.
inline Observation seen(double time_s, std::vector<Subject> subjects) {
  Observation o;
  o.time = at(time_s);
  double held = 0;
  for (const Subject& s : subjects)
    if (s.process.pid != 0) {
      o.processes.push_back({s.process, false, s.used_bytes});
      held += static_cast<double>(s.used_bytes);
    }
  o.devices.push_back({{"GPU-1", {}}, 1e9 + held, held});
  o.subjects = std::move(subjects);
  return o;
}

inline Policies policies_of(const std::string& toml) {
  auto parsed = parse_policies(toml, "p.toml");
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : Policies{};
}

inline ActConfig acting() {
  ActConfig config;
  config.enabled = true;
  config.dry_run = false;
  return config;
}

}  // namespace vramtrack::act
