// Leaking jobs of programs that were seen before: does the signal come, and the checkpoint end, before memory does? And
// does any job that does not leak get one?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "stage.hpp"

namespace bench {
namespace {

constexpr std::uint32_t kDevices = 8;
constexpr double kMiB = 1 << 20;

/// One job on each GPU, until it has ended or is not needed any more.
void play(Stage& stage, std::size_t from, std::size_t to) {
  std::vector<std::size_t> running(kDevices, to);
  std::size_t next = from;
  bool any = true;
  while (any) {
    stage.tick();
    any = next < to;
    for (std::uint32_t device = 0; device < kDevices; ++device) {
      std::size_t& job = running[device];
      if (job < to && (stage.has_ended(job) || stage.slot(job).saved_us != 0)) {
        stage.end(job);
        job = to;
      }
      if (job >= to && next < to) {
        stage.slot(next).device = device;
        stage.start(next, fmt::format("program-{}", next % kDevices));
        job = next++;
      }
      any = any || job < to;
    }
  }
}

}  // namespace

int run_checkpoints(Stage& stage, std::size_t runs, std::uint32_t seed, double speed, std::uint64_t device_mib) {
  std::mt19937 random(seed);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  // First, each program is seen three times without a leak; then come healthy and leaking jobs of them.
  const std::size_t before = std::size_t{3} * kDevices;
  std::vector<Kind> kinds(before, Kind::sawtooth);
  for (std::size_t i = 0; i < runs; ++i) kinds.insert(kinds.end(), {Kind::leaks, Kind::steady});
  std::shuffle(kinds.begin() + static_cast<std::ptrdiff_t>(before), kinds.end(), random);
  static constexpr Kind kStationary[] = {Kind::steady, Kind::sawtooth, Kind::batches, Kind::warm_up};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Slot& slot = stage.slot(i);
    slot.kind = kinds[i] == Kind::leaks ? Kind::leaks
                                        : kStationary[static_cast<std::size_t>(random()) % std::size(kStationary)];
    slot.seed = static_cast<std::uint32_t>(random());
    slot.speed = speed;
    slot.checkpoint_s = 120;
    slot.length_s = i < before ? 1800 : 3 * 3600;
    slot.onset_s = between(300, 900);
    slot.base_bytes = static_cast<std::uint64_t>(2048 * kMiB);
    if (slot.kind != Kind::leaks) continue;
    const double rate = between(10, 500), minutes = between(40, 180);
    const double room = static_cast<double>(device_mib) - 400;
    slot.growth_bytes_per_s = rate * kMiB / 60;
    slot.base_bytes = static_cast<std::uint64_t>(std::max(1024.0, room - rate * minutes) * kMiB);
    slot.length_s = 24 * 3600;
  }
  play(stage, 0, before);
  play(stage, before, kinds.size());
  std::size_t leaking = 0, in_time = 0, signalled = 0, stationary = 0, wrong = 0;
  std::vector<double> to_signal_min, left_min;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Slot& slot = stage.slot(i);
    if (slot.kind != Kind::leaks) {
      ++stationary;
      if (slot.asked_us != 0) ++wrong;
      continue;
    }
    ++leaking;
    if (slot.asked_us != 0) {
      ++signalled;
      to_signal_min.push_back(static_cast<double>(slot.asked_us - slot.began_us) * 1e-6 * speed / 60);
    }
    if (slot.saved_us == 0) {
      std::printf("  missed: %.0f MB/min, asked %s\n", slot.growth_bytes_per_s * 60 / kMiB,
                  slot.asked_us == 0 ? "never" : "too late");
      continue;
    }
    ++in_time;
    const double room = static_cast<double>(device_mib - 300) * kMiB - static_cast<double>(slot.base_bytes);
    const double grown = static_cast<double>(slot.saved_us - slot.began_us) * 1e-6 * speed - slot.onset_s;
    left_min.push_back((room / slot.growth_bytes_per_s - grown) / 60);
  }
  std::printf("leaking jobs: %zu, signalled %zu, checkpoint ended before memory did %zu\n", leaking, signalled,
              in_time);
  std::printf("from the job's start to its signal, minutes: median %.1f, p90 %.1f\n", quantile(to_signal_min, 0.5),
              quantile(to_signal_min, 0.9));
  std::printf("left after the checkpoint until memory would have ended, minutes: median %.1f, least %.1f\n",
              quantile(left_min, 0.5), quantile(left_min, 0));
  std::printf("jobs that do not leak: %zu, signalled %zu\n", stationary, wrong);
  return wrong == 0 && 100 * in_time >= 99 * leaking ? 0 : 1;
}

}  // namespace bench
