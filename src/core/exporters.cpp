#include "core/exporters.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "core/command.hpp"
#include "core/memory_unit.hpp"
#include "core/toml_depth.hpp"

namespace vramtrack::exporters {
namespace {

/// The unit at the end of a metric's name, ignoring case: 1 for "..._USED_BYTES" and for
/// "..._UTIL_RATIO"; nullopt if the name does not state one.
std::optional<double> unit_in_name(std::string_view metric) {
  const std::string_view last = metric.substr(metric.find_last_of("_.") + 1);
  if (const std::uint64_t bytes = memory_unit(last); bytes != 0 && last.size() > 1) return static_cast<double>(bytes);
  constexpr std::string_view kRatio = "ratio";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (std::equal(last.begin(), last.end(), kRatio.begin(), kRatio.end(), same)) return 1;
  if (metric.starts_with("DCGM_FI_PROF_") && last == "ACTIVE") return 1;  // shares of time, in dcgm_fields.h
  return std::nullopt;
}

/// Reads tables of names; remembers the first error.
class TableReader {
 public:
  explicit TableReader(std::string_view file) : file_(file) {}

  void refuse(const toml::node& node, const std::string& why) {
    if (!error_) error_ = Error{fmt::format("{}:{}: {}", file_, node.source().begin.line, why)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  std::string text(std::string_view key, const toml::node& node) {
    if (const auto value = node.value<std::string>(); value && !value->empty()) return *value;
    refuse(node, fmt::format("\"{}\" must be a string", key));
    return {};
  }

  /// A list of texts, or one text.
  Names names(std::string_view key, const toml::node& node) {
    if (node.is_string()) return {text(key, node)};
    Names out;
    const toml::array* array = node.as_array();
    if (array == nullptr) {
      refuse(node, fmt::format("\"{0}\" must be a list of names, for example {0} = [\"a\", \"b\"]", key));
      return out;
    }
    for (const toml::node& element : *array) out.push_back(text(key, element));
    return out;
  }

  double unit(std::string_view key, const toml::node& node) {
    const std::string name = text(key, node);
    if (const std::uint64_t bytes = memory_unit(name); bytes != 0) return static_cast<double>(bytes);
    refuse(node, fmt::format("\"{}\" is not a unit; expected bytes, KiB, MiB, GiB, kB, MB or GB", name));
    return 1;
  }

 private:
  std::string file_;
  std::optional<Error> error_;
};

Exporter read_exporter(const toml::table& table, TableReader& reader) {
  Exporter out;
  const std::array<std::pair<std::string_view, Names*>, 13> lists = {{{"used", &out.used},
                                                                      {"free", &out.free},
                                                                      {"reserved", &out.reserved},
                                                                      {"total", &out.total},
                                                                      {"process", &out.process},
                                                                      {"busy", &out.busy},
                                                                      {"received", &out.received},
                                                                      {"device_labels", &out.device_labels},
                                                                      {"index_labels", &out.index_labels},
                                                                      {"partition_labels", &out.partition_labels},
                                                                      {"host_labels", &out.host_labels},
                                                                      {"model_labels", &out.model_labels},
                                                                      {"driver_labels", &out.driver_labels}}};
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (name == "name") {
      out.name = reader.text(name, node);
    } else if (name == "unit") {
      out.unit_bytes = reader.unit(name, node);
    } else if (name == "busy_unit") {
      const std::string unit = reader.text(name, node);
      if (unit != "percent" && unit != "ratio")
        reader.refuse(node, fmt::format("\"{}\" is not a unit for a share of time; expected percent or ratio", unit));
      out.busy_unit = unit == "ratio" ? 1 : 0.01;
    } else if (name == "process_unit") {
      out.process_unit_bytes = reader.unit(name, node);
    } else {
      const auto list = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == name; });
      if (list == lists.end())
        reader.refuse(node, fmt::format("\"{}\" is not a key of an exporter; {} prints examples", name,
                                        command_hint("vramtrack fleet exporters")));
      else
        *list->second = reader.names(name, node);
    }
  }
  if (out.name.empty()) reader.refuse(table, "an exporter has no name; add name = \"...\"");
  if (out.used.empty()) reader.refuse(table, "an exporter has no metric for used memory; add used = [\"...\"]");
  if (!table.contains("unit")) reader.refuse(table, "an exporter has no unit; add unit = \"bytes\" or \"MiB\"");
  if (out.host_labels.empty()) out.host_labels = {"instance"};
  if (out.device_labels.empty() && out.index_labels.empty())
    reader.refuse(table, "nothing distinguishes the GPUs of a host; add device_labels or index_labels");
  return out;
}

/// A table in which every key is a list of names.
template <std::size_t N>
void read_lists(std::string_view of, const toml::table& table, TableReader& reader,
                const std::array<std::pair<std::string_view, Names*>, N>& lists) {
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    const auto list = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == name; });
    if (list == lists.end())
      reader.refuse(node, fmt::format("\"{}\" is not a key of [{}]", name, of));
    else
      *list->second = reader.names(name, node);
  }
}

