// The scenarios that ship with the tool. Rates are taken from public leak reports where they exist.
#include <array>

#include "source/sim/sim.hpp"

namespace vramtrack::sim {
namespace {

constexpr std::string_view kLeakingTraining = R"(
name = "leaking_training"
help = "a training job leaks 120 MiB/min beside a larger, healthy server, and runs out of memory"
seed = 7
period_s = 5
duration_s = "2h"
start = 2026-01-05T08:00:00Z
jitter = 0.1
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA GeForce RTX 4090"
capacity_bytes = "24GiB"
baseline_bytes = "410MiB"

[[process]]
name = "server"
command = "vllm serve meta-llama/Llama-3.2-3B --gpu-memory-utilization 0.45"
user = "serve"
framework = "vLLM"
  [[process.shape]]
  kind = "load"
  bytes = "6GiB"
  over_s = 20
  shards = 4
  [[process.shape]]
  kind = "kv_cache"
  bytes = "4.5GiB"
  after_s = 30

[[process]]
name = "trainer"
pid = 4242
command = "python train.py --config resnet50.yaml"
user = "ada"
framework = "PyTorch"
  [[process.shape]]
  kind = "load"
  bytes = "2.5GiB"
  over_s = 15
  [[process.shape]]
  kind = "warm_up"
  bytes = "800MiB"
  over_s = 60
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "300MiB"
  period_s = 42
  period_spread = 0.2
  amplitude_spread = 0.2
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "120MiB/min"
  onset_s = "10min"

[truth]
leak = true
pattern = "gradual_leak"
onset_s = "10min"
suspect_pid = 4242
)";

constexpr std::string_view kHealthyTraining = R"(
name = "healthy_training"
help = "a training job warms up, then breathes with its batches and evaluates every epoch"
seed = 11
period_s = 5
duration_s = "2h"
jitter = 0.1
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA A100-SXM4-40GB"
capacity_bytes = "40GiB"
baseline_bytes = "450MiB"

[[process]]
name = "trainer"
command = "python train.py --model vit-b"
user = "ada"
framework = "PyTorch"
  [[process.shape]]
  kind = "load"
  bytes = "9GiB"
  over_s = 20
  [[process.shape]]
  kind = "warm_up"
  bytes = "3GiB"
  over_s = "3min"
  [[process.shape]]
  kind = "sawtooth"
  amplitude_bytes = "1GiB"
  period_s = 30
  period_spread = 0.3
  amplitude_spread = 0.3
  [[process.shape]]
  kind = "evaluation"
  bytes = "4GiB"
  every_s = "15min"
  lasts_s = 50
  spread = 0.1

[truth]
leak = false
)";

constexpr std::string_view kStaircase = R"(
name = "staircase"
help = "about 800 MiB stays behind after every epoch"
seed = 3
period_s = 10
duration_s = "5h"
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA RTX A6000"
capacity_bytes = "48GiB"
baseline_bytes = "300MiB"

[[process]]
name = "trainer"
command = "python main.py --epochs 60"
user = "li"
framework = "PyTorch"
  [[process.shape]]
  kind = "constant"
  bytes = "14GiB"
  [[process.shape]]
  kind = "staircase"
  step_bytes = "800MiB"
  every_s = "8min"
  intervals = "jittered"
  step_spread = 0.2

[truth]
leak = true
pattern = "step_increase"
onset_s = "8min"
)";

constexpr std::string_view kCyclicLeak = R"(
name = "cyclic_leak"
help = "memory rises and falls with every batch of requests, and each cycle leaves a little behind"
seed = 5
period_s = 5
duration_s = "4h"
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA A10"
capacity_bytes = "24GiB"
baseline_bytes = "260MiB"

[[process]]
name = "tritonserver"
command = "tritonserver --model-repository=/models"
user = "triton"
framework = "Triton server"
  [[process.shape]]
  kind = "constant"
  bytes = "7GiB"
  [[process.shape]]
  kind = "sawtooth"
  form = "triangle"
  amplitude_bytes = "3GiB"
  period_s = "4min"
  period_spread = 0.2
  amplitude_spread = 0.15
  leak_bytes_per_s = "41MiB/min"

[truth]
leak = true
pattern = "cyclic"
onset_s = 0
)";

constexpr std::string_view kWarmUp = R"(
name = "warm_up"
help = "compilation caches and the allocator fill for half an hour, then all is flat"
seed = 13
period_s = 10
duration_s = "4h"
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA H100 80GB HBM3"
capacity_bytes = "80GiB"
baseline_bytes = "600MiB"

[[process]]
name = "trainer"
command = "python -m trainer.jax_main"
user = "noor"
framework = "JAX"
  [[process.shape]]
  kind = "load"
  bytes = "20GiB"
  over_s = 30
  shards = 6
  [[process.shape]]
  kind = "warm_up"
  bytes = "18GiB"
  over_s = "12min"
  [[process.shape]]
  kind = "fragmentation"
  bytes = "4GiB"
  over_s = "40min"
  cached = true

