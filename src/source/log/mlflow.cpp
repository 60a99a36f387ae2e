// A metric file of MLflow's file store, mlruns/EXPERIMENT/RUN/metrics/NAME: "milliseconds value step" on each line.
// Only the file's name says what the values are: system/gpu_0_memory_usage_megabytes.
#include <fmt/format.h>

#include <cmath>

#include "core/option.hpp"
#include "source/log/dumps.hpp"
#include "source/log/recording.hpp"
#include "source/log/scalar_metric.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::take_word;

struct Row {
  std::int64_t ms = 0;
  logtext::Decimal value;
  std::int64_t step = 0;
};

/// "1772359200000 4845.5 12"; the step is negative or missing in old files.
bool read_row(std::string_view line, Row& row) {
  const auto ms = logtext::whole_number<std::int64_t>(take_word(line));
  if (!ms || *ms < 900'000'000'000 || *ms > 4'100'000'000'000) return false;
  row.ms = *ms;
  const std::string_view value = take_word(line);
  if (!logtext::read_decimal(value, row.value) || row.value.length != value.size()) return false;
  const std::string_view word = take_word(line);
  const auto step = logtext::whole_number<std::int64_t>(word);
  row.step = step.value_or(0);
  return (word.empty() || step) && logtext::trim(line).empty();
}

/// The part of a path after "metrics/", else its last part.
std::string_view metric_of(std::string_view path) {
  constexpr std::string_view kFolder = "metrics/";
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  const std::size_t folder = path.rfind(kFolder);
  if (folder != std::string_view::npos) return path.substr(folder + kFolder.size());
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

class Mlflow final : public LineReader {
 public:
  Mlflow(ScalarUse use, std::vector<std::string> assumptions) : use_(use) { assumptions_ = std::move(assumptions); }

  [[nodiscard]] bool clock_is_relative() const override { return false; }

 private:
  void read_line(std::string_view text, std::uint64_t /*number*/, bool whole, LogRows& rows) override {
    const std::string_view line = logtext::trim(text);
    if (line.empty()) return;
    Row row;
    const double bytes = read_row(line, row) ? row.value.value() * use_.unit_bytes : -1;
    if (!whole || !(bytes >= 0 && bytes < 1e18))
      return rows.skip(rows.line, !whole ? std::string("truncated last line")
                                         : fmt::format("no 'milliseconds value step' in '{}'", logtext::excerpt(line)));
    if (!device_) {
      LogDevice gpu;
      gpu.index = use_.gpu;
      device_ = rows.device(gpu);
    }
    const SeriesId series =
        use_.allocator ? rows.further_series(*device_, *use_.allocator, 0) : rows.device_series(*device_);
    rows.add(Timestamp{std::chrono::milliseconds{row.ms}}, series, static_cast<std::uint64_t>(std::llround(bytes)));
  }

  ScalarUse use_;
  std::optional<std::size_t> device_;
};

int recognise(std::string_view head) {
  constexpr int kLines = 50;
  int lines = 0;
  std::int64_t first = 0, last = 0;
  for (; lines < kLines && !head.empty(); ++lines) {
    Row row;
    const std::string_view line = logtext::take_line(head);
    if (head.empty() && lines > 0) break;  // it may be truncated
    if (!read_row(line, row) || (lines > 0 && row.step < last)) return 0;
    last = row.step;
    if (lines == 0) first = last;
  }
  // Steps rise or are all 0; any other constant may be a total memory.
  const bool steps = last > first || last == 0 || lines == 1;
  return lines > 0 && steps ? 75 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  const std::string_view name = metric_of(head.file);
  ScalarSeen seen{std::string(name), 0, false};
  for (std::string_view rest = head.text; !rest.empty();) {
    Row row;
    if (!read_row(logtext::take_line(rest), row)) continue;
    seen.most = std::max(seen.most, row.value.value());
    seen.has_fraction |= row.value.has_fraction;
  }
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  std::vector<std::string> assumptions;
  const auto metric = scalar_metric(name);
  if (metric && !metric->is_total) {
    auto uses = choose_scalars({seen}, *unit, head.options->capacity_bytes, assumptions);
    if (!uses) return fail(std::move(uses.error()));
    return std::make_unique<Mlflow>(uses->begin()->second, std::move(assumptions));
  }
  if (*unit != 0 && !metric)  // the user says that it is memory
    return std::make_unique<Mlflow>(ScalarUse{0, false, static_cast<double>(*unit)}, std::move(assumptions));
  return fail(
      fmt::format("the name of the metric, '{}', is not that of a GPU's used memory; expected a file such as "
                  "metrics/system/gpu_0_memory_usage_megabytes, or give {} if the values are memory",
                  logtext::excerpt(name), name_of(Option::unit)));
}

}  // namespace

extern const LogFormatInfo mlflow_log_format;
const LogFormatInfo mlflow_log_format{"mlflow", "mlruns/*/*/metrics/system/gpu_0_memory_usage_megabytes", recognise,
                                      make, each_line_is_a_record};

}  // namespace vramtrack
