// Tables with one figure per row, and its name in a column: each row is rewritten as a JSON object and read like those
// of `scalars`.
//
//   #datatype,string,long,dateTime:RFC3339,double,string,string,string      (InfluxDB's annotated CSV)
//   ,result,table,_time,_value,_field,_measurement,index
//   ,,0,2026-03-01T10:00:00Z,4000,memory_used,nvidia_smi,0
//
//   run_id,key,value,step,timestamp                                         (MLflow's table of metrics)
//   8f1a2b3c,system/gpu_0_memory_usage_megabytes,4194.3,0,1772359200000
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>

#include "core/option.hpp"
#include "source/log/columns.hpp"
#include "source/log/format.hpp"
#include "source/log/json.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/recording.hpp"
#include "source/log/rows.hpp"
#include "source/log/text.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {

namespace {

using logtext::trim;

struct LongPlan {
  std::string header;
  char delimiter = ',';
  std::vector<std::string> titles;
  std::size_t time = 0, name = 0, value = 0;
  std::optional<std::size_t> measurement;  ///< the group that the name belongs to
  std::vector<std::size_t> labels;
  std::vector<std::size_t> unknown;  ///< labels that may or may not distinguish GPUs or machines
  bool names_gpu = false;            ///< a label is a GPU's index, UUID or PCI bus id
};

/// The first title that is one of `names`, in their order; nullopt if there is none.
std::optional<std::size_t> find_title(const std::vector<std::string>& titles,
                                      std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (std::size_t i = 0; i < titles.size(); ++i)
      if (logtext::same_letters(titles[i], name)) return i;
  return std::nullopt;
}

/// The columns according to the header of such a table; nullopt if it is not such a header.
std::optional<LongPlan> read_header(std::string_view line) {
  LongPlan out;
  out.header = trim(line);
  out.delimiter = find_delimiter(line);
  if (out.delimiter == '\0' || looks_like_header(line, out.delimiter)) return std::nullopt;
  std::vector<std::string_view> fields;
  split_fields(out.header, out.delimiter, fields);
  out.titles.assign(fields.begin(), fields.end());
  const auto name = find_title(out.titles, {"_field", "key", "metric", "metric_name"});
  const auto value = find_title(out.titles, {"_value", "value"});
  const auto step = find_title(out.titles, {"step"});
  auto time = find_title(out.titles, {"_time", "timestamp", "time", "wall_time"});
  if (!time) time = step;
  if (!name || !value || !time) return std::nullopt;
  out.time = *time;
  out.name = *name;
  out.value = *value;
  out.measurement = find_title(out.titles, {"_measurement"});
  // In InfluxDB's CSV, "table" numbers the series, and "_start" and "_stop" belong to the query.
  const auto other = find_title(out.titles, {"result"}) ? find_title(out.titles, {"table"}) : std::nullopt;
  for (std::size_t i = 0; i < out.titles.size(); ++i) {
    const std::string& title = out.titles[i];
    const bool is_read = i == out.time || i == out.name || i == out.value || out.measurement == i;
    if (!is_read && other != i && step != i && !title.empty() && title != "result" && !title.starts_with('_'))
      out.labels.push_back(i);
  }
  for (const std::size_t label : out.labels) {
    const ColumnRole role = classify_column(out.titles[label]).role;
    out.names_gpu |= role == ColumnRole::index || role == ColumnRole::uuid || role == ColumnRole::pci;
    if (role == ColumnRole::other) out.unknown.push_back(label);
  }
  return out;
}

std::optional<LongPlan> find_plan(std::string_view head) {
  constexpr int kLooked = 20;
  for (int i = 0; i < kLooked && !head.empty(); ++i) {
    const std::string_view line = trim(logtext::take_line(head));
    if (!line.empty() && !line.starts_with('#')) return read_header(line);
  }
  return std::nullopt;
}

bool is_json_number(std::string_view text) {
  return logtext::number_in(text) && text.front() != '+' && text.front() != '.' && text.back() != '.';
}

/// Appends the row as a JSON object, or nothing if it has no time or name.
void append_json(const std::vector<std::string_view>& row, const LongPlan& plan, std::string& out) {
  const std::string_view time = row[plan.time];
  if (row[plan.name].empty() || time.empty()) return;
  out +=
      '{' + json_string(plan.titles[plan.time]) + ": " + (is_json_number(time) ? std::string(time) : json_string(time));
  for (const std::size_t label : plan.labels)
    if (!row[label].empty()) out += ", " + json_string(plan.titles[label]) + ": " + json_string(row[label]);
  out += ", ";
  if (plan.measurement) out += json_string(row[*plan.measurement]) + ": {";
  out += json_string(row[plan.name]) + ": " + std::string(row[plan.value]) + (plan.measurement ? "}}" : "}");
}

/// Removes labels that distinguish the GPUs of a reading from the unknown ones: they are ids (see scalars.cpp).
void leave_out_ids(std::string_view head, LongPlan& plan) {
  std::map<std::string, std::vector<std::vector<std::string>>, std::less<>> rows;  // by the figure's name
  std::vector<std::string_view> row;
  while (!head.empty()) {
    split_fields(trim(logtext::take_line(head)), plan.delimiter, row);
    if (row.size() == plan.titles.size() && is_json_number(row[plan.value]))
      rows[std::string(row[plan.name])].emplace_back(row.begin(), row.end());
  }
  std::erase_if(plan.unknown, [&](std::size_t label) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& of_name) {
      std::vector<std::string_view> values, times;
      for (const auto& its : of_name.second) {
        values.push_back(its[label]);
        times.push_back(its[plan.time]);
      }
      return goes_round(values, times);
    });
  });
}

