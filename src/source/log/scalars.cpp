// Metrics of a training run as JSON objects, one per line or in an array, each with a time: wandb's system metrics
// (wandb-events.jsonl; history(stream="events") of its API), home-made loggers, and what run_file.cpp makes of binary
// .wandb and TensorBoard files.
//
//   {"_timestamp": 1772359200.5, "system.gpu.0.memoryAllocatedBytes": 5080350720, "system.gpu.0.memoryAllocated": 19.7}
//   {"time": "2026-03-01T10:00:00Z", "gpu0_mem_used_mib": 4845, "loss": 0.3}
//   {"ts": 1772359200, "gpus": [{"id": 0, "mem_used_mb": 4845}, {"id": 1, "mem_used_mb": 9000}]}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "source/log/clock_choice.hpp"
#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/json.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/labels.hpp"
#include "source/log/messages.hpp"
#include "source/log/owners.hpp"
#include "source/log/positioned_rows.hpp"
#include "source/log/recording.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

/// Number of objects in the head from which a parser learns the keys.
constexpr std::size_t kSurveyed = 4000;

/// What the head shows: the time key, the meaning of other keys, and the memory metrics.
struct Survey {
  std::string time_key;
  std::string epoch_key;  ///< if the time key counts steps, which may restart with each epoch; empty: none
  StampReader::Title time_title;
  std::vector<std::string> times;
  FigureKeys keys;
  std::map<std::string, ScalarSeen> seen;  ///< by name
  std::string listed;                      ///< a metric whose values are distinguished only by their position in a list
  std::string id_key;                      ///< of the values that distinguish GPUs, if no title says so; empty: none
  MemoryOf of = MemoryOf::gpus;            ///< the memory that is read
  bool in_parts = false;                   ///< objects have different metrics: several make a reading
  /// The usual lengths of lists whose elements are distinguished only by their position, by list_of().
  std::map<std::string, std::size_t> lengths;

  /// Names such a list: that of a metric, of one machine or job.
  static std::string list_of(const JsonFigure& figure) { return figure.name + '\n' + figure.owner.origin; }

  /// Whether nothing names the GPU of a figure that is read.
  [[nodiscard]] bool names_no_gpu(const JsonFigure& figure) const {
    const auto known = seen.find(figure.name);
    return known != seen.end() && !figure.owner.names_any() && !figure.owner.names_process() &&
           known->second.metric->gpu >= 0 && !known->second.metric->is_numbered;
  }
};

/// Whether an object has a time.
bool has_time(const JsonValue& object) {
  constexpr int kSureTime = 40;
  return std::any_of(object.members().begin(), object.members().end(), [](const auto& member) {
    const Column column = classify_column(member.first);
    return column.role == ColumnRole::time && column.rank >= kSureTime && !member.second.text().empty();
  });
}

/// Lists of objects with a time below the keys of a document, by key: {"job 17": [{"timestamp": ...}, ...], ...}.
void lists_below(const JsonValue& document, int depth, std::vector<std::pair<std::string, const JsonValue*>>& lists) {
  constexpr int kDeepest = 3;
  for (const auto& [key, member] : document.members()) {
    const auto& inner = member.members();
    if (member.is_array() && !inner.empty() && inner.front().second.is_object() && has_time(inner.front().second))
      lists.emplace_back(key, &member);
    else if (member.is_object() && depth < kDeepest)
      lists_below(member, depth + 1, lists);
  }
}

/// Calls `read` with each object of `document` that has a time, and what distinguishes it: the key of its list, if
/// there are several.
template <class Read>
void each_timed(const JsonValue& document, Read read) {
  std::vector<std::pair<std::string, const JsonValue*>> lists;
  if (!has_time(document)) lists_below(document, 0, lists);
  if (lists.empty()) return read(document, std::string());
  for (const auto& [key, list] : lists)
    for (const auto& [ignored, object] : list->members()) read(object, lists.size() > 1 ? key : std::string());
}

/// What surrounds an object of a head.
struct Around {
  std::string of;         ///< the key of its list, if there are several
  std::string line_time;  ///< the time on the last line that is one; empty: none
};

/// Collects the objects of a text.
class Objects final : public JsonParser {
 public:
  std::vector<JsonValue> found;
  std::vector<Around> around;  ///< each of them
  [[nodiscard]] bool clock_is_relative() const override { return true; }

 private:
  void read_object(const JsonValue& object, std::uint64_t /*line*/, LogRows& /*rows*/) override {
    each_timed(object, [&](const JsonValue& timed, const std::string& of) {
      if (found.size() >= kSurveyed) return;
      found.push_back(timed);
      around.push_back({of, line_time_});
    });
  }
  void read_text(std::string_view text, std::uint64_t /*line*/, bool /*whole*/, LogRows& /*rows*/) override {
    if (const std::string_view time = dated_text(text); !time.empty()) line_time_ = time;
  }

  std::string line_time_;
};

std::vector<JsonValue> objects_of(std::string_view text, std::vector<Around>* around = nullptr) {
  Catalog catalog;
  DeviceRoster roster;
  LogRows rows(catalog, roster, "head", std::nullopt);
  Objects objects;
  objects.parse(text, 1, false, rows);
  if (around != nullptr) *around = std::move(objects.around);
  return std::move(objects.found);
}

