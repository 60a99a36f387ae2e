// Prometheus's exposition text, one scrape after another: `curl node:9400/metrics >> gpu.prom` in a loop, or with a
// time after each value (federation).
//
//   # TYPE DCGM_FI_DEV_FB_USED gauge
//   DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-34319582-...",Hostname="node1"} 4845 [1772359200000]
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/dump_parser.hpp"
#include "source/log/dumps.hpp"
#include "source/log/prometheus_metric.hpp"
#include "source/log/recording.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kEntryBytes = 32;  ///< of a map, an eighth of what it takes

using logtext::trim;

/// One line of the text, cut; views into the line.
struct Sampled {
  std::string_view name, labels, value, time;
};

bool is_name(char c) {
  return logtext::is_alpha(c) || logtext::is_digit(c) || c == '_' || c == ':';
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

class Prometheus final : public DumpParser<LineReader> {
 public:
  Prometheus(DumpClock clock, std::vector<std::string> assumptions, bool own_times, std::uint64_t unit)
      : DumpParser(std::move(clock), std::move(assumptions), own_times), unit_(unit) {}

 private:
  struct Series {
    PrometheusMetric metric;
    LogDevice gpu;
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
    if (series.metric.field == DumpReadings::Field::busy) bytes = settled_busy(bytes);
    if (own_times_) {
      const auto ms = logtext::whole_number<std::int64_t>(sample.time);
      if (!ms || *ms < 900'000'000'000 || *ms > 4'100'000'000'000)
        return rows.skip(rows.line, "no time in ms since 1970 after the value, where other lines have one");
      return readings_.set_at(Timestamp{std::chrono::milliseconds{*ms}}, series.gpu, series.metric.field, bytes, rows);
    }
    // A series that this scrape already contains begins the next scrape. A scrape may contain the same GPU several
    // times, once for each pod that shares it.
    if (series.scrape == scrape_) {
      readings_.end_dump(rows);
      ++scrape_;
    }
    series.scrape = scrape_;
    readings_.put(series.gpu, series.metric.field, bytes, rows);
  }

  /// Reads the labels of each series only once; nullptr when it is not the memory of a GPU.
  Series* series_of(const Sampled& sample, LogRows& rows) {
    const auto [name, is_new] = metrics_.try_emplace(std::string(sample.name));
    if (is_new) {
      rows.keeps_text(sample.name.size() + kEntryBytes);
      name->second = gpu_metric(sample.name);
      if (name->second && name->second->unit_bytes == 0) {
        name->second->unit_bytes = unit_ != 0 ? unit_ : kBytesPerMiB;
        if (unit_ == 0)
          rows.warn(fmt::format("the metric {} does not name its unit: MiB is assumed; if that is wrong, give {}",
                                sample.name, name_of(Option::unit)));
      }
    }
    if (!name->second) return nullptr;
    std::string key(sample.name);
    key += '{';
    key += sample.labels;
    const auto [it, fresh] = series_.try_emplace(std::move(key));
    if (fresh) {
      rows.keeps_text(it->first.size() + kEntryBytes);
      it->second.metric = *name->second;
      it->second.gpu = gpu_of_labels(read_labels(sample.labels));
    }
    return &it->second;
  }

  std::uint64_t unit_ = 0;
  std::uint64_t scrape_ = 1;
  std::unordered_map<std::string, std::optional<PrometheusMetric>> metrics_;  ///< by name
  std::unordered_map<std::string, Series> series_;                            ///< by name and labels
};

/// The first sample of a GPU's memory, used or free; false when the head has none.
bool find_memory(std::string_view head, Sampled& out) {
  while (!head.empty()) {
    const std::string_view line = trim(logtext::take_line(head));
    if (line.empty() || line.front() == '#' || !cut_sample(line, out)) continue;
    const auto metric = gpu_metric(out.name);
    if (metric && (metric->field == DumpReadings::Field::used || metric->field == DumpReadings::Field::free))
      return true;
  }
  return false;
}

int recognise(std::string_view head) {
  Sampled sample;
  if (find_memory(head, sample) && (!sample.labels.empty() || head.find("# TYPE ") != std::string_view::npos))
    return 91;
  return head.substr(0, 4096).find("# TYPE ") != std::string_view::npos ? 40 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  Sampled sample;
  if (!find_memory(head.text, sample))
    return fail(
        "no metric of a GPU's used memory at its beginning; expected one such as DCGM_FI_DEV_FB_USED or "
        "nvidia_smi_memory_used_bytes");
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  return make_dump_parser<Prometheus>(head, dated_text, !sample.time.empty(), *unit);
}

}  // namespace

extern const LogFormatInfo prometheus_log_format;
const LogFormatInfo prometheus_log_format{
    "prometheus", "while sleep 15; do date; curl -s node:9400/metrics; done > gpu.prom (dcgm-exporter and others)",
    recognise, make};

}  // namespace vramtrack
