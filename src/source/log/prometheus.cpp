// Prometheus's exposition text, one scrape after another: `curl node:9400/metrics >> gpu.prom` in a loop, or with a
// time after each value (federation).
//
//   # TYPE DCGM_FI_DEV_FB_USED gauge
//   DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-34319582-...",Hostname="node1"} 4845 [1772359200000]
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/exporters.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/labels.hpp"
#include "source/log/owners.hpp"
#include "source/log/prometheus_metric.hpp"
#include "source/log/recording.hpp"
#include "source/log/unit.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kEntryBytes = 32;  ///< of a map; an eighth of its memory

using logtext::trim;

/// One line of the text, cut; views into the line.
struct Sampled {
  std::string_view name, labels, value, time;
};

bool is_name(char c) {
  return logtext::is_ascii_letter(c) || logtext::is_digit(c) || c == '_' || c == ':';
}

/// False when the line is not a sample. Labels may contain any character within their quotes.
bool cut_sample(std::string_view line, Sampled& out) {
  std::size_t at = 0;
  while (at < line.size() && is_name(line[at])) ++at;
  out.name = line.substr(0, at);
  if (at == 0 || logtext::is_digit(line.front())) return false;
  out.labels = {};
  if (at < line.size() && line[at] == '{') {
    const std::size_t begin = ++at;
    for (bool quoted = false; at < line.size() && (quoted || line[at] != '}'); ++at) {
      if (quoted && line[at] == '\\')
        ++at;
      else if (line[at] == '"')
        quoted = !quoted;
    }
    if (at >= line.size()) return false;
    out.labels = line.substr(begin, at - begin);
    ++at;
  } else if (at >= line.size() || !logtext::is_space(line[at])) {
    return false;
  }
  std::string_view rest = line.substr(at);
  out.value = logtext::take_word(rest);
  out.time = logtext::take_word(rest);
  return !out.value.empty() && trim(rest).empty();
}

/// key="value",... with \", \\ and \n in the values.
PrometheusLabels read_labels(std::string_view text) {
  PrometheusLabels out;
  while (true) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos || out.size() >= 64) return out;
    std::string_view key = trim(text.substr(0, equals));
    while (!key.empty() && (key.front() == ',' || logtext::is_space(key.front()))) key.remove_prefix(1);
    std::string value;
    std::size_t at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      value += text[at];
    }
    out.emplace_back(std::string(key), std::move(value));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
}

/// The time after a value: in ms since 1970, in OpenMetrics in seconds. Its size shows which.
std::optional<Timestamp> read_time(std::string_view text) {
  constexpr double kFrom_s = 9e8, kTo_s = 4.1e9;
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.length != text.size() || number.negative) return std::nullopt;
  if (number.value() >= kFrom_s && number.value() < kTo_s)
    return Timestamp{std::chrono::seconds{number.whole} + std::chrono::nanoseconds{number.nano}};
  if (number.value() >= kFrom_s * 1e3 && number.value() < kTo_s * 1e3)
    return Timestamp{std::chrono::milliseconds{number.whole}};
  return std::nullopt;
}

bool is_memory_in_use(DumpReadings::Field field) {
  using Field = DumpReadings::Field;
  return field == Field::used || field == Field::free || field == Field::allocated || field == Field::reserved ||
         field == Field::percent;
}

class Prometheus final : public DumpParser<LineReader> {
 public:
  /// `unit`: for metrics whose names give none. `most_free_bytes`: see GpuMemory.
  Prometheus(DumpClock clock, std::vector<std::string> assumptions, bool own_times, GuessedUnit unit, MetricsOf of,
             std::uint64_t most_free_bytes, LabelPlan labels, const std::vector<std::string>& guesses)
      : DumpParser(std::move(clock), std::move(assumptions), own_times),
        unit_(unit),
        of_(of),
        labels_(std::move(labels)) {
    assumptions_.insert(assumptions_.end(), guesses.begin(), guesses.end());
    readings_.assume_most_free(most_free_bytes);
  }
  [[nodiscard]] Scale scale() const override {
    Scale scale = DumpParser::scale();
    if (unit_.is_unknown) scale.count(AmountUnit::unknown, static_cast<double>(unit_.bytes));
    return scale;
  }
  [[nodiscard]] bool processes_only() const override { return labels_.are_of_processes; }
  [[nodiscard]] std::string_view needs_file_order() const override {
    return own_times_ ? std::string_view{} : "its samples have no times of their own";
  }