/// Chooses the clock among the keys of the objects that have a metric.
Status choose_time_key(const std::vector<JsonValue>& objects, Survey& out, std::vector<std::string>& assumptions) {
  std::vector<const JsonValue*> records;
  std::map<std::string, bool> is_metric;  // by name
  FigureReader reader{FigureKeys{}};
  for (const JsonValue& object : objects) {
    const std::vector<JsonFigure>& figures = reader.read(object);
    if (std::any_of(figures.begin(), figures.end(), [&](const JsonFigure& figure) {
          const auto [it, is_new] = is_metric.try_emplace(figure.name);
          if (is_new) it->second = scalar_metric(figure).has_value();
          return it->second;
        }))
      records.push_back(&object);
  }
  if (records.empty())  // {"process_memory_mib": 4000}
    for (const JsonValue& object : objects) records.push_back(&object);
  ClockRecords head;
  std::vector<std::string_view> keys;
  std::set<std::string_view> known;
  for (const JsonValue* const object : records)
    for (const auto& [key, value] : object->members()) {
      if (value.text().empty() || !known.insert(key).second) continue;
      keys.emplace_back(key);
      head.fields.push_back(named_field(fmt::format("the key '{}'", logtext::excerpt(key)), key));
    }
  head.series.assign(records.size(), 0);
  head.value = [&](std::size_t field, std::size_t record) -> ClockValue {
    const JsonValue* const value = records[record]->find(keys[field]);
    if (value == nullptr || value->text().empty()) return {};
    return value->is_number() ? ClockValue{ClockValue::Form::number, value->number()} : read_clock_value(value->text());
  };
  const auto choice = choose_clock(head, assumptions);
  if (!choice) return fail(choice.error());
  if (choice->time >= 0) out.time_key = keys[static_cast<std::size_t>(choice->time)];
  if (choice->outer_count >= 0) out.epoch_key = keys[static_cast<std::size_t>(choice->outer_count)];
  out.time_title = choice->title;
  return {};
}

/// Whether the key of a series only repeats the index of the GPU beside it.
bool repeats_index(const std::vector<JsonValue>& objects, std::string_view key) {
  std::string_view index;
  for (const auto& [beside, value] : objects.front().members())
    if (classify_column(beside).role == ColumnRole::index) index = beside;
  std::vector<std::string_view> numbers, ids;
  for (const JsonValue& object : objects) {
    numbers.push_back(series_text(object, key));
    ids.push_back(series_text(object, index));
  }
  return !index.empty() && repeat_ids(numbers, ids);
}

/// Keys that distinguish series, by their titles and values: with a few different values, not a new one in each object.
void find_series_keys(const std::vector<JsonValue>& objects, Survey& out) {
  std::map<std::string, std::pair<std::set<std::string>, std::size_t>> values;
  std::vector<std::string> in_order;
  const auto see = [&](const std::string& name, std::string_view text) {
    const ColumnRole role = classify_column(key_of(name)).role;
    if (text.empty() || (role != ColumnRole::series && role != ColumnRole::pid)) return;
    auto& [its, n] = values[name];
    if (n++ == 0) in_order.push_back(name);
    its.emplace(text);
  };
  for (const JsonValue& object : objects) {
    for (const auto& [key, value] : object.members())
      if (value.is_object()) see(key, series_text(object, key));
    for (const auto& [name, text] : fields_of(object, FieldsOf::descriptions)) see(name, text);
  }
  for (const std::string& key : in_order) {
    const auto& its = values[key];
    if (classify_column(key_of(key)).role == ColumnRole::pid) {
      const std::vector<std::string_view> pids(its.first.begin(), its.first.end());
      if (number_programs(pids)) (pids.size() > 1 ? out.keys.series : out.keys.measures).push_back(key);
    } else if (its.first.size() > 1 && its.first.size() * 2 <= its.second && !repeats_index(objects, key)) {
      out.keys.series.push_back(key);
    }
  }
}

/// Keys such as "gpu" whose numbers do not cycle through GPUs are measures, and an index may number the rows.
void find_measures(const std::vector<JsonValue>& objects, Survey& out, std::vector<std::string>& assumptions) {
  struct Index {
    std::string name;  // of the first figure below it
    bool is_unsure = false;
    std::vector<std::string> values, times;
    RecordOwners owners;
  };
  std::map<std::string, Index> indexes;
  FigureReader reader(out.keys);
  for (const JsonValue& object : objects) {
    const JsonValue* const time = object.find(out.time_key);
    for (const JsonFigure& figure : reader.read(object)) {
      if (figure.owner.index_key.empty() || !scalar_metric(figure)) continue;
      Index& its = indexes[figure.owner.index_key];
      its.is_unsure = figure.owner.is_unsure;
      if (its.name.empty()) its.name = figure.name;
      if (its.name != figure.name) continue;
      its.values.push_back(figure.owner.index_text);
      its.times.push_back(time != nullptr ? time->text() : std::string());
      const std::string origin = figure.owner.origin + '\n' + figure.owner.partition + '\n' + figure.owner.share;
      its.owners.origins.push_back(origin);
      its.owners.processes.push_back(
          fmt::format("{}\n{}\n{}", origin, figure.owner.pid.value_or(0), figure.owner.process));
    }
  }
  for (const auto& [key, its] : indexes) {
    const std::vector<std::string_view> values(its.values.begin(), its.values.end());
    const std::vector<std::string_view> times(its.times.begin(), its.times.end());
    // "gpu_index" cannot number anything else.
    const bool are_rows = !read_label(key_of(key)).gpu && number_rows(values, times);
    if (are_rows)
      assumptions.push_back(
          fmt::format("the key '{}' numbers the objects: it is not read as a GPU's index", logtext::excerpt(key)));
    if (are_rows || (its.is_unsure && !numbers_gpus(values, times, its.owners, true))) out.keys.measures.push_back(key);
  }
}

