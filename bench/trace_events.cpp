// Reading a trace of the probe: events a second and memory. Writes a generated trace of a training and reads it.
//
//   trace_events EVENTS [FILE]      FILE is kept; without it a temporary one is not
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "trace/probe_file.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/trace_report.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

constexpr std::uint32_t kStacks = 2000;
constexpr std::size_t kLive = 100'000;  ///< blocks, besides those that leak

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

rusage used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double cpu_s() {
  const rusage usage = used();
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/// Blocks of random stacks in a window of kLive, and one in a thousand that is never given back.
bool write(const std::string& path, std::uint64_t events) {
  auto writer = ProbeFileWriter::open(path, "./train", 0);
  if (!writer || !writer->begin_process({1, 1, 0, "./train"})) return false;
  std::vector<probe::Slot> slots;
  const auto put = [&slots](probe::Record record, probe::Call call, std::uint32_t number, std::uint64_t a,
                            std::uint64_t address, std::uint64_t bytes) {
    slots.push_back({probe::head_of(record, call, 0, 0, number), a, address, bytes});
  };
  for (std::uint32_t stack = 1; stack <= kStacks; ++stack)
    for (std::uint64_t i = 0; i < 20; ++i)
      put(probe::Record::frame, probe::Call::none, stack, i | std::uint64_t{20} << 32U, 0x400000 + stack * 64 + i, 0);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> live;
  std::uint64_t next = 1;
  for (std::uint64_t event = 0; event < events; ++event) {
    const std::uint64_t a = probe::when(event * 10, 0);
    if (live.size() < kLive || event % 2 == 0) {
      const bool leaks = next % 1000 == 0;
      put(probe::Record::alloc, probe::Call::torch_block,
          leaks ? kStacks : static_cast<std::uint32_t>(1 + random() % (kStacks - 1)), a, next * 512,
          512 + random() % 65536);
      if (!leaks) live.push_back(next);
      ++next;
    } else {
      std::uint64_t& old = live[random() % live.size()];
      put(probe::Record::free, probe::Call::torch_block, 0, a, old * 512, 0);
      old = live.back();
      live.pop_back();
    }
    if (slots.size() < 65536) continue;
    if (!writer->write_slots(0, slots)) return false;
    slots.clear();
  }
  return writer->write_slots(0, slots) && writer->finish({static_cast<std::int64_t>(events) * 10, 0, 0});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: trace_events EVENTS [FILE]\n", stderr);
    return 2;
  }
  const std::uint64_t events = std::strtoull(argv[1], nullptr, 10);
  const std::string path = argc > 2 ? argv[2] : fmt::format("/tmp/trace_events.{}", getpid());
  auto begin = std::chrono::steady_clock::now();
  if (access(path.c_str(), R_OK) != 0) {
    if (!write(path, events)) {
      std::fputs("cannot write the trace\n", stderr);
      return 2;
    }
    fmt::print("written in {:.2f} s\n", seconds_since(begin));
  }
  begin = std::chrono::steady_clock::now();
  const double begin_cpu_s = cpu_s();
  auto input = ByteInput::open(path);
  ProbeTrace trace;
  if (!input || !trace.read(std::move(*input))) return 2;
  const std::uint64_t file_bytes = trace.info().bytes;
  trace.finish();
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, {});
  const TraceReport report = report_of(trace, names);
  const double took_s = cpu_s() - begin_cpu_s;
  const std::uint64_t read = trace.processes().front()->events();
  fmt::print(
      "{} events, {} bytes: {:.2f} s of CPU, {:.2f} s, {:.2f} million events per second of CPU; {} MiB resident\n",
      read, file_bytes, took_s, seconds_since(begin), static_cast<double>(read) / took_s * 1e-6,
      used().ru_maxrss / 1024);
  if (!report.leak) fmt::print("the leak was not found\n");
  if (argc <= 2) unlink(path.c_str());
  return 0;
}