 private:
  struct Series {
    PrometheusMetric metric;
    LabelOwner owner;
    std::uint64_t scrape = 0;
  };

  void read_line(std::string_view text, std::uint64_t /*number*/, bool whole, LogRows& rows) override {
    const std::string_view line = trim(text);
    if (line.empty()) return;
    Sampled sample;
    if (line.front() == '#' || !cut_sample(line, sample)) {
      if (!own_times_ && readings_.take_time(line, rows)) ++scrape_;
      return;  // comments, and messages of curl
    }
    Series* const found = series_of(sample, rows);
    if (found == nullptr) return;
    Series& series = *found;
    if (!whole) return rows.skip(rows.line, "truncated last line");
    std::uint64_t bytes = 0;
    const logtext::Amount amount = logtext::read_amount(sample.value, series.metric.unit_bytes, bytes);
    constexpr std::size_t kBlankDigits = 19;  // DCGM's marks of missing values are just below 2^63
    if (amount == logtext::Amount::missing || sample.value.size() == kBlankDigits) return;  // NaN
    if (amount == logtext::Amount::bad)
      return rows.skip(rows.line, fmt::format("no amount of memory in '{}'", logtext::excerpt(sample.value)));
    if (series.owner.pid_is_unreadable) return rows.skip(rows.line, kNoPid);
    if (series.metric.field == DumpReadings::Field::busy) bytes = percent_of_ratio(bytes);
    if (own_times_) {
      const auto time = read_time(sample.time);
      if (!time) return rows.skip(rows.line, "no time since 1970 after the value (in ms; in OpenMetrics, in seconds)");
      rows.row_time(*time);
      if (is_of_process(series)) return set_of_process(time, series, bytes, rows);
      return readings_.set_at(*time, series.owner.gpu, series.metric.field, bytes, rows);
    }
    // A series that this scrape already contains begins the next scrape. A scrape may contain the same GPU several
    // times, once for each pod that shares it.
    if (series.scrape == scrape_) {
      readings_.end_dump(rows);
      ++scrape_;
    }
    series.scrape = scrape_;
    if (is_of_process(series)) return set_of_process({}, series, bytes, rows);
    readings_.put(series.owner.gpu, series.metric.field, bytes, rows);
  }

  /// The total is that of the GPU.
  static bool is_of_process(const Series& series) { return series.owner.pid && is_memory_in_use(series.metric.field); }
  void set_of_process(const std::optional<Timestamp>& time, const Series& series, std::uint64_t bytes, LogRows& rows) {
    readings_.set_of_process(time, series.owner.gpu, {*series.owner.pid, series.owner.process, {}, {}},
                             series.metric.field, bytes, rows);
  }

  /// Reads the labels of each series only once; nullptr if it is not GPU memory.
  Series* series_of(const Sampled& sample, LogRows& rows) {
    const auto [name, is_new] = metrics_.try_emplace(std::string(sample.name));
    if (is_new) {
      rows.keeps_text(sample.name.size() + kEntryBytes);
      name->second = gpu_metric(sample.name, of_);
      if (name->second && name->second->unit_bytes == 0) name->second->unit_bytes = unit_.bytes;
    }
    if (!name->second) return nullptr;
    std::string key(sample.name);
    key += '{';
    key += sample.labels;
    const auto [it, fresh] = series_.try_emplace(std::move(key));
    if (fresh) {
      rows.keeps_text(it->first.size() + kEntryBytes);
      it->second.metric = *name->second;
      it->second.owner = owner_of_labels(read_labels(sample.labels), sample.name, labels_);
    }
    return &it->second;
  }

