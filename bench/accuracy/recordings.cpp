#include "recordings.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "draw.hpp"
#include "source/log/recording.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::string_view kServing = "alibaba_genai2026_gpu_mem.csv.gz";
constexpr double kServingCapacity = 49140.0 * 1048576;  ///< not in the file; said by its publisher's hardware

struct Series {
  std::string name;
  double capacity_bytes = 0;
  std::vector<Point> points;
};

std::vector<Series> read(const std::string& path, const LogOptions& options) {
  auto planned = plan_recordings({path}, options);
  if (!planned) throw std::runtime_error(planned.error().message);
  std::vector<Series> all;
  for (Recording& recording : *planned) {
    Catalog catalog;
    auto source = open_recording(std::move(recording), catalog);
    if (!source) throw std::runtime_error(source.error().message);
    std::map<SeriesId, Series> by_series;
    std::optional<Timestamp> first;
    for (;;) {
      Batch batch;
      const auto progress = (*source)->poll({}, batch);
      if (!progress) throw std::runtime_error(progress.error().message);
      for (const Sample& s : batch.samples) {
        const SeriesKey& key = catalog.key(s.series);
        if (key.metric != Metric::device_used) continue;
        if (!first) first = s.time;
        Series& series = by_series[s.series];
        if (series.points.empty()) series.name = key.device_id;
        series.points.push_back({seconds_between(*first, s.time), static_cast<double>(s.bytes)});
      }
      if (*progress == Progress::end) break;
    }
    for (auto& [id, series] : by_series) {
      const DeviceInfo* device = catalog.device(catalog.key(id).device_id);
      if (device != nullptr && device->capacity_bytes)
        series.capacity_bytes = static_cast<double>(*device->capacity_bytes);
      all.push_back(std::move(series));
    }
  }
  return all;
}

/// The memory a leak has taken, as a share of what there was, at share `u` of its life.
double taken(int form, double u, Draw& draw, const std::vector<double>& at) {
  switch (form) {
    case 0:
      return u;
    case 1:
      return std::pow(u, 1.7);
    case 2:
      return std::floor(u * static_cast<double>(at.size())) / static_cast<double>(at.size());
    case 3:
      return static_cast<double>(std::upper_bound(at.begin(), at.end(), u) - at.begin()) /
             static_cast<double>(at.size());
    default: {
      (void)draw;
      const double cycles = static_cast<double>(at.size()) * 3;
      return 0.75 * u + 0.25 * (u * cycles - std::floor(u * cycles));
    }
  }
}

constexpr std::array<std::string_view, 5> kForms{"linear", "accelerating", "stairs", "random_stairs",
                                                 "rising_sawtooth"};
constexpr std::array<Pattern, 5> kPatterns{Pattern::gradual_leak, Pattern::gradual_leak, Pattern::step_increase,
                                           Pattern::step_increase, Pattern::cyclic};

}  // namespace

std::vector<Trace> recordings_of_others(const std::string& folder, Split split) {
  std::vector<Trace> traces;
  if (!std::filesystem::is_directory(folder)) return traces;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    // Host memory is another matter, and the named wandb files are in the pool again.
    if (file.starts_with("aux_") || (file.starts_with("wandb_") && file != "wandb_pool.csv.gz")) continue;
    const bool serving = file == kServing;
    if (split == Split::tune && !serving) continue;
    LogOptions options;
    options.timezone = "UTC";
    if (serving) options.capacity_bytes = static_cast<std::uint64_t>(kServingCapacity);
    for (Series& series : read(folder + "/" + file, options)) {
      const bool odd = sim::substream(1, series.name) % 2 == 1;
      if (serving && odd != (split == Split::tune)) continue;
      // Without a capacity some of the rivals cannot be run.
      if (series.points.size() < 60 || series.capacity_bytes <= 0) continue;
      Trace trace;
      trace.group = Group::recorded;
      trace.family = serving ? "serving" : file.starts_with("smi_") ? "workstations" : "training";
      trace.source = file + "/" + series.name;
      trace.capacity_bytes = series.capacity_bytes;
      const double from = series.points.front().t_s;
      for (Point& p : series.points) p.t_s -= from;
      trace.points = std::move(series.points);
      traces.push_back(std::move(trace));
    }
  }
  return traces;
}

