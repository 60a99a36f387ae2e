// load_fleet: a synthetic fleet into a Prometheus-compatible server, with the truth about each GPU.
//
//   load_fleet --port 9090 --gpus 8000 --hours 24 --step-s 30 --kind mix --truth truth.csv
//
// kind mix: 60 % flat, 29 % with noise, 10 % cycles, 1 % leaks: what the speed is measured with.
// kind families: traces of the accuracy bench's families (test split), `--leaks` of them leaking: what the precision is
// measured with.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "bench.hpp"
#include "families.hpp"
#include "remote_write.hpp"
#include "source/sim/sim.hpp"

namespace {

using namespace vramtrack;
using accuracy::Family;
using bench::WrittenSeries;

constexpr double kMiB = 1024.0 * 1024;

struct Options {
  std::string host = "127.0.0.1";
  int port = 9090;
  std::size_t gpus = 8000;
  double hours = 24;
  double step_s = 30;
  std::int64_t end_s = 0;
  std::string kind = "mix";
  double leaks = 0.01;
  std::uint64_t seed = 1;
  std::string truth;
};

/// What one GPU does: its used MiB, one a step; what it is, and the truth.
struct Made {
  std::string family;
  bool leaks = false;
  double capacity_mib = 81559;
  double lasts_s = 0;  ///< for a leak of kind mix: from the last sample until memory is full
  std::vector<double> used_mib;
};

Made make_mix(std::size_t number, std::size_t steps, const Options& options) {
  std::mt19937_64 random(options.seed * 1'000'003 + number);
  std::uniform_real_distribution<double> unit(0, 1);
  std::normal_distribution<double> noise(0, 1);
  Made made;
  const double kind = unit(random);
  const double base = 4000 + 50000 * unit(random);
  const double period = 20 + 100 * unit(random), height = 1000 + 15000 * unit(random);
  const double mib_per_step = (10 + 490 * unit(random)) / 60 * options.step_s / 10;
  made.family = kind < 0.60 ? "flat" : kind < 0.89 ? "noise" : kind < 0.99 ? "cycle" : "leak";
  made.leaks = made.family == "leak";
  for (std::size_t i = 0; i < steps; ++i) {
    const auto at = static_cast<double>(i);
    double used = base;
    if (made.family == "noise") used += 40 * noise(random);
    if (made.family == "cycle") used += height * std::fmod(at, period) / period;
    if (made.leaks) used += mib_per_step * at / 4;
    made.used_mib.push_back(std::floor(std::min(used, made.capacity_mib - 600)));
  }
  if (made.leaks) made.lasts_s = (made.capacity_mib - made.used_mib.back()) / (mib_per_step / 4) * options.step_s;
  return made;
}

/// A trace, sampled every step, from its beginning; it stays as it ended when it is shorter.
Made make_of_family(const Family& family, std::uint64_t number, std::size_t steps, const Options& options) {
  const accuracy::Trace trace = make_trace(family, accuracy::Split::test, options.seed, number);
  auto scenario = trace.scenario ? *trace.scenario : sim::parse_scenario(trace.toml, trace.family).value();
  Catalog catalog;
  const auto source = sim::make_simulation(scenario, catalog);
  const std::string device = catalog.devices()[trace.label.device].id;
  Made made;
  made.family = trace.family;
  made.leaks = trace.label.leak;
  made.capacity_mib =
      std::floor(static_cast<double>(catalog.devices()[trace.label.device].capacity_bytes.value_or(0)) / kMiB);
  double next_s = 0, first_s = -1;
  Batch batch;
  for (Progress progress = Progress::more; progress == Progress::more && made.used_mib.size() < steps;) {
    batch.clear();
    progress = source->poll({}, batch).value();
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = catalog.key(sample.series);
      if (key.metric != Metric::device_used || key.device_id != device) continue;
      const double t_s = std::chrono::duration<double>(sample.time.time_since_epoch()).count();
      if (first_s < 0) first_s = t_s;
      if (t_s - first_s < next_s) continue;
      while (next_s + options.step_s <= t_s - first_s) {  // gaps stay gaps
        made.used_mib.push_back(std::numeric_limits<double>::quiet_NaN());
        next_s += options.step_s;
      }
      made.used_mib.push_back(std::floor(static_cast<double>(sample.bytes) / kMiB));
      next_s += options.step_s;
    }
    // A leak is scanned while it lives: where its memory ended, somebody has noticed.
    const bool is_over = std::any_of(batch.events.begin(), batch.events.end(), [&](const Event& e) {
      return e.kind == Event::Kind::process_ended && trace.label.suspect_pid && e.pid == *trace.label.suspect_pid;
    });
    if (made.leaks && is_over) break;
  }
  if (made.leaks && !made.used_mib.empty()) made.used_mib.pop_back();
  return made;
}