/// The keys that name the owners of figures beside those that do by themselves: see find_owner_fields(). If none does,
/// other rules hold: find_id_key(), count_unnamed_gpus().
void find_owner_keys(const std::vector<JsonValue>& objects, Survey& out, std::vector<std::string>& assumptions) {
  HeadRecords records;
  std::vector<std::size_t> objects_of_records;
  std::set<std::string> figures;
  bool has_process = false;
  bool names_any = false;
  FigureReader reader(out.keys);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const JsonValue* const time = objects[i].find(out.time_key);
    if (time == nullptr) continue;
    for (const JsonFigure& figure : reader.read(objects[i])) {
      if (!figure.is_amount || !scalar_metric(figure)) continue;
      figures.insert(figure.name);
      has_process |= figure.owner.names_process();
      records.owners.push_back(
          fmt::format("{} {} {}", figure.name, device_id(figure.owner.device()), figure.owner.pid.value_or(0)));
      records.times.emplace_back(time->text());
      records.amounts.push_back(figure.number);
      objects_of_records.push_back(i);
      names_any |= figure.owner.names_any() || figure.owner.names_process();
    }
  }
  std::map<std::string, std::vector<std::string_view>> texts;  // by name and object
  for (std::size_t i = 0; i < objects.size(); ++i)
    for (const auto& [name, text] : fields_of(objects[i])) {
      const ColumnRole role = classify_column(key_of(name)).role;
      if (name == out.time_key || name == out.epoch_key || figures.contains(name)) continue;
      if (role == ColumnRole::process_name ? has_process : !names_any) continue;
      auto& its = texts[name];
      its.resize(objects.size());
      its[i] = text;
    }
  std::vector<std::string> names;
  std::vector<HeadField> fields;
  for (const auto& [name, its] : texts) {
    HeadField field;
    for (const std::size_t object : objects_of_records) field.push_back(its[object]);
    const std::string_view key = key_of(name);
    if (classify_column(key).role != ColumnRole::process_name && !may_name_owner(key, field)) continue;
    names.push_back(name);
    fields.push_back(std::move(field));
  }
  std::vector<std::string> found;
  for (const std::size_t field : find_owner_fields(std::move(records), fields)) found.push_back(names[field]);
  if (found.empty()) return;
  assumptions.push_back(distinguished_by_fields(found));
  out.keys.distinguishing.insert(out.keys.distinguishing.end(), found.begin(), found.end());
}

/// The time of an object as text: steps continue across epochs that restart them. REQUIRES: it has the time key.
std::string time_of(const JsonValue& object, const Survey& survey, EpochCounter& counter) {
  const JsonValue& time = *object.find(survey.time_key);
  const JsonValue* const epoch = survey.epoch_key.empty() ? nullptr : object.find(survey.epoch_key);
  if (epoch == nullptr || !time.whole() || !epoch->whole() || *time.whole() < 0 || *epoch->whole() < 0)
    return time.text();
  return std::to_string(
      counter.next(static_cast<std::uint64_t>(*time.whole()), static_cast<std::uint64_t>(*epoch->whole())));
}

/// Whether a metric shows how much is in use, of a GPU that its name does not number.
bool is_in_use(const std::optional<ScalarMetric>& metric) {
  return metric && !metric->is_total && !metric->is_percent && !metric->is_numbered;
}

/// A key of the outermost object whose values distinguish the GPUs of a reading, although it does not say so.
void find_id_key(const std::vector<JsonValue>& objects, Survey& out) {
  if (out.time_key.empty()) return;
  std::string name;  // of the first figure that names no GPU
  std::vector<const JsonValue*> rows;
  std::vector<std::string_view> times;
  std::vector<double> used;
  FigureReader reader(out.keys);
  for (const JsonValue& object : objects) {
    const JsonValue* const time = object.find(out.time_key);
    if (time == nullptr) continue;
    for (const JsonFigure& figure : reader.read(object)) {
      if (!figure.is_amount || figure.owner.names_any() || figure.owner.names_process()) continue;
      if (name.empty() && is_in_use(scalar_metric(figure, out.of))) name = figure.name;
      if (name != figure.name) continue;
      rows.push_back(&object);
      times.push_back(time->text());
      used.push_back(figure.number);
      break;
    }
  }
  if (rows.empty()) return;
  if (!out.time_title.step) used.clear();
  for (const auto& [key, text] : fields_of(*rows.front())) {
    if (key == out.time_key || key == name || !may_be_id(key_of(key))) continue;
    std::vector<std::string_view> values;
    for (const JsonValue* const row : rows) values.push_back(series_text(*row, key));
    if (!goes_round(values, times, used)) continue;
    out.id_key = key;
    out.keys.series.push_back(key);
    return;
  }
}