/// Reasons to doubt that all rows belong to one GPU or one table.
class Doubts {
 public:
  explicit Doubts(LongPlan plan) : plan_(std::move(plan)) {}

  [[nodiscard]] const LongPlan& plan() const { return plan_; }

  void look_at_other(std::string_view line) {
    if (why_.empty() && read_header(line))
      why_ = fmt::format("its columns change partway, at the header '{}'; put the tables into files of their own",
                         logtext::excerpt(line));
  }

  void look_at_row(const std::vector<std::string_view>& row) {
    if (!why_.empty() || plan_.names_gpu || !is_of_one_gpu(row[plan_.name], row)) return;
    for (const std::size_t label : plan_.unknown) {
      const auto [it, first] = first_.try_emplace(label, row[label]);
      if (!first && it->second != row[label])
        why_ = fmt::format(
            "column {} '{}' has '{}' and '{}', and no column names the GPU: nothing says whether these are different "
            "GPUs; title it 'gpu' if they are, or remove it",
            label + 1, plan_.titles[label], logtext::excerpt(it->second), logtext::excerpt(row[label]));
    }
  }

  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  /// Whether a figure is GPU memory and its name contains no GPU number.
  bool is_of_one_gpu(std::string_view name, const std::vector<std::string_view>& row) {
    const auto found = is_of_one_.find(name);
    if (found != is_of_one_.end()) return found->second;
    const std::string measurement = plan_.measurement ? std::string(row[*plan_.measurement]) + '.' : "";
    const auto metric = scalar_metric(measurement + std::string(name));
    const bool is = metric && !metric->is_numbered;
    is_of_one_.emplace(name, is);
    return is;
  }

  LongPlan plan_;
  std::map<std::string, bool, std::less<>> is_of_one_;
  std::map<std::size_t, std::string> first_;  ///< value of an unknown label
  std::string why_;
};

std::string as_json(std::string_view text, Doubts& doubts) {
  const LongPlan& plan = doubts.plan();
  std::string out;
  std::vector<std::string_view> row;
  while (!text.empty()) {
    const bool ends = text.find('\n') != std::string_view::npos;
    const std::string_view line = trim(logtext::take_line(text));
    split_fields(line, plan.delimiter, row);
    const bool is_other = line.empty() || line.starts_with('#') || line == plan.header;
    if (!is_other && row.size() == plan.titles.size() && is_json_number(row[plan.value])) {
      append_json(row, plan, out);
      doubts.look_at_row(row);
    } else if (!is_other) {
      doubts.look_at_other(line);
    }
    if (ends) out += '\n';
  }
  return out;
}

Evidence recognise(std::string_view head) {
  return find_plan(head) ? Evidence::own_rows : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  auto plan = find_plan(head.text);
  if (!plan)
    return fail(
        "the first line names no columns of a time, a name and a value, such as '_time,_field,_value' or "
        "'key,value,timestamp'");
  leave_out_ids(head.text, *plan);
  const auto doubts = std::make_shared<Doubts>(std::move(*plan));
  return make_rewritten(
      head,
      {[doubts](std::string_view lines) { return as_json(lines, *doubts); }, {}, [doubts] { return doubts->why(); }},
      scalars_log_format.make);
}

}  // namespace

const LogFormatInfo long_csv_log_format{"long-csv",
                                        "a table with one figure a row: InfluxDB's annotated CSV, MLflow's metrics",
                                        recognise,
                                        make,
                                        each_line_is_a_record,
                                        false};