  GuessedUnit unit_;
  MetricsOf of_;
  LabelPlan labels_;
  std::uint64_t scrape_ = 1;
  std::unordered_map<std::string, std::optional<PrometheusMetric>> metrics_;  ///< by name
  std::unordered_map<std::string, Series> series_;                            ///< by name and labels
};

/// The unit of the metrics whose names give none, from their values in the head.
GuessedUnit unit_of_values(std::string_view head, MetricsOf of, const LogOptions& options,
                           std::vector<std::string>& guesses) {
  BareAmounts amounts;
  std::string example;
  std::map<std::string_view, std::optional<PrometheusMetric>> metrics;
  while (!head.empty()) {
    Sampled sample;
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty() || line.front() == '#' || !cut_sample(line, sample)) continue;
    const auto [metric, fresh] = metrics.try_emplace(sample.name);
    if (fresh) metric->second = gpu_metric(sample.name, of);
    logtext::Decimal number;
    if (!metric->second || metric->second->unit_bytes != 0 || !logtext::read_decimal(sample.value, number)) continue;
    if (metric->second->field == DumpReadings::Field::total) {
      amounts.total = std::max(amounts.total.value_or(0), number.value());
    } else {
      if (example.empty()) example = fmt::format("the metric '{}'", sample.name);
      amounts.add(number.value(), number.has_fraction);
    }
  }
  return example.empty() ? GuessedUnit{kBytesPerMiB} : guess_unit(amounts, example, options.capacity_bytes, guesses);
}

/// The first sample of GPU memory, used or free; false if the head has none.
bool find_memory(std::string_view head, Sampled& out, MetricsOf of = MetricsOf::gpus) {
  while (!head.empty()) {
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty() || line.front() == '#' || !cut_sample(line, out)) continue;
    const auto metric = gpu_metric(out.name, of);
    if (metric && is_memory_in_use(metric->field)) return true;
  }
  return false;
}

/// Whether metrics of the head show how much is in use: free memory does only together with the total.
bool shows_use(std::string_view head) {
  bool has_free = false;
  bool has_total = false;
  while (!head.empty() && !(has_free && has_total)) {
    Sampled sample;
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty() || line.front() == '#' || !cut_sample(line, sample)) continue;
    const auto metric = gpu_metric(sample.name);
    if (!metric) continue;
    has_total |= metric->field == DumpReadings::Field::total;
    if (!is_memory_in_use(metric->field)) continue;
    if (metric->field != DumpReadings::Field::free) return true;
    has_free = true;
  }
  return has_free && has_total;
}

/// Fails if samples of memory in use that share their name and labels share their times, or stand in one scrape: no
/// label distinguishes their GPUs. `own_times`: the samples have times; else other lines (comments, times) separate
/// scrapes.
Status check_labels(std::string_view head, MetricsOf of, bool own_times) {
  struct Series {
    UnnamedReadings readings;
    std::vector<double> used;
    bool names_gpu = false;
  };
  constexpr double kBetweenScrapes_s = 1000;
  std::map<std::string, Series> series;      // by name and labels
  std::map<std::string_view, bool> is_read;  // by name
  std::size_t scrapes = 1;
  bool in_scrape = false;
  while (!head.empty()) {
    Sampled sample;
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty()) continue;
    if (line.front() == '#' || !cut_sample(line, sample)) {
      scrapes += std::exchange(in_scrape, false) ? 1U : 0U;
      continue;
    }
    in_scrape = true;
    const auto [read, fresh] = is_read.try_emplace(sample.name);
    if (fresh) {
      const auto metric = gpu_metric(sample.name, of);
      read->second = metric && is_memory_in_use(metric->field);
    }
    const auto time = own_times ? read_time(sample.time) : Timestamp{};
    logtext::Decimal number;
    if (!read->second || !time || !logtext::read_decimal(sample.value, number)) continue;
    const auto [its, is_new] = series.try_emplace(
        sample.labels.empty() ? std::string(sample.name) : fmt::format("{}{{{}}}", sample.name, sample.labels));
    if (is_new) {
      const LabelOwner owner = owner_of_labels(read_labels(sample.labels), sample.name);
      its->second.names_gpu = has_id(owner.gpu) || owner.pid;
    }
    its->second.readings.add(
        own_times ? seconds_between(Timestamp{}, *time) : kBetweenScrapes_s * static_cast<double>(scrapes),
        number.value());
    its->second.used.push_back(number.value());
  }
  for (auto& [name, its] : series) {
    if (!own_times && its.names_gpu) continue;
    if (!own_times && scrapes == 1) {
      if (Status ok = check_alternating(its.used); !ok) return ok;
      continue;
    }
    ReadingWords words;
    words.rows = "samples";
    words.of = fmt::format("are all '{}'", logtext::excerpt(name));
    words.record = "record a label, such as gpu, that says whose each is";
    if (const auto one = count_gpus_by_order(std::move(its.readings), OrderEvidence::never, false, words); !one)
      return fail(one.error());
  }
  return {};
}