/// The metrics of GPU memory.
void find_metrics(const std::vector<JsonValue>& objects, Survey& out) {
  out.times.clear();
  FigureReader reader(out.keys);
  EpochCounter counter;
  std::size_t fewest = SIZE_MAX;                                      // metrics in an object
  std::map<std::string, std::map<std::size_t, std::size_t>> lengths;  // of lists, by list_of(), with their numbers
  for (const JsonValue& object : objects) {
    std::set<std::string_view> its;
    for (const JsonFigure& figure : reader.read(object)) {
      if (!figure.is_amount || figure.name == out.time_key || figure.owner.pid_is_unreadable) continue;
      const auto known = out.seen.find(figure.name);
      if (known == out.seen.end()) {
        const auto metric = scalar_metric(figure, out.of);
        if (!metric) continue;
        out.seen[figure.name] = {figure.name, 0, false, figure.number, {}, metric};
        if (figure.in_bytes) out.seen[figure.name].metric->unit_bytes = 1;
      }
      ScalarSeen& seen = out.seen[figure.name];
      seen.most = std::max(seen.most, figure.number);
      seen.least = std::min(seen.least, figure.number);
      seen.values.push_back(figure.number);
      seen.has_fraction |= figure.number != std::floor(figure.number);
      if (figure.owner.by_position && figure.owner.gpu.index == 1) out.listed = figure.name;
      if (figure.owner.by_position && figure.owner.gpu.index == 0)
        ++lengths[Survey::list_of(figure)][figure.owner.in_list_of];
      its.insert(seen.name);
    }
    if (!its.empty()) fewest = std::min(fewest, its.size());
    if (const JsonValue* const time = object.find(out.time_key); !its.empty() && time != nullptr)
      out.times.push_back(time_of(object, out, counter));
  }
  out.in_parts = fewest < out.seen.size();
  for (const auto& [list, its] : lengths) out.lengths[list] = logtext::most_frequent(its)->first;
}

/// The first key that is named as the host's memory; empty: none.
std::string host_key(const std::vector<JsonValue>& objects) {
  FigureReader reader{FigureKeys{}};
  for (const JsonValue& object : objects)
    for (const JsonFigure& figure : reader.read(object))
      if (names_host_memory(figure.key)) return figure.key;
  return {};
}

Result<Survey> survey(const std::vector<JsonValue>& objects, std::vector<std::string>& assumptions) {
  Survey out;
  if (Status ok = choose_time_key(objects, out, assumptions); !ok) return fail(std::move(ok.error()));
  find_series_keys(objects, out);
  find_owner_keys(objects, out, assumptions);
  find_measures(objects, out, assumptions);
  find_owner_keys(objects, out, assumptions);  // without the measures
  const auto look_for = [&](MemoryOf of) {
    out.of = of;
    find_id_key(objects, out);
    find_metrics(objects, out);
  };
  const auto are_totals = [&out] {
    return std::all_of(out.seen.begin(), out.seen.end(),
                       [](const auto& one) { return one.second.metric->is_total && !one.second.metric->may_be_peak; });
  };
  look_for(MemoryOf::gpus);
  if (out.seen.empty()) {
    // {"process_memory_mib": 4000}
    if (!out.time_key.empty() && host_key(objects).empty()) look_for(MemoryOf::anyone);
    if (are_totals()) out.seen.clear();
  } else if (are_totals()) {
    // A total names the GPU for the amounts beside it: {"memory_left_mb": 4000, "gpu_mem_total_mb": 24576}.
    look_for(MemoryOf::beside_total);
  }
  return out;
}

/// The messages of a program in any text of an object, and the exit status of a program: {"exit_code": 137}. Calls
/// `before` before each one.
template <class Before>
void read_messages(const JsonValue& value, LogRows& rows, const Before& before) {
  for (const auto& [key, member] : value.members()) {
    if (member.is_object() || member.is_array())
      read_messages(member, rows, before);
    else if (member.is_string() && reports_out_of_memory(member.text()))
      before(), rows.out_of_memory(member.text());
    else if (member.is_string() && reports_end(member.text()))
      before(), rows.program_ended(member.text());
    else if (member.whole().value_or(0) != 0 && reports_end(key + " " + member.text()))
      before(), rows.program_ended(key + " " + member.text());
  }
}

