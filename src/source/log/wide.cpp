// Tables with one column per series: "gpu0_mem_used_mib,gpu1_mem_used_mib", Grafana's and wandb's exports.
#include <algorithm>
#include <set>

#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;

/// A title split into the measure and the text that distinguishes its series.
struct SeriesTitle {
  std::string metric;  ///< with '#' in place of each number
  std::vector<int> numbers;
  std::string label;  ///< the run of "run - metric", the host of "metric{host="a",gpu="0"}"
};

/// The value of `name` in Prometheus labels, however its quotes were escaped.
std::string_view label_value(std::string_view labels, std::string_view name) {
  for (std::size_t at = labels.find(name); at != std::string_view::npos; at = labels.find(name, at + 1)) {
    const std::size_t equals = at + name.size();
    if ((at > 0 && labels[at - 1] != '{' && labels[at - 1] != ',' && labels[at - 1] != ' ') ||
        equals >= labels.size() || labels[equals] != '=')
      continue;
    std::string_view value = labels.substr(equals + 1);
    while (!value.empty() && (value.front() == '"' || value.front() == '\\')) value.remove_prefix(1);
    return value.substr(0, value.find_first_of("\"\\,}"));
  }
  return {};
}

SeriesTitle read_series_title(std::string_view title) {
  SeriesTitle out;
  std::string_view metric = title;
  std::string gpu;
  if (const std::size_t brace = title.find('{'); brace != std::string_view::npos) {
    metric = title.substr(0, brace);
    const std::string_view labels = title.substr(brace);
    gpu = label_value(labels, "gpu");
    if (gpu.empty()) gpu = label_value(labels, "UUID");
    for (const std::string_view name : {"Hostname", "hostname", "host", "node", "instance"})
      if (const std::string_view host = label_value(labels, name); !host.empty()) {
        out.label = host;
        break;
      }
    // Labels with none of these names still distinguish the series.
    if (gpu.empty() && out.label.empty()) out.label = labels;
  } else if (const std::size_t dash = title.rfind(" - ");
             dash != std::string_view::npos && classify_column(title.substr(dash + 3)).role != ColumnRole::other) {
    metric = title.substr(dash + 3);
    out.label = logtext::trim(title.substr(0, dash));
  }
  if (const auto index = logtext::whole_number<int>(gpu)) {
    out.metric = std::string(metric) + '#';
    out.numbers.push_back(*index);
    return out;
  }
  if (!gpu.empty()) out.label += (out.label.empty() ? "" : "/") + gpu;
  if (metric.starts_with("GPU-")) {  // it is a UUID, in which digits are not numbers
    out.label = metric;
    return out;
  }
  for (std::size_t i = 0; i < metric.size();) {
    if (!is_digit(metric[i])) {
      out.metric += metric[i++];
      continue;
    }
    std::size_t end = i;
    while (end < metric.size() && is_digit(metric[end])) ++end;
    out.numbers.push_back(logtext::whole_number<int>(metric.substr(i, end - i)).value_or(-1));
    out.metric += '#';
    i = end;
  }
  return out;
}

}  // namespace

void find_wide(std::span<const std::string_view> titles, std::span<const Column> columns, ColumnPlan& plan) {
  const auto used_at = static_cast<std::size_t>(plan.used);
  const Column& used = columns[used_at];
  std::vector<SeriesTitle> read;
  for (const std::string_view title : titles) read.push_back(read_series_title(title));
  const SeriesTitle& first = read[used_at];

  std::vector<std::size_t> group;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (columns[i].role != used.role) continue;
    const bool alike = read[i].metric == first.metric && columns[i].unit_bytes == used.unit_bytes;
    (alike ? group : others).push_back(i);
  }
  // The number that differs is the GPU's index; if several differ, none is.
  std::vector<std::size_t> differing;
  for (std::size_t n = 0; n < first.numbers.size(); ++n)
    if (std::any_of(group.begin(), group.end(), [&](std::size_t i) { return read[i].numbers[n] != first.numbers[n]; }))
      differing.push_back(n);
  if (differing.empty() && first.numbers.size() == 1) differing.push_back(0);
  const bool labelled =
      std::any_of(group.begin(), group.end(), [&](std::size_t i) { return read[i].label != first.label; });

  // The allocator's figures for the series in column `at`, and the load of its GPU.
  std::set<std::size_t> taken;
  const auto further_of = [&](std::size_t at) {
    std::vector<ColumnPlan::Further> out;
    for (std::size_t i = 0; i < titles.size(); ++i) {
      const Metric metric = columns[i].metric;
      const bool is_further = columns[i].role == used.role || columns[i].role == ColumnRole::busy;
      if (!is_further || metric == Metric::device_used || metric == used.metric ||
          read[i].numbers != read[at].numbers || read[i].label != read[at].label ||
          std::any_of(out.begin(), out.end(), [&](const auto& further) { return further.metric == metric; }))
        continue;
      out.push_back({static_cast<int>(i), metric, columns[i].unit_bytes});
      taken.insert(i);
    }
    return out;
  };
  plan.further = further_of(used_at);

  std::vector<ColumnPlan::Wide> wide;
  for (const std::size_t i : group) {
    ColumnPlan::Wide column;
    column.further = further_of(i);
    column.used = static_cast<int>(i);
    if (labelled || differing.empty()) column.label = read[i].label;
    if (differing.size() == 1) {
      column.gpu = read[i].numbers[differing.front()];
    } else {
      for (const std::size_t n : differing)
        column.label += (column.label.empty() ? "" : "/") + std::to_string(read[i].numbers[n]);
    }
    if (column.gpu < 0 && column.label.empty()) column.label = titles[i];
    const bool again = std::any_of(wide.begin(), wide.end(), [&](const ColumnPlan::Wide& w) {
      return w.gpu == column.gpu && w.label == column.label;
    });
    if (again) {
      others.push_back(i);
      continue;
    }
    for (std::size_t t = 0; t < titles.size(); ++t)
      if (columns[t].role == ColumnRole::total && plan.total >= 0 &&
          read[t].metric == read[static_cast<std::size_t>(plan.total)].metric && read[t].numbers == read[i].numbers &&
          read[t].label == read[i].label)
        column.total = static_cast<int>(t);
    wide.push_back(std::move(column));
  }
  for (const std::size_t i : others)
    if (!taken.contains(i) && columns[i].mentions_host == used.mentions_host) plan.passed_over.emplace_back(titles[i]);
  const bool one_row_a_gpu =
      plan.index >= 0 || plan.uuid >= 0 || plan.pci >= 0 || plan.pid >= 0 || !plan.series.empty();
  const bool distinct = wide.size() > 1 || plan.unnamed_measure;
  if (distinct && !one_row_a_gpu)
    plan.wide = std::move(wide);
  else
    for (const std::size_t i : group)
      if (i != used_at) plan.passed_over.emplace_back(titles[i]);
}

}  // namespace vramtrack