[truth]
leak = false
)";

constexpr std::string_view kServingBurst = R"(
name = "serving_burst"
help = "a server's memory follows its requests, in bursts, over a day"
seed = 17
period_s = 15
duration_s = "24h"
jitter = 0.1
drop = 0.01
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA L40S"
capacity_bytes = "48GiB"
baseline_bytes = "300MiB"

[[process]]
name = "diffusion"
command = "python serve_sd.py --port 7860"
user = "web"
framework = "PyTorch"
  [[process.shape]]
  kind = "serving"
  requests_per_s = 0.6
  request_bytes = "700MiB"
  service_s = 8
  burst_factor = 4
  burst_every_s = "20min"
  burst_lasts_s = "3min"
  max_requests = 40
  [[process.shape]]
  kind = "diurnal"
  apply = "multiply"
  low_bytes = 0.35
  high_bytes = 1.0
  peak_s = "14h"
  [[process.shape]]
  kind = "constant"
  bytes = "8GiB"

[truth]
leak = false
)";

constexpr std::string_view kChurn = R"(
name = "churn"
help = "jobs of many sizes come and go on four shared GPUs"
seed = 19
period_s = 10
duration_s = "8h"
quantum_bytes = "2MiB"

[[device]]
count = 4
name = "NVIDIA A100-SXM4-80GB"
capacity_bytes = "80GiB"
baseline_bytes = "450MiB"

[[tenants]]
name = "job"
command = "python experiment.py"
user = "students"
devices = [0, 1, 2, 3]
arrivals_per_s = "24/h"
lifetime_s = "40min"
min_bytes = "2GiB"
max_bytes = "30GiB"
load_s = 40

[truth]
leak = false
)";

constexpr std::string_view kGpuLost = R"(
name = "gpu_lost"
help = "a GPU falls off the bus for ten minutes while another job leaks slowly"
seed = 23
period_s = 5
duration_s = "3h"
quantum_bytes = "2MiB"

[[device]]
count = 2
name = "NVIDIA V100"
capacity_bytes = "32GiB"
baseline_bytes = "300MiB"

[[process]]
name = "rank"
command = "torchrun --nproc-per-node 2 train.py"
user = "ada"
framework = "PyTorch"
devices = [0, 1]
one_per_device = true
  [[process.shape]]
  kind = "constant"
  bytes = "11GiB"
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "30MiB/min"
  only_rank = 1

[[fault]]
kind = "xid"
at_s = "1h"
device = 0
code = 79
[[fault]]
kind = "device_lost"
device = 0
from_s = "1h"
to_s = "70min"

[truth]
leak = true
pattern = "gradual_leak"
onset_s = 0
device = 1
)";

constexpr std::string_view kUnseen = R"(
name = "unseen_leak"
help = "the GPU grows and no visible process does: the leak sits in another container"
seed = 29
period_s = 5
duration_s = "3h"
quantum_bytes = "2MiB"

[[device]]
name = "NVIDIA A10"
capacity_bytes = "24GiB"
baseline_bytes = "260MiB"

[[process]]
name = "visible"
command = "python serve.py"
user = "web"
framework = "PyTorch"
  [[process.shape]]
  kind = "constant"
  bytes = "6GiB"
  [[process.shape]]
  kind = "noise"
  sigma_bytes = "20MiB"

[[process]]
name = "hidden"
visible = false
  [[process.shape]]
  kind = "constant"
  bytes = "2GiB"
  [[process.shape]]
  kind = "requests"
  requests_per_s = 2
  leak_share = 0.2
  leak_bytes = "2.5MiB"

[truth]
leak = true
pattern = "gradual_leak"
onset_s = 0
)";

constexpr std::array kBuiltins{
    BuiltinScenario{"leaking_training", "a training job leaks until it runs out of memory", kLeakingTraining},
    BuiltinScenario{"healthy_training", "a training job that only looks lively", kHealthyTraining},
    BuiltinScenario{"staircase", "a step stays behind after every epoch", kStaircase},
    BuiltinScenario{"cyclic_leak", "a sawtooth whose floor and peak creep", kCyclicLeak},
    BuiltinScenario{"warm_up", "half an hour of growth, then flat", kWarmUp},
    BuiltinScenario{"serving_burst", "a day of bursty serving", kServingBurst},
    BuiltinScenario{"churn", "jobs come and go on four GPUs", kChurn},
    BuiltinScenario{"gpu_lost", "a GPU is lost and returns; the other leaks", kGpuLost},
    BuiltinScenario{"unseen_leak", "the GPU grows and no visible process does", kUnseen},
};

}  // namespace

std::span<const BuiltinScenario> builtin_scenarios() {
  return kBuiltins;
}

const BuiltinScenario* find_builtin_scenario(std::string_view name) {
  for (const BuiltinScenario& scenario : kBuiltins)
    if (scenario.name == name) return &scenario;
  return nullptr;
}

}  // namespace vramtrack::sim