void read_workload(const toml::table& table, TableReader& reader, WorkloadLabels& out) {
  read_lists<10>("workload", table, reader,
                 {{{"job", &out.job},
                   {"job_name", &out.job_name},
                   {"user", &out.user},
                   {"namespace", &out.name_space},
                   {"pod", &out.pod},
                   {"container", &out.container},
                   {"image", &out.image},
                   {"framework", &out.framework},
                   {"pid", &out.pid},
                   {"process_name", &out.process_name}}});
}

void read_context(const toml::table& table, TableReader& reader, ContextMetrics& out) {
  read_lists<3>("context", table, reader,
                {{{"pods", &out.pods}, {"cache", &out.cache}, {"cache_host_labels", &out.cache_host_labels}}});
}

Status read_file(std::string_view toml, std::string_view file, std::vector<Exporter>& exporters,
                 WorkloadLabels& workload, ContextMetrics& context) {
  if (const Status bounded = check_key_depth(toml, file); !bounded) return fail(bounded.error());
  TableReader reader(file);
  try {
    const toml::table table = toml::parse(toml);
    std::vector<Exporter> own;
    for (const auto& [key, node] : table) {
      if (key.str() == "workload" && node.is_table()) {
        read_workload(*node.as_table(), reader, workload);
      } else if (key.str() == "context" && node.is_table()) {
        read_context(*node.as_table(), reader, context);
      } else if (key.str() == "exporter" && node.is_array_of_tables()) {
        for (const toml::node& element : *node.as_array()) own.push_back(read_exporter(*element.as_table(), reader));
      } else {
        reader.refuse(node, fmt::format("expected [[exporter]], [workload] or [context], found \"{}\"", key.str()));
      }
    }
    if (reader.error()) return fail(*reader.error());
    std::erase_if(exporters, [&](const Exporter& known) {
      return std::any_of(own.begin(), own.end(), [&](const Exporter& e) { return e.name == known.name; });
    });
    exporters.insert(exporters.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  } catch (const toml::parse_error& e) {
    return fail(fmt::format("{}:{}: {}", file, e.source().begin.line, e.description()));
  }
  return {};
}

}  // namespace

Result<Mapping> Mapping::read(std::string_view user_toml, std::string_view file) {
  Mapping out;
  if (const Status known = read_file(built_in(), "exporters.toml", out.exporters_, out.workload_, out.context_); !known)
    return fail(known.error());
  if (!user_toml.empty())
    if (const Status own = read_file(user_toml, file, out.exporters_, out.workload_, out.context_); !own)
      return fail(own.error());
  out.index_metrics();
  return out;
}

const Mapping& Mapping::known() {
  static const Mapping known = [] {
    auto read = Mapping::read();
    if (!read) {  // the table is part of the program: without it, logs would be read otherwise than they should
      fmt::print(stderr, "vramtrack: {}\n", read.error().message);
      std::abort();
    }
    return std::move(*read);
  }();
  return known;
}

void Mapping::index_metrics() {
  for (std::size_t i = 0; i < exporters_.size(); ++i) {
    const Exporter& e = exporters_[i];
    const std::array<std::pair<const Names*, Role>, 7> roles = {{{&e.used, Role::used},
                                                                 {&e.free, Role::free},
                                                                 {&e.reserved, Role::reserved},
                                                                 {&e.total, Role::total},
                                                                 {&e.process, Role::process},
                                                                 {&e.busy, Role::busy},
                                                                 {&e.received, Role::received}}};
    for (const auto& [names, role] : roles)
      for (std::size_t rank = 0; rank < names->size(); ++rank) {
        const std::string& name = (*names)[rank];
        const double unit_bytes = role == Role::process    ? e.process_unit_bytes
                                  : role == Role::busy     ? e.busy_unit
                                  : role == Role::received ? 1
                                                           : e.unit_bytes;
        metrics_.try_emplace(name, Known{i, rank, role, unit_in_name(name).value_or(unit_bytes)});
      }
  }
}

std::optional<MetricMeaning> Mapping::find(const std::string& metric) const {
  const auto found = metrics_.find(metric);
  if (found == metrics_.end()) return std::nullopt;
  const Known& known = found->second;
  return MetricMeaning{&exporters_[known.exporter], known.role, known.exporter, known.name_rank, known.unit_bytes};
}

}  // namespace vramtrack::exporters
