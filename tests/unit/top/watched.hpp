// A Model of a machine that was simulated and watched by the real engine, for screens that no hand-made view can show
// truthfully: the information after ninety seconds, or after a crash.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../manual_clock.hpp"
#include "source/sim/sim.hpp"
#include "top/feed.hpp"
#include "views.hpp"

namespace vramtrack::top {

/// Watches the scenario `toml` from its first second for `seconds`; the last sample comes at test_now().
inline Model watched(std::string_view toml, double seconds) {
  auto scenario = sim::parse_scenario(toml, "machine");
  EXPECT_TRUE(scenario);
  const auto time = std::make_shared<ManualTime>();
  time->wall = ago(seconds);
  scenario->start = time->wall;
  Config config;
  config.watch.record = false;
  config.store.path = "/proc/no/store.db";
  config.watch.interval_seconds = scenario->period_s;
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  input.sources.push_back({.name = "nvml", .source = sim::make_simulation(*scenario, *input.catalog)});
  const TopSource source = live_source(config, std::move(input), manual_clock(time));
  bool changed = false;
  while (time->wall <= test_now()) time->pass(source.step(time->steady, changed) - time->steady);
  Model model;
  source.describe(model);
  model.view = source.view();
  model.feed = source.feed;
  return model;
}

/// Eight GPUs with servers and training jobs that start at once.
inline constexpr std::string_view kEightJobsStart = R"(
name = "eight_jobs_start"
seed = 5
period_s = 1
duration_s = "1h"
jitter = 0.1
quantum_bytes = "2MiB"

[[device]]
count = 8
name = "NVIDIA H100 80GB HBM3"
capacity_bytes = "80GiB"
baseline_bytes = "510MiB"

[[process]]
name = "server"
command = "vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 4"
user = "serve"
framework = "vLLM"
devices = [0, 1, 2, 3]
one_per_device = true
  [[process.shape]]
  kind = "load"
  bytes = "34GiB"
  over_s = 120
  shards = 30

[[process]]
name = "trainer"
command = "torchrun --nproc-per-node 4 train.py --config llama.yaml"
user = "ada"
framework = "PyTorch"
devices = [4, 5, 6, 7]
one_per_device = true
  [[process.shape]]
  kind = "load"
  bytes = "16GiB"
  over_s = 20
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "6GiB"
  period_s = 4
)";

/// A training job that leaks until the card is full, and dies there.
inline constexpr std::string_view kLeaksUntilItDies = R"(
name = "leaks_until_it_dies"
seed = 7
period_s = 5
duration_s = "2h"
jitter = 0.1
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA GeForce RTX 4090"
capacity_bytes = "24GiB"
baseline_bytes = "410MiB"

[[process]]
name = "trainer"
pid = 4242
command = "python train.py --config resnet50.yaml"
user = "ada"
framework = "PyTorch"
  [[process.shape]]
  kind = "load"
  bytes = "16.5GiB"
  over_s = 30
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "300MiB"
  period_s = 42
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "200MiB/min"
  onset_s = "10min"
)";

}  // namespace vramtrack::top
