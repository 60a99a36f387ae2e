// A metric file of MLflow's file store, mlruns/EXPERIMENT/RUN/metrics/NAME: "milliseconds value step" on each line.
// Only the file name says what the values are: system/gpu_0_memory_usage_megabytes.
#include <fmt/format.h>

#include "core/option.hpp"
#include "source/log/json.hpp"
#include "source/log/recording.hpp"
#include "source/log/rewritten.hpp"
#include "source/log/scalar_metric.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

extern const LogFormatInfo scalars_log_format;

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

/// The part of a path after "metrics/", or else its last component.
std::string_view metric_of(std::string_view path) {
  constexpr std::string_view kFolder = "metrics/";
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  const std::size_t folder = path.rfind(kFolder);
  if (folder != std::string_view::npos) return path.substr(folder + kFolder.size());
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

/// The rows as JSON objects, one per line, with the value under `name`.
std::string as_json(std::string_view lines, const std::string& name) {
  std::string out;
  while (!lines.empty()) {
    const bool ends = lines.find('\n') != std::string_view::npos;
    const std::string_view line = logtext::take_line(lines);
    Row row;
    const bool is_row = ends && read_row(line, row);  // the last line may lack digits
    out += is_row ? fmt::format("{{\"timestamp\": {}, {}: {}}}", row.ms, name, row.value.value()) : std::string(line);
    if (ends) out += '\n';
  }
  return out;
}

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
  // Steps rise or are all 0; any other constant may be the total memory.
  const bool steps = last > first || last == 0 || lines == 1;
  return lines > 0 && steps ? 75 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  std::string_view name = metric_of(head.file);
  const auto metric = scalar_metric(name);
  const bool is_used = metric && !metric->is_total;
  if (!is_used && (metric || head.options->unit.empty()))
    return fail(
        fmt::format("the name of the metric, '{}', is not that of a GPU's used memory; expected a file such as "
                    "metrics/system/gpu_0_memory_usage_megabytes, or give {} if the values are memory",
                    logtext::excerpt(name), name_of(Option::unit)));
  if (!is_used) name = "gpu_memory_used";  // the user declares it to be memory
  return make_rewritten(head, {[key = json_string(name)](std::string_view lines) { return as_json(lines, key); }},
                        scalars_log_format.make);
}

}  // namespace

extern const LogFormatInfo mlflow_log_format;
const LogFormatInfo mlflow_log_format{"mlflow", "mlruns/*/*/metrics/system/gpu_0_memory_usage_megabytes", recognise,
                                      make, each_line_is_a_record};

}  // namespace vramtrack