std::vector<Trace> with_leaks(const std::vector<Trace>& healthy, std::uint64_t seed) {
  std::vector<Trace> traces;
  for (const Trace& from : healthy) {
    const double span_s = from.points.back().t_s;
    if (from.points.size() < 200 || from.capacity_bytes <= 0) continue;
    for (std::size_t form = 0; form < kForms.size(); ++form) {
      Draw draw{sim::Random(sim::substream(sim::substream(seed, from.source), form)), Split::test};
      const double onset = draw.uniform(0.2, 0.45) * span_s;
      const double life = draw.uniform(0.6, 0.95) * (span_s - onset);
      double peak = 0;
      for (const Point& p : from.points) peak = std::max(peak, p.used_bytes);
      const double room = from.capacity_bytes - peak;
      if (room < 0.05 * from.capacity_bytes || room < 1024 * 1048576.0) break;
      std::vector<double> at(static_cast<std::size_t>(draw.whole(6, 16)));
      for (double& u : at) u = draw.uniform(0, 1);
      std::sort(at.begin(), at.end());
      Trace trace = from;
      trace.family = fmt::format("{}+{}", from.family, kForms[form]);
      trace.label = {true, kPatterns[form], form == 4 ? Pattern::gradual_leak : Pattern::none, onset, {}, {}, 0};
      trace.points.clear();
      for (Point p : from.points) {
        if (p.t_s > onset + life) break;
        if (p.t_s > onset) p.used_bytes += room * taken(static_cast<int>(form), (p.t_s - onset) / life, draw, at);
        trace.points.push_back({p.t_s, std::min(p.used_bytes, from.capacity_bytes)});
      }
      traces.push_back(std::move(trace));
    }
  }
  return traces;
}

namespace {

/// The lines of a plain or gzip file, split at commas. Throws on a file that cannot be opened.
std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::vector<std::vector<std::string>> rows;
  std::array<char, 4096> buffer{};
  while (gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    std::string line(buffer.data());
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == ',')
        fields.emplace_back();
      else
        fields.back() += c;
    }
    rows.push_back(std::move(fields));
  }
  gzclose(file);
  return rows;
}

/// The field of `row` under the heading `name`; empty where unknown.
std::string field(const std::vector<std::string>& heading, const std::vector<std::string>& row, std::string_view name) {
  const auto at = std::find(heading.begin(), heading.end(), name);
  if (at == heading.end()) throw std::runtime_error(fmt::format("no column '{}' in a recording's table", name));
  const auto i = static_cast<std::size_t>(at - heading.begin());
  return i < row.size() ? row[i] : std::string();
}

}  // namespace

std::vector<Trace> own_recordings(const std::string& folder, Split split) {
  // The programs leak for minutes so that all of them can be recorded in eight; leaks that are watched for last hours.
  constexpr double kStretch = 60;
  // The cap of a program is 1 to 3 GiB so that all of them fit on one card. What vramtrack knows of cards (how much a
  // driver needs, which growth is too small to matter) holds for whole ones, so the cap becomes what such a card has
  // beside the context of the process.
  constexpr double kCard = 24 * 1024 * 1048576.0;
  std::vector<Trace> traces;
  if (!std::filesystem::exists(folder + "/labels.csv")) return traces;
  const auto labels = rows_of(folder + "/labels.csv");
  for (std::size_t i = 1; i < labels.size(); ++i) {
    const auto label = [&](std::string_view name) { return field(labels[0], labels[i], name); };
    // All of one wave ran at once on one card.
    const bool odd = std::stoi(label("wave")) % 2 == 1;
    if (odd != (split == Split::tune)) continue;
    Trace trace;
    trace.group = Group::recorded;
    trace.family = "recorded " + label("framework");
    trace.source = label("name");
    const double cap = std::stod(label("cap_bytes"));
    const std::string limit = label("process_limit_bytes");
    const double context = limit.empty() ? 0 : std::stod(limit) - cap;
    const double scale = (kCard - context) / cap;
    trace.capacity_bytes = kCard;
    trace.label.leak = label("leak") == "1";
    if (trace.label.leak) {
      trace.label.pattern = label("pattern") == "step_increase" ? Pattern::step_increase
                            : label("pattern") == "cyclic"      ? Pattern::cyclic
                                                                : Pattern::gradual_leak;
      if (label("kind") == "requests_lost") trace.label.also = Pattern::step_increase;
      trace.label.onset_s = kStretch * std::stod(label("onset_s"));
    }
    const std::string end = label("oom_s").empty() ? label("end_s") : label("oom_s");
    const auto rows = rows_of(folder + "/" + trace.source + ".csv.gz");
    for (std::size_t r = 1; r < rows.size(); ++r) {
      const std::string reserved = field(rows[0], rows[r], "reserved_bytes");
      const double t_s = std::stod(field(rows[0], rows[r], "t_s"));
      if (reserved.empty() || t_s > std::stod(end)) continue;
      trace.points.push_back({kStretch * t_s, context + scale * std::stod(reserved)});
    }
    if (trace.label.leak && label("oom_s").empty())
      trace.label.life_s = kStretch * (std::stod(end) - std::stod(label("onset_s")));
    if (trace.points.size() >= 60) traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace vramtrack::accuracy