class Scalars final : public JsonParser {
 public:
  /// `unnamed_gpus`: the objects of one time that name no GPU are of so many, in a fixed order.
  Scalars(StampReader stamp, Survey survey, std::map<std::string, ScalarUse> uses, std::size_t unnamed_gpus,
          std::vector<std::string> assumptions)
      : stamp_(std::move(stamp)),
        survey_(std::move(survey)),
        uses_(std::move(uses)),
        reader_(survey_.keys),
        held_(unnamed_gpus) {
    assumptions_ = std::move(assumptions);
    for (auto& [name, use] : uses_)
      if (const auto seen = survey_.seen.find(name); seen != survey_.seen.end())
        use.is_numbered = seen->second.metric->is_numbered;
    only_processes_ =
        std::all_of(uses_.begin(), uses_.end(), [](const auto& use) { return use.second.gpu == kProcessAround; });
  }
  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] Scale scale() const override {
    Scale scale = stamp_.scale();
    for (const auto& [name, use] : uses_)
      if (use.unit_unknown) scale.count(AmountUnit::unknown, use.unit_bytes);
    return scale;
  }
  [[nodiscard]] bool clock_wraps() const override { return stamp_.wraps(); }
  [[nodiscard]] bool processes_only() const override { return only_processes_; }
  [[nodiscard]] std::string_view needs_file_order() const override {
    if (held_.gpus() > 1) return "its rows do not name the GPU";
    return has_clock_lines() ? "the times are on lines of their own" : std::string_view{};
  }
  void finish(LogRows& rows) override {
    JsonParser::finish(rows);
    deliver(rows);
    end_reading(rows, true);
  }

 private:
  /// What objects of one time give of a GPU, or of a program on it.
  struct Given {
    Timestamp time;
    std::uint64_t line = 0;
    GpuMemory memory{};
    std::size_t device = 0;
    std::optional<std::uint32_t> pid{};  ///< of a process that is listed
    std::uint32_t allocates = 0;         ///< the pid of the allocator; 0: unknown
    std::string process{};
  };

  /// Figures of one GPU may be in separate objects: they belong to the first one that lacks them. REQUIRES: they name
  /// no GPU.
  void hold(Given object, LogRows& rows) {
    if (held_.is_of_other_reading(object.time)) end_reading(rows);
    for (Given& known : held_.reading())
      if (known.memory.take(object.memory)) return;
    held_.reading().push_back(std::move(object));
  }

  /// A message comes after what was read.
  void end_complete_reading(LogRows& rows) {
    deliver(rows);
    if (held_.is_complete()) end_reading(rows);
  }

  /// `at_end`: of the log.
  void end_reading(LogRows& rows, bool at_end = false) {
    deliver(rows);
    held_.end(rows, at_end, [&](Given& object, std::size_t position) {
      LogDevice gpu;
      gpu.index = static_cast<int>(position);
      object.device = device_of(gpu, rows);
      given_.push_back(std::move(object));
      deliver(rows);
    });
  }

  [[nodiscard]] bool has_clock_lines() const {
    return survey_.time_key.empty() && stamp_.kind() != StampReader::Kind::none;
  }
  void read_text(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) override {
    Timestamp time;
    if (!has_clock_lines() || !stamp_.read(dated_text(text), time)) {
      end_complete_reading(rows);
      return JsonParser::read_text(text, line, whole, rows);
    }
    line_time_ = time;
    rows.row_time(time);
  }

  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    if (survey_.time_key.empty() || object.find(survey_.time_key) != nullptr) return read_timed(object, {}, line, rows);
    // Lists follow one another, each in time order.
    std::vector<Timed> all;
    StampReader stamp = stamp_;
    each_timed(object, [&](const JsonValue& timed, const std::string& of) {
      Timed& its = all.emplace_back(Timed{{}, &timed, of});
      if (const JsonValue* const at = timed.find(survey_.time_key)) stamp.read(at->text(), its.time);
    });
    std::stable_sort(all.begin(), all.end(), [](const Timed& a, const Timed& b) { return a.time < b.time; });
    for (const Timed& timed : all) read_timed(*timed.object, timed.of, line, rows);
  }

  /// An object of a document, and what distinguishes it.
  struct Timed {
    Timestamp time;
    const JsonValue* object = nullptr;
    std::string of;
  };

  void read_timed(const JsonValue& object, const std::string& of, std::uint64_t line, LogRows& rows) {
    read_messages(object, rows, [&] { end_complete_reading(rows); });
    const std::vector<JsonFigure>& figures = reader_.read(object, of);
    warn_of_late_metrics(figures, line, rows);
    Timestamp time;
    bool has_time = false;
    std::optional<Given> unnamed;
    for (const JsonFigure& figure : figures) {
      const auto use = uses_.find(figure.name);
      if (use == uses_.end()) continue;
      if (!has_time) {
        if (survey_.time_key.empty()) {
          if (has_clock_lines() && !line_time_) return rows.skip(line, "no line with a time before it");
          time = line_time_ ? *line_time_ : next_time(figures);
        } else {
          const JsonValue* const at = object.find(survey_.time_key);
          if (at == nullptr || !stamp_.read(time_of(object, survey_, counter_), time))
            return rows.skip(line, fmt::format("no readable time under \"{}\"", survey_.time_key));
          rows.row_time(time);
        }
        has_time = true;
        if (time != given_time_) deliver(rows);
        given_time_ = time;
      }
      if (figure.owner.pid_is_unreadable) {
        rows.skip(line, kNoPid);
        break;
      }
      if (figure.owner.by_position && is_odd_list(figure)) {
        if (figure.owner.gpu.index == 0)
          rows.skip(line, reading_of_another_size(figure.owner.in_list_of, survey_.lengths[Survey::list_of(figure)]));
        continue;
      }
      const double amount = figure.in_bytes ? figure.number : figure.number * use->second.unit_bytes;
      if (!figure.is_amount || !(amount < 1e18)) {
        rows.skip(line, fmt::format("no amount of memory under \"{}\"", figure.name));
        continue;
      }
      const GpuMemory memory = memory_of(use->second, amount);
      if (held_.gpus() <= 1 || !survey_.names_no_gpu(figure))
        give(use->second, figure.owner, memory, rows);
      else if (!unnamed)
        unnamed = Given{time, line, memory};
      else
        unnamed->memory.take(memory);
    }
    if (!survey_.in_parts) deliver(rows);
    if (unnamed) hold(std::move(*unnamed), rows);
  }

  /// Whether a list has another length than usual, and than the one before: nobody knows which element is missing.
  bool is_odd_list(const JsonFigure& figure) {
    const std::string list = Survey::list_of(figure);
    const auto usual = survey_.lengths.find(list);
    if (usual == survey_.lengths.end()) return false;
    const std::size_t length = figure.owner.in_list_of;
    if (figure.owner.gpu.index == 0) {
      std::size_t& last = last_lengths_.try_emplace(list, usual->second).first->second;
      is_odd_list_ = length != usual->second && length != last;
      last = length;
    }
    return is_odd_list_;
  }

  /// Without a clock, the next reading begins when a figure of a GPU repeats.
  Timestamp next_time(const std::vector<JsonFigure>& figures) {
    std::vector<std::string> ids;
    for (const JsonFigure& figure : figures)
      if (uses_.contains(figure.name))
        ids.push_back(figure.name + ' ' + device_id(figure.owner.device()) + ' ' +
                      std::to_string(figure.owner.pid.value_or(0)));
    if (std::any_of(ids.begin(), ids.end(), [&](const auto& id) { return in_round_.contains(id); })) {
      ++round_;
      in_round_.clear();
    }
    in_round_.insert(ids.begin(), ids.end());
    return stamp_.at_round(round_);
  }

  /// Warns of metrics that first appear later: the metrics to read were chosen from the beginning of the log.
  void warn_of_late_metrics(const std::vector<JsonFigure>& figures, std::uint64_t line, LogRows& rows) {
    constexpr std::size_t kMostKeys = 100'000;
    for (const JsonFigure& figure : figures)
      if (known_.size() < kMostKeys && known_.insert(figure.name).second && !survey_.seen.contains(figure.name)) {
        const auto metric = scalar_metric(figure);
        if (metric && !metric->is_peak && !metric->is_free)
          rows.warn(fmt::format("{}:{}: the metric '{}' begins only here and is not read", rows.file(), line,
                                logtext::excerpt(figure.name)));
      }
  }

  std::size_t device_of(const LogDevice& gpu, LogRows& rows) {
    const auto [it, is_new] = devices_.try_emplace(device_id(gpu));
    if (is_new) it->second = rows.device(gpu);
    return it->second;
  }

  /// A figure of `amount` bytes, or per cent.
  static GpuMemory memory_of(const ScalarUse& use, double amount) {
    GpuMemory out;
    if (use.is_percent) {
      out.percent = amount / Scale::kPercentBytes;
      out.waits_for_total = use.has_total;
    } else {
      (use.is_total                                   ? out.total
       : use.is_free                                  ? out.free
       : use.allocator == Metric::allocator_allocated ? out.allocated
       : use.allocator                                ? out.reserved
                                                      : out.used) = static_cast<std::uint64_t>(std::llround(amount));
      out.grain_bytes = static_cast<std::uint64_t>(use.unit_bytes);
      out.most_free_bytes = use.most_free_bytes;
    }
    if (use.capacity_bytes != 0) out.total = use.capacity_bytes;
    return out;
  }

  /// Adds a figure to what is given of its owner.
  void give(const ScalarUse& use, const FigureOwner& owner, const GpuMemory& memory, LogRows& rows) {
    FigureOwner numbered = owner;
    if (!owner.names_gpu() && (use.is_numbered || !owner.names_any())) numbered.gpu.index = std::max(use.gpu, 0);
    const std::size_t device = device_of(numbered.device(), rows);
    std::optional<std::uint32_t> pid;
    if (use.gpu == kProcessAround && !use.is_total) pid = owner.pid.value_or(0);
    if (std::none_of(given_.begin(), given_.end(), [&](Given& given) {
          return given.device == device && given.pid == pid && given.memory.take(memory);
        }))
      given_.push_back({given_time_, rows.line, memory, device, pid, owner.pid.value_or(0), owner.process});
  }

  /// The reading has ended: adds samples of what its objects give, and of what waited for a total.
  void deliver(LogRows& rows) {
    const std::uint64_t line = rows.line;
    for (const Given& given : given_) {  // totals first: the memory of processes is compared with them
      if (!given.memory.total) continue;
      rows.total(given.time, given.device, *given.memory.total);
      if (const auto waiting = waiting_.find(given.device); waiting != waiting_.end()) {
        add(waiting->second, rows);
        waiting_.erase(waiting);
      }
    }
    for (Given& given : given_) add(given, rows);
    given_.clear();
    rows.line = line;
  }

  void add(Given& given, LogRows& rows) {
    GpuMemory& memory = given.memory;
    rows.line = given.line;
    if (const char* const why = rows.complete(given.time, given.device, memory)) rows.skip(rows.line, why);
    const bool has_amount = memory.used || memory.allocated || memory.reserved;
    if (!has_amount && (memory.free || memory.waits_for_total) && !rows.knows_total(given.device))
      waiting_.insert_or_assign(given.device, given);
    if (!given.pid) return rows.add(given.time, given.device, memory, given.allocates);
    rows.add_allocator(given.time, given.device, memory, *given.pid);
    if (!memory.used) return;
    const std::size_t process = rows.process(given.device, *given.pid, given.process, {}, {}, given.process, true);
    rows.add(given.time, rows.process_series(process), *memory.used);
  }

  StampReader stamp_;
  std::optional<Timestamp> line_time_;  ///< on the last line that is a time
  EpochCounter counter_;
  Survey survey_;
  std::map<std::string, ScalarUse> uses_;
  FigureReader reader_;
  PositionedRows<Given> held_;
  bool only_processes_ = false;
  std::set<std::string> known_;                      ///< metrics already checked
  std::map<std::string, std::size_t> last_lengths_;  ///< of lists, by Survey::list_of()
  bool is_odd_list_ = false;                         ///< the current one
  std::set<std::string> in_round_;                   ///< without a clock: the figures of the current reading
  std::uint64_t round_ = 0;
  std::map<std::string, std::size_t> devices_;  ///< by id
  Timestamp given_time_;
  std::vector<Given> given_;              ///< by the objects of that time
  std::map<std::size_t, Given> waiting_;  ///< by device: what follows from a total that is not known yet
};

