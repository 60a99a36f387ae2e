// Speed of reading recorded logs: nvidia-smi CSV through plan_recordings / open_recording / poll, on one core.
//
//   build/bench/log_parse_bench            items are lines, counted by CPU time
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "source/log/recording.hpp"

namespace {

using namespace vramtrack;

/// A log of lines as nvidia-smi writes them, about 115 bytes each, `gpus` at one stamp a second; removed at the end.
class TemporaryLog {
 public:
  TemporaryLog(std::uint64_t bytes, int gpus)
      : path_(
            (std::filesystem::temp_directory_path() / fmt::format("vramtrack_log_parse_bench_{}.csv", gpus)).string()) {
    std::FILE* file = std::fopen(path_.c_str(), "w");
    if (file == nullptr) return;
    std::string text =
        "timestamp, index, name, pci.bus_id, memory.used [MiB], memory.free [MiB], memory.total [MiB], "
        "utilization.gpu [%], temperature.gpu\n";
    for (std::int64_t second = 0; size_ < bytes; ++second) {
      const std::chrono::sys_seconds time{std::chrono::seconds{1'781'000'000 + second}};
      const auto day = std::chrono::floor<std::chrono::days>(time);
      const std::chrono::year_month_day ymd{day};
      const std::int64_t s = (time - day).count();
      for (int gpu = 0; gpu < gpus; ++gpu, ++lines_) {
        const std::int64_t used = 20'000 + second / 60 % 50'000 + (second * 7 + gpu) % 13;
        text += fmt::format(
            "{:04}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}, {}, NVIDIA A100-SXM4-80GB, 00000000:{:02X}:00.0, {} MiB, "
            "{} MiB, 81920 MiB, {} %, {}\n",
            static_cast<int>(ymd.year()), static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
            s / 3600, s / 60 % 60, s % 60, 100 + gpu, gpu, 16 * gpu + 7, used, 81'920 - used, second * 3 % 100,
            40 + second % 20);
      }
      if (text.size() > 1'000'000) {
        size_ += std::fwrite(text.data(), 1, text.size(), file);
        text.clear();
      }
    }
    size_ += std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  ~TemporaryLog() { std::filesystem::remove(path_); }
  TemporaryLog(const TemporaryLog&) = delete;
  TemporaryLog& operator=(const TemporaryLog&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t bytes() const { return size_; }

 private:
  std::string path_;
  std::uint64_t lines_ = 0;
  std::uint64_t size_ = 0;
};

void read_query_gpu(benchmark::State& state) {
  const TemporaryLog log(200'000'000, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    LogOptions options;
    options.timezone = "Europe/Berlin";
    auto plan = plan_recordings({log.path()}, options);
    if (!plan) return state.SkipWithError(plan.error().message.c_str());
    Catalog catalog;
    auto source = open_recording(std::move(plan->front()), catalog);
    if (!source) return state.SkipWithError(source.error().message.c_str());
    std::uint64_t samples = 0;
    Batch batch;
    for (Progress progress = Progress::more; progress == Progress::more;) {
      batch.clear();
      const auto polled = (*source)->poll({}, batch);
      if (!polled) return state.SkipWithError(polled.error().message.c_str());
      samples += batch.samples.size();
      progress = *polled;
    }
    if (samples != log.lines()) return state.SkipWithError("samples are missing");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(log.bytes()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(log.lines()));
  state.counters["bytes_per_line"] = static_cast<double>(log.bytes()) / static_cast<double>(log.lines());
}

BENCHMARK(read_query_gpu)->Arg(1)->Arg(8)->ArgName("gpus")->Unit(benchmark::kMillisecond);

}  // namespace