// A metric file in MLflow's file store, mlruns/EXPERIMENT/RUN/metrics/NAME: "milliseconds value step" on each line.
// Only the file's name shows what the values mean: system/gpu_0_memory_usage_megabytes.
namespace {

using logtext::take_word;

struct MlflowRow {
  std::int64_t ms = 0;
  logtext::Decimal value;
  std::int64_t step = 0;
};

/// "1772359200000 4845.5 12"; the step is negative or missing in old files.
bool read_mlflow_row(std::string_view line, MlflowRow& row) {
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

/// The percentages that MLflow records with the amounts, in the file next to theirs, by their time in ms.
struct MlflowPercentages {
  std::string name;  ///< as JSON; empty: there are none
  std::map<std::int64_t, double> values;
};

MlflowPercentages percentages_beside(const std::string& path, std::string_view name) {
  constexpr std::string_view kAmounts = "megabytes";
  constexpr std::size_t kMostBytes = 1U << 20U;  // a few of them determine the capacity
  MlflowPercentages out;
  if (!name.ends_with(kAmounts) || !path.ends_with(kAmounts)) return out;
  const auto of_percent = [&](std::string_view text) {
    return std::string(text.substr(0, text.size() - kAmounts.size())) + "percentage";
  };
  std::ifstream file(of_percent(path), std::ios::binary);
  std::string line;
  for (std::size_t bytes = 0; bytes < kMostBytes && std::getline(file, line); bytes += line.size() + 1) {
    MlflowRow row;
    if (!file.eof() && read_mlflow_row(line, row)) out.values[row.ms] = row.value.value();
  }
  if (!out.values.empty()) out.name = json_string(of_percent(name));
  return out;
}

/// The rows as JSON objects, one per line, with the value under `name` and the percentage at the same time.
std::string mlflow_as_json(std::string_view lines, const std::string& name, const MlflowPercentages& percentages) {
  std::string out;
  while (!lines.empty()) {
    const bool ends = lines.find('\n') != std::string_view::npos;
    const std::string_view line = logtext::take_line(lines);
    MlflowRow row;
    const bool is_row = ends && read_mlflow_row(line, row);  // the last line may lack digits
    const auto percent = is_row ? percentages.values.find(row.ms) : percentages.values.end();
    const std::string beside =
        percent == percentages.values.end() ? "" : fmt::format(", {}: {}", percentages.name, percent->second);
    out += is_row ? fmt::format("{{\"timestamp\": {}, {}: {}{}}}", row.ms, name, row.value.value(), beside)
                  : std::string(line);
    if (ends) out += '\n';
  }
  return out;
}

Evidence recognise_mlflow(std::string_view head) {
  constexpr int kLines = 50;
  int lines = 0;
  std::int64_t first = 0, last = 0;
  for (; lines < kLines && !head.empty(); ++lines) {
    MlflowRow row;
    const std::string_view line = logtext::take_line(head);
    if (head.empty() && lines > 0) break;  // it may be truncated
    if (!read_mlflow_row(line, row) || (lines > 0 && row.step < last)) return Evidence::none;
    last = row.step;
    if (lines == 0) first = last;
  }
  // Steps rise or are all 0; any other constant may be the total memory.
  const bool steps = last > first || last == 0 || lines == 1;
  return lines > 0 && steps ? Evidence::own_rows : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_mlflow(const LogHead& head) {
  std::string_view name = metric_of(head.file);
  const auto metric = scalar_metric(name);
  const bool is_used = metric && !metric->is_total;
  if (!is_used && (metric || head.options->unit.empty()))
    return fail(
        fmt::format("the name of the metric, '{}', is not that of a GPU's used memory; expected a file such as "
                    "metrics/system/gpu_0_memory_usage_megabytes, or give {} if the values are memory",
                    logtext::excerpt(name), name_of(Option::unit)));
  if (!is_used) name = "gpu_memory_used";  // the user has declared that it is memory
  return make_rewritten(head,
                        {[key = json_string(name), percentages = percentages_beside(std::string(head.file), name)](
                             std::string_view lines) { return mlflow_as_json(lines, key, percentages); }},
                        scalars_log_format.make);
}

}  // namespace

const LogFormatInfo mlflow_log_format{"mlflow", "mlruns/*/*/metrics/system/gpu_0_memory_usage_megabytes",
                                      recognise_mlflow, make_mlflow, each_line_is_a_record};

}  // namespace vramtrack