/// The times on the lines of a head that are nothing else.
std::vector<std::string> clock_lines(std::string_view head) {
  std::vector<std::string> out;
  while (!head.empty() && out.size() < kSurveyed) {
    const std::string_view line = logtext::take_line(head);
    if (const std::string_view time = dated_text(line.substr(0, line.find('{'))); !time.empty()) out.emplace_back(time);
  }
  return out;
}

Evidence recognise(std::string_view head) {
  if (!is_json(head)) return Evidence::none;
  std::vector<std::string> ignored;
  const auto found = survey(objects_of(head), ignored);
  if (!found) return Evidence::own_names;
  if (!found->seen.empty() && found->of == MemoryOf::anyone) return Evidence::titles;  // texts may name a GPU's
  if (!found->seen.empty()) return found->time_key.empty() ? Evidence::named_rows : Evidence::own_names;
  if (!logtext::trim(head).starts_with('{') && !logtext::trim(head).starts_with('[')) return Evidence::none;
  return head.starts_with(kRunFileMark) ? Evidence::own_mark : Evidence::syntax;
}

/// The number of GPUs of the objects that name none, in a fixed order: see count_gpus_by_order(). `stamp` reads the
/// times as the parser will.
Result<std::size_t> count_unnamed_gpus(const std::vector<JsonValue>& objects, const std::vector<Around>& around,
                                       const Survey& survey, const std::map<std::string, ScalarUse>& uses,
                                       StampReader stamp) {
  std::map<std::string, UnnamedReadings> series;  // by the names of figures
  std::map<std::string, std::vector<double>> used;
  std::string a_time;
  FigureReader reader(survey.keys);
  EpochCounter counter;
  const bool has_times = stamp.kind() != StampReader::Kind::none;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const JsonValue& object = objects[i];
    const std::string text = survey.time_key.empty()                   ? around[i].line_time
                             : object.find(survey.time_key) != nullptr ? time_of(object, survey, counter)
                                                                       : std::string();
    Timestamp time;
    if (has_times && (text.empty() || !stamp.read(text, time))) continue;
    if (a_time.empty()) a_time = text;
    for (const JsonFigure& figure : reader.read(object, around[i].of)) {
      if (!survey.names_no_gpu(figure) || !figure.is_amount) continue;
      const auto use = uses.find(figure.name);
      if (use == uses.end() || use->second.is_total) continue;
      series[figure.name].add(seconds_between(Timestamp{}, time), figure.number);
      used[figure.name].push_back(figure.number);
    }
  }
  std::size_t gpus = 1;
  for (auto& [name, its] : series) {
    if (!has_times) {
      if (Status ok = check_alternating(used[name]); !ok) return fail(std::move(ok.error()));
      continue;
    }
    const bool counts = stamp.kind() == StampReader::Kind::step;
    ReadingWords words;
    words.of = "name no GPU";
    words.record = "record index or uuid of each GPU";
    words.grain_s = counts ? 1 : grain_of_stamp(a_time);
    const auto n = count_gpus_by_order(std::move(its), counts ? OrderEvidence::if_in_turn : OrderEvidence::may,
                                       stamp.is_relative() && !stamp.wraps(), words);
    if (!n) return fail(n.error());
    gpus = std::max(gpus, *n);
  }
  return gpus;
}