/// What the labels mean, by their values. `own_times`: as above.
LabelPlan plan_head(std::string_view head, MetricsOf of, bool own_times) {
  std::vector<LabelledSample> samples;
  std::map<std::string_view, bool> is_read;             // by name
  std::map<std::string_view, PrometheusLabels> labels;  // by their text
  std::deque<std::string> scrapes{"0"};                 // in place of times
  while (!head.empty()) {
    Sampled sample;
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty()) continue;
    if (line.front() == '#' || !cut_sample(line, sample)) {
      scrapes.push_back(std::to_string(scrapes.size()));
      continue;
    }
    const auto [read, fresh] = is_read.try_emplace(sample.name);
    if (fresh) {
      const auto metric = gpu_metric(sample.name, of);
      read->second = metric && is_memory_in_use(metric->field);
    }
    logtext::Decimal number;
    if (!read->second || !logtext::read_decimal(sample.value, number)) continue;
    const auto [its, is_new] = labels.try_emplace(sample.labels);
    if (is_new) its->second = read_labels(sample.labels);
    samples.push_back(
        {sample.name, &its->second, own_times ? sample.time : std::string_view(scrapes.back()), number.value()});
  }
  return plan_labels(samples, true);
}

/// The first metric that is named as the host's memory; empty: none.
std::string_view host_memory(std::string_view head) {
  while (!head.empty()) {
    Sampled sample;
    if (cut_sample(trim(logtext::take_line(head)), sample) && names_host_memory(sample.name)) return sample.name;
  }
  return {};
}

/// Whether nearly all of the first lines that are no comments are samples: with labels, or with a time since 1970, as
/// `curl | grep` leaves them.
bool are_samples(std::string_view head, bool have_labels) {
  constexpr std::size_t kLooked = 50;
  std::size_t lines = 0;
  std::size_t samples = 0;
  for (; !head.empty() && lines < kLooked;) {
    Sampled sample;
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty() || (have_labels && line.front() == '#')) continue;
    ++lines;
    samples += cut_sample(line, sample) &&
                       (have_labels ? !sample.labels.empty() : sample.labels.empty() && read_time(sample.time))
                   ? 1U
                   : 0U;
  }
  return samples > 0 && samples * 10 >= lines * 9;
}

/// Whether a label names a GPU, so that memory of nobody else is a GPU's: gpu="0".
bool has_gpu_label(std::string_view labels) {
  const PrometheusLabels all = read_labels(labels);
  return std::any_of(all.begin(), all.end(), [](const auto& label) {
    return read_label(label.first).gpu || label.second.starts_with("GPU-") || label.second.starts_with("MIG-");
  });
}