std::vector<Made> make_families(std::size_t steps, const Options& options) {
  std::vector<const Family*> leaking, healthy;
  for (const Family& family : accuracy::families()) {
    if (family.group != accuracy::Group::usual && family.group != accuracy::Group::others &&
        family.group != accuracy::Group::work)
      continue;
    (family.leak ? leaking : healthy).push_back(&family);
  }
  std::vector<Made> out(options.gpus);
  const auto leaks = static_cast<std::size_t>(std::lround(options.leaks * static_cast<double>(options.gpus)));
  accuracy::in_parallel(options.gpus, 2, [&](std::size_t i) {
    // The leaks are spread evenly over the fleet.
    const bool leak = (i + 1) * leaks / options.gpus > i * leaks / options.gpus;
    const auto& from = leak ? leaking : healthy;
    out[i] = make_of_family(*from[i % from.size()], options.seed * 100'000 + i, steps, options);
  });
  return out;
}

std::vector<std::pair<std::string, std::string>> labels_of(const char* metric, std::size_t number) {
  char uuid[64], host[32];
  std::snprintf(uuid, sizeof uuid, "GPU-%08zx-1111-2222-3333-444455556666", number);
  std::snprintf(host, sizeof host, "node%05zu", number / 8);
  const std::string gpu = std::to_string(number % 8);
  return {{"Hostname", host},
          {"UUID", uuid},
          {"__name__", metric},
          {"device", "nvidia" + gpu},
          {"gpu", gpu},
          {"hpc_job", std::to_string(1000 + number / 32)},
          {"instance", std::string(host) + ":9400"},
          {"job", "dcgm"},
          {"modelName", "NVIDIA H100 80GB HBM3"}};
}

int load(const Options& options) {
  const auto steps = static_cast<std::size_t>(options.hours * 3600 / options.step_s);
  const auto step_ms = static_cast<std::int64_t>(options.step_s * 1000);
  std::vector<Made> fleet;
  if (options.kind == "families")
    fleet = make_families(steps, options);
  else
    for (std::size_t i = 0; i < options.gpus; ++i) fleet.push_back(make_mix(i, steps, options));
  std::vector<WrittenSeries> series;
  std::ofstream truth(options.truth);
  truth << "gpu,family,leaks,samples,lasts_s\n";
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    Made& made = fleet[i];
    const std::size_t count = made.used_mib.size();
    // All end at the same time: now.
    const std::int64_t first_ms = options.end_s * 1000 - static_cast<std::int64_t>(count) * step_ms;
    const std::size_t free_steps = std::min<std::size_t>(count, static_cast<std::size_t>(600 / options.step_s));
    std::vector<double> free;
    for (std::size_t k = count - free_steps; k < count; ++k) free.push_back(made.capacity_mib - made.used_mib[k]);
    series.push_back({labels_of("DCGM_FI_DEV_FB_USED", i), first_ms, std::move(made.used_mib)});
    series.push_back({labels_of("DCGM_FI_DEV_FB_FREE", i),
                      options.end_s * 1000 - static_cast<std::int64_t>(free_steps) * step_ms, std::move(free)});
    truth << "GPU-" << i << ',' << made.family << ',' << made.leaks << ',' << count << ',' << made.lasts_s << '\n';
  }
  fleet.clear();
  const auto begun = std::chrono::steady_clock::now();
  bench::write_series(options.host, options.port, series, step_ms);
  std::size_t samples = 0;
  for (const WrittenSeries& s : series) samples += s.values.size();
  std::printf("%zu samples of %zu series written in %.1f s\n", samples, series.size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  return 0;
}

Options parse(int argc, char** argv) {
  Options out;
  out.end_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--host")
      out.host = value;
    else if (name == "--port")
      out.port = std::stoi(value);
    else if (name == "--gpus")
      out.gpus = std::stoul(value);
    else if (name == "--hours")
      out.hours = std::stod(value);
    else if (name == "--step-s")
      out.step_s = std::stod(value);
    else if (name == "--end-s")
      out.end_s = std::stoll(value);
    else if (name == "--kind")
      out.kind = value;
    else if (name == "--leaks")
      out.leaks = std::stod(value);
    else if (name == "--seed")
      out.seed = std::stoull(value);
    else if (name == "--truth")
      out.truth = value;
    else
      throw std::runtime_error("unknown option " + name);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return load(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "load_fleet: %s\n", e.what());
    return 1;
  }
}