/// Whether the figures that are read have the index of a GPU beside them.
bool have_index(const std::vector<JsonValue>& objects, const Survey& survey) {
  FigureReader reader(survey.keys);
  return std::any_of(objects.begin(), objects.end(), [&](const JsonValue& object) {
    const auto& figures = reader.read(object);
    return std::any_of(figures.begin(), figures.end(), [&](const JsonFigure& figure) {
      return survey.seen.contains(figure.name) && figure.owner.gpu.index && !figure.owner.by_position;
    });
  });
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  std::vector<Around> around;
  const std::vector<JsonValue> objects = objects_of(head.text, &around);
  std::vector<std::string> assumptions;
  auto surveyed = survey(objects, assumptions);
  if (!surveyed) return fail(std::move(surveyed.error()));
  Survey& found = *surveyed;
  if (found.seen.empty()) {
    if (const std::string host = host_key(objects); !host.empty()) return fail(only_host_memory(host));
    std::string keys;
    std::map<std::string, bool> seen;
    for (const JsonValue& object : objects)
      for (const auto& [key, value] : object.members())
        if (value.is_number() && seen.size() < 12 && seen.try_emplace(key).second)
          keys += fmt::format("{}'{}'", keys.empty() ? "" : ", ", logtext::excerpt(key, 40));
    return fail(
        fmt::format("no GPU memory among the metrics ({}); expected a name such as system.gpu.0.memoryAllocatedBytes, "
                    "gpu_0_memory_used_mib or gpu0/vram_gb",
                    keys.empty() ? "none are numbers" : keys));
  }
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  std::vector<ScalarSeen> seen;
  for (const auto& [name, its] : found.seen) seen.push_back(its);
  auto uses = choose_scalars(seen, *unit, head.options->capacity_bytes, assumptions);
  if (!uses) return fail(std::move(uses.error()));
  if (uses->contains(found.listed))
    assumptions.push_back(fmt::format(
        "the metric '{}' is a list whose elements name no GPU: they are assumed to be GPU 0, 1, ... in that "
        "order; if they are not, record the index or uuid of each",
        logtext::excerpt(found.listed)));
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : objects.front().members()) keys.emplace_back(key);
  if (std::find(assumptions.begin(), assumptions.end(), kOnlyPeaks) != assumptions.end())
    if (Status ok = check_runs(keys); !ok) return fail(std::move(ok.error()));
  if (found.time_key.empty()) found.times = clock_lines(head.text);
  const std::vector<std::string_view> times(found.times.begin(), found.times.end());
  if (times.empty() && !found.time_key.empty())
    return fail(fmt::format("no time under \"{}\" beside the memory", found.time_key));
  auto stamp = StampReader::detect(times, found.time_title, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  if (found.of == MemoryOf::anyone && found.id_key.empty() && !have_index(objects, found))
    assumptions.push_back(may_be_of_host("key"));
  if (!found.id_key.empty()) assumptions.push_back(distinguished_by(found.id_key));
  const auto unnamed_gpus = count_unnamed_gpus(objects, around, found, *uses, *stamp);
  if (!unnamed_gpus) return fail(unnamed_gpus.error());
  if (*unnamed_gpus > 1) assumptions.push_back(distinguished_by_order(*unnamed_gpus));
  return std::make_unique<Scalars>(std::move(*stamp), std::move(found), std::move(*uses), *unnamed_gpus,
                                   std::move(assumptions));
}

