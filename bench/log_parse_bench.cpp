// Speed of reading recorded logs: writes an nvidia-smi CSV of the given size, then reads it through
// plan_recordings / open_recording / poll on one core, and prints ns a line and MB/s.
//
//   build/bench/log_parse_bench [megabytes=200] [gpus=8]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "source/log/recording.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Lines as nvidia-smi writes them, about 115 bytes each, `gpus` at one stamp a second.
std::uint64_t write_log(const std::string& path, std::size_t megabytes, int gpus) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return 0;
  std::string text =
      "timestamp, index, name, pci.bus_id, memory.used [MiB], memory.total [MiB], utilization.gpu [%], "
      "temperature.gpu\n";
  std::uint64_t lines = 0;
  std::uint64_t written = 0;
  for (std::int64_t second = 0; written < megabytes * 1'000'000; ++second) {
    const std::chrono::sys_seconds time{std::chrono::seconds{1'781'000'000 + second}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day ymd{day};
    const std::int64_t s = (time - day).count();
    for (int gpu = 0; gpu < gpus; ++gpu, ++lines)
      text += fmt::format(
          "{:04}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}, {}, NVIDIA A100-SXM4-80GB, 00000000:{:02X}:00.0, {} MiB, 81920 "
          "MiB, {} %, {}\n",
          static_cast<int>(ymd.year()), static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), s / 3600,
          s / 60 % 60, s % 60, 100 + gpu, gpu, 16 * gpu + 7, 20'000 + second / 60 % 50'000 + (second * 7 + gpu) % 13,
          (second * 3) % 100, 40 + second % 20);
    if (text.size() > 1'000'000) {
      written += std::fwrite(text.data(), 1, text.size(), file);
      text.clear();
    }
  }
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vramtrack;
  const std::size_t megabytes = argc > 1 ? static_cast<std::size_t>(std::atol(argv[1])) : 200;
  const int gpus = argc > 2 ? std::atoi(argv[2]) : 8;
  const std::string path = (std::filesystem::temp_directory_path() / "vramtrack_log_parse_bench.csv").string();
  const std::uint64_t lines = write_log(path, megabytes, gpus);
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  double best_s = 1e9;
  std::uint64_t samples = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = Clock::now();
    LogOptions options;
    options.timezone = "Europe/Berlin";
    auto plan = plan_recordings({path}, options);
    if (!plan) {
      std::fprintf(stderr, "%s\n", plan.error().message.c_str());
      return 1;
    }
    Catalog catalog;
    auto source = open_recording(std::move(plan->front()), catalog);
    if (!source) return 1;
    samples = 0;
    Batch batch;
    for (;;) {
      batch.clear();
      const auto progress = (*source)->poll({}, batch);
      if (!progress) return 1;
      samples += batch.samples.size();
      if (*progress == Progress::end) break;
    }
    best_s = std::min(best_s, std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::filesystem::remove(path);
  std::printf("nvidia-smi CSV, %d GPUs: %.0f MB, %llu lines of %.0f bytes, %llu samples\n", gpus, bytes / 1e6,
              static_cast<unsigned long long>(lines), bytes / static_cast<double>(lines),
              static_cast<unsigned long long>(samples));
  std::printf("best of 5: %.3f s, %.1f ns a line, %.2f million samples/s, %.0f MB/s\n", best_s,
              best_s * 1e9 / static_cast<double>(lines), static_cast<double>(samples) / best_s / 1e6,
              bytes / best_s / 1e6);
  return samples == lines ? 0 : 1;
}