/// If no metric gives the used memory or the total, what the free memory in the head is at most: see most_free_of().
/// An exporter that is known has metrics of them.
Result<std::uint64_t> most_free_bytes(std::string_view head, std::string_view name, std::uint64_t unit_bytes,
                                      const LogOptions& options, std::vector<std::string>& guesses) {
  if (exporters::Mapping::known().find(std::string(name)))
    return fail(fmt::format(
        "'{}' is the free memory, and no metric gives the used memory or the total; export one as well, such as "
        "DCGM_FI_DEV_FB_USED",
        name));
  std::uint64_t most = 0;
  std::size_t readings = 0;
  while (!head.empty()) {
    Sampled sample;
    if (!cut_sample(trim(logtext::take_line(head)), sample)) continue;
    const auto metric = gpu_metric(sample.name);
    std::uint64_t bytes = 0;
    if (!metric || metric->field != DumpReadings::Field::free ||
        logtext::read_amount(sample.value, metric->unit_bytes != 0 ? metric->unit_bytes : unit_bytes, bytes) !=
            logtext::Amount::read)
      continue;
    most = std::max(most, bytes);
    ++readings;
  }
  return most_free_of(most, readings, options.capacity_bytes, guesses);
}

Evidence recognise(std::string_view head) {
  Sampled sample;
  const bool has_types = head.find("# TYPE ") != std::string_view::npos;
  if ((find_memory(head, sample) || find_memory(head, sample, MetricsOf::peaks)) &&
      (!sample.labels.empty() || has_types || are_samples(head, false)))
    return Evidence::own_names;
  if (find_memory(head, sample, MetricsOf::anyone) && are_samples(head, false)) return Evidence::named_rows;
  if (are_samples(head, true)) return Evidence::named_rows;  // refused if none is memory of a GPU
  return head.substr(0, 4096).find("# TYPE ") != std::string_view::npos ? Evidence::traces : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  Sampled sample;
  const std::string_view host = host_memory(head.text);
  MetricsOf of = MetricsOf::gpus;
  if (!find_memory(head.text, sample)) of = MetricsOf::peaks;
  if (of == MetricsOf::peaks && !find_memory(head.text, sample, of)) {
    of = MetricsOf::anyone;
    if (!host.empty()) return fail(only_host_memory(host));
  }
  const bool has_any = of == MetricsOf::anyone && find_memory(head.text, sample, of);
  const bool is_of_gpu = has_any && has_gpu_label(sample.labels);
  if (of == MetricsOf::anyone && !is_of_gpu && !(has_any && are_samples(head.text, false)))
    return fail(
        "no metric of a GPU's used memory at its beginning; expected one such as DCGM_FI_DEV_FB_USED or "
        "nvidia_smi_memory_used_bytes");
  const bool own_times = !sample.time.empty();
  if (Status ok = check_labels(head.text, of, own_times); !ok) return fail(std::move(ok.error()));
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  std::vector<std::string> guesses;
  const GuessedUnit guessed = *unit != 0 ? GuessedUnit{*unit} : unit_of_values(head.text, of, *head.options, guesses);
  if (of == MetricsOf::peaks) guesses.emplace_back(kOnlyPeaks);
  if (of == MetricsOf::anyone && !is_of_gpu) guesses.push_back(may_be_of_host("metric"));
  std::uint64_t most_free = 0;
  if (of == MetricsOf::gpus && !shows_use(head.text)) {
    const auto most = most_free_bytes(head.text, sample.name, guessed.bytes, *head.options, guesses);
    if (!most) return fail(most.error());
    most_free = *most;
  }
  LabelPlan labels = plan_head(head.text, of, own_times);
  if (!labels.distinguishing.empty()) guesses.push_back(distinguished_by_fields(labels.distinguishing));
  return make_dump_parser<Prometheus>(head, {}, own_times, guessed, of, most_free, std::move(labels), guesses);
}

}  // namespace

const LogFormatInfo prometheus_log_format{
    "prometheus",
    "while sleep 15; do date; curl -s node:9400/metrics; done > gpu.prom (dcgm-exporter and others)",
    recognise,
    make,
    each_line_is_a_record,
    false};

}  // namespace vramtrack