/// In an object printed over several lines, everything inside is indented.
bool begins_record(std::string_view line, std::string_view /*before*/) {
  return line.starts_with('{');
}

}  // namespace

const LogFormatInfo scalars_log_format{
    "scalars",
    "JSON lines of metrics with a time (wandb's events, your own), .wandb files, TensorBoard event files",
    recognise,
    make,
    begins_record,
    false};

bool is_json(std::string_view head) {
  const std::size_t first = head.find('{');
  if (first == std::string_view::npos) return false;
  for (std::string_view before = head.substr(0, first); !before.empty();) {
    const std::string_view line = logtext::take_line(before);
    if (line.find_first_not_of(" \t\r[") != std::string_view::npos && dated_text(line).empty()) return false;
  }
  return true;
}

bool is_json_document(std::string_view head) {
  if (!is_json(head)) return false;
  bool spans_lines = logtext::trim(head).starts_with('[');
  std::string outside;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"' && c != '\n';
    } else if (c == '{' || c == '}') {
      depth = std::max(0, depth + (c == '{' ? 1 : -1));
    } else if (depth > 0) {
      in_string = c == '"';
      spans_lines |= c == '\n';
    } else if (c != '\n') {
      outside += c;
    } else {
      if (outside.find_first_not_of(" \t\r,[]") != std::string::npos && dated_text(outside).empty()) return false;
      outside.clear();
    }
  }
  return spans_lines;
}

}  // namespace vramtrack
