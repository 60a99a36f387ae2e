// One table of readings, written in every syntax of logs: each is read as the same series, or refused with the reason.
// The meaning of a word, a unit or an owner must not depend on the characters around it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>

#include "core/config.hpp"
#include "engine/engine.hpp"
#include "log_testing.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kStart_s = 1'772'359'200;  // 2026-03-01 10:00:00 UTC

/// A column of figures: its words, and its unit as written at the end of a title and in a line of text.
struct Figure {
  std::string words;                ///< "gpu mem used"
  std::string unit;                 ///< "mib"; empty: none
  std::vector<std::string> values;  ///< by row
};

/// A column that says whose a row is.
struct Owner {
  std::string title;
  std::vector<std::string> values;  ///< by GPU
};

/// One row per GPU and reading.
struct Table {
  std::size_t gpus = 1;
  std::string kind;                 ///< of what names the owners, for messages
  std::vector<Owner> owners;        ///< in place of the number of the GPU; empty: that names it
  std::string owner = "gpu_index";  ///< the title of the column that names the GPU; empty: none does
  std::string id_prefix;            ///< written before the number of a GPU: "B" for "B1"
  std::size_t readings = 40;
  std::int64_t period_s = 10;
  bool counts = false;        ///< it has steps in place of a clock
  bool needs_fields = false;  ///< its owners have several fields, or one beside a UUID: text may be refused
  std::vector<Figure> figures;

  std::vector<std::size_t> order;  ///< order of the rows as written; empty: unchanged

  [[nodiscard]] std::size_t rows() const { return gpus * readings; }
  /// The rows in the order in which they are written.
  [[nodiscard]] std::vector<std::size_t> written() const {
    if (!order.empty()) return order;
    std::vector<std::size_t> all(rows());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  [[nodiscard]] std::size_t gpu(std::size_t row) const { return row % gpus; }
  [[nodiscard]] std::int64_t time_s(std::size_t row) const {
    return kStart_s + period_s * static_cast<std::int64_t>(row / gpus);
  }
  [[nodiscard]] bool names_owners() const { return has_owner() || !owners.empty(); }
  [[nodiscard]] bool has_owner() const { return gpus > 1 && !owner.empty(); }
  [[nodiscard]] std::string id(std::size_t row) const { return id_prefix + std::to_string(gpu(row)); }
  /// The titles and values of the columns that say whose a row is.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> named(std::size_t row) const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Owner& its : owners) out.emplace_back(its.title, its.values[gpu(row)]);
    if (out.empty() && has_owner()) out.emplace_back(owner, id(row));
    return out;
  }
  [[nodiscard]] std::string clock_title() const { return counts ? "step" : "time"; }
  [[nodiscard]] std::string clock(std::size_t row) const {
    const std::int64_t reading = static_cast<std::int64_t>(row / gpus);
    if (counts) return std::to_string(100 * (reading + 1));
    const std::int64_t of_day = time_s(row) % 86'400;
    return fmt::format("2026-03-01 {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
  }
};

std::string title(const Figure& figure) {
  std::string out = figure.words;
  for (char& c : out)
    if (c == ' ') c = '_';
  return out + (figure.unit.empty() ? "" : "_" + figure.unit);
}

/// "4000 MiB": an amount with its unit as in text.
std::string amount(const Figure& figure, std::size_t row) {
  static const std::map<std::string, std::string> written = {{"mib", "MiB"}, {"gib", "GiB"},     {"mb", "MB"},
                                                             {"gb", "GB"},   {"bytes", "bytes"}, {"", ""}};
  const auto unit = written.find(figure.unit);
  const std::string name = unit == written.end() ? figure.unit : unit->second;
  return figure.values[row] + (name.empty() ? "" : " " + name);
}

/// The titles of a table, and the cells of a row.
std::vector<std::string> titles(const Table& table) {
  std::vector<std::string> out{table.clock_title()};
  for (const auto& [title, value] : table.named(0)) out.push_back(title);
  for (const Figure& figure : table.figures) out.push_back(title(figure));
  return out;
}

std::vector<std::string> cells(const Table& table, std::size_t row) {
  std::vector<std::string> out{table.clock(row)};
  for (const auto& [title, value] : table.named(row)) out.push_back(value);
  for (const Figure& figure : table.figures) out.push_back(figure.values[row]);
  return out;
}

std::string separated(const Table& table, std::string_view by) {
  std::string out = fmt::format("{}\n", fmt::join(titles(table), by));
  for (const std::size_t row : table.written()) out += fmt::format("{}\n", fmt::join(cells(table, row), by));
  return out;
}

std::string csv(const Table& table) {
  return separated(table, ",");
}
std::string tabs(const Table& table) {
  return separated(table, "\t");
}
std::string bars(const Table& table) {
  return separated(table, "|");
}

std::string spaces(const Table& table) {
  std::string out;
  const auto line = [&](const std::vector<std::string>& parts) {
    for (const std::string& part : parts) out += fmt::format("{:<22}  ", part);
    out += '\n';
  };
  line(titles(table));
  for (const std::size_t row : table.written()) line(cells(table, row));
  return out;
}

std::string markdown(const Table& table) {
  const std::vector<std::string> names = titles(table);
  std::string out = fmt::format("| {} |\n|", fmt::join(names, " | "));
  for (std::size_t i = 0; i < names.size(); ++i) out += "---|";
  out += '\n';
  for (const std::size_t row : table.written()) out += fmt::format("| {} |\n", fmt::join(cells(table, row), " | "));
  return out;
}

std::string quoted(const Table& table, const std::string& clock) {
  return table.counts ? clock : '"' + clock + '"';
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

std::string json_lines(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written()) {
    out += fmt::format("{{\"{}\": {}", table.clock_title(), quoted(table, table.clock(row)));
    for (const auto& [title, value] : table.named(row))
      out += fmt::format(", \"{}\": {}", title, is_number(value) ? value : '"' + value + '"');
    for (const Figure& figure : table.figures) out += fmt::format(", \"{}\": {}", title(figure), figure.values[row]);
    out += "}\n";
  }
  return out;
}

std::string members(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string out;
  for (const auto& [key, value] : all)
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", key, is_number(value) ? value : '"' + value + '"');
  return out;
}

/// The number and the figures of a GPU are in an object of their own, if it has a number.
std::string nested_json(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written()) {
    out += fmt::format("{{\"{}\": {}", table.clock_title(), quoted(table, table.clock(row)));
    std::vector<std::pair<std::string, std::string>> around, of_gpu;
    for (const auto& [title, value] : table.named(row)) {
      const bool is_number_of_gpu = title == "gpu_index" || title == "gpu";
      (is_number_of_gpu ? of_gpu : around).emplace_back(is_number_of_gpu ? "index" : title, value);
    }
    if (!around.empty()) out += ", " + members(around);
    std::string figures = members(of_gpu);
    for (const Figure& figure : table.figures)
      figures += fmt::format("{}\"{}\": {}", figures.empty() ? "" : ", ", title(figure), figure.values[row]);
    out += of_gpu.empty() ? ", " + figures + "}\n" : fmt::format(", \"gpu\": {{{}}}}}\n", figures);
  }
  return out;
}

/// An object for each reading, with a list of GPUs.
[[maybe_unused]] std::string listed_json(const Table& table) {
  std::string out, last;
  for (const std::size_t row : table.written()) {
    const std::string clock = quoted(table, table.clock(row));
    if (clock != last)
      out += fmt::format("{}{{\"{}\": {}, \"gpus\": [", out.empty() ? "" : "]}\n", table.clock_title(), clock);
    else
      out += ", ";
    last = clock;
    std::string its = members(table.named(row));
    for (const Figure& figure : table.figures)
      its += fmt::format("{}\"{}\": {}", its.empty() ? "" : ", ", title(figure), figure.values[row]);
    out += '{' + its + '}';
  }
  return out + "]}\n";
}

std::string long_csv(const Table& table) {
  std::string out = table.clock_title() + ',';
  for (const auto& [title, value] : table.named(0)) out += title + ',';
  out += "metric,value\n";
  for (const std::size_t row : table.written())
    for (const Figure& figure : table.figures) {
      out += table.clock(row) + ',';
      for (const auto& [title, value] : table.named(row)) out += value + ',';
      out += fmt::format("{},{}\n", title(figure), figure.values[row]);
    }
  return out;
}

std::string line_protocol(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written()) {
    out += "readings";
    for (const auto& [title, value] : table.named(row)) out += fmt::format(",{}={}", title, value);
    for (const Figure& figure : table.figures)
      out += fmt::format("{}{}={}", &figure == &table.figures.front() ? " " : ",", title(figure), figure.values[row]);
    out += fmt::format(" {}000000000\n", table.time_s(row));
  }
  return out;
}

/// "gpu" in place of "gpu_index", as exporters and programs write it.
std::string short_name(const std::string& title, const char* gpu) {
  return title == "gpu_index" ? gpu : title;
}

/// As `curl | grep` leaves it.
std::string samples(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written())
    for (const Figure& figure : table.figures) {
      std::string labels;
      for (const auto& [title, value] : table.named(row))
        labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", short_name(title, "gpu"), value);
      out += fmt::format("{}{} {} {}000\n", title(figure), labels.empty() ? labels : '{' + labels + '}',
                         figure.values[row], table.time_s(row));
    }
  return out;
}

std::string exposition(const Table& table) {
  std::string out;
  for (const Figure& figure : table.figures) out += fmt::format("# TYPE {} gauge\n", title(figure));
  return out + samples(table);
}

std::string key_value(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written()) {
    out += table.counts ? fmt::format("step={}", table.clock(row)) : table.clock(row);
    for (const auto& [title, value] : table.named(row)) out += fmt::format(" {}={}", short_name(title, "gpu"), value);
    for (const Figure& figure : table.figures) out += fmt::format(" {}={}", title(figure), figure.values[row]);
    out += '\n';
  }
  return out;
}

std::string prose(const Table& table) {
  std::string out;
  for (const std::size_t row : table.written()) {
    out += table.counts ? fmt::format("step {}", table.clock(row)) : table.clock(row);
    for (const auto& [title, value] : table.named(row)) out += fmt::format(" {} {}", short_name(title, "GPU"), value);
    for (const Figure& figure : table.figures)
      out += fmt::format("{} {}: {}", &figure == &table.figures.front() ? "" : ",", figure.words, amount(figure, row));
    out += '\n';
  }
  return out;
}

struct Syntax {
  std::string_view name;
  std::string (*write)(const Table&);
  bool has_clock = false;  ///< it has a clock of its own and cannot count steps
  bool orders = true;      ///< its rows are ordered; false: only labels distinguish them
  bool is_text = false;    ///< it is read by the words of its lines
};

constexpr Syntax kSyntaxes[] = {
    {"CSV", csv},
    {"tabs", tabs},
    {"spaces", spaces},
    {"bars", bars},
    {"Markdown", markdown, false, true, true},
    {"JSON lines", json_lines},
    {"nested JSON", nested_json},
    {"long CSV", long_csv},
    {"line protocol", line_protocol, true},
    {"exposition", exposition, true, false},
    {"samples", samples, true, false},
    {"key-value", key_value, false, true, true},
    {"prose", prose, false, true, true},
};

/// Whether its names are those of metrics.
bool is_of_exporter(const Syntax& syntax) {
  return syntax.write == exposition || syntax.write == samples;
}

/// What was read: what is counted, the capacities, each series with its times and amounts, and what is said of it.
struct Read {
  struct Verdict {
    std::string words;
    double confidence = 0;
    double growth_mib_per_h = 0;
  };
  std::string clock;
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> series;
  std::map<std::string, Verdict> verdicts;

  [[nodiscard]] std::string text() const {
    std::string out = clock;
    for (const auto& [name, values] : series)
      out += fmt::format("{}: {} from {:.3f} to {:.3f} MiB, {} to {}; ", name, values.size(), values.front().second,
                         values.back().second, values.front().first, values.back().first);
    for (const auto& [name, verdict] : verdicts)
      out += fmt::format("{}: {}, {:.3f}, {:.3f} MiB/h; ", name, verdict.words, verdict.confidence,
                         verdict.growth_mib_per_h);
    return out;
  }
};

/// `id_prefix`: the prefix of the GPU names in the table.
Read read_as(const logtest::Reading& r, const std::string& id_prefix) {
  Read out;
  if (r.catalog->scale.counts_steps()) out.clock += "per " + r.catalog->scale.step + "; ";
  if (r.catalog->scale.unit == AmountUnit::unknown) out.clock += "unit unknown; ";
  if (r.catalog->scale.unit == AmountUnit::percent) out.clock += "in percent; ";
  // A total may come after the first reading, in its own row.
  std::map<std::string, std::uint64_t> capacities;
  for (const DeviceInfo& device : r.catalog->devices())
    if (device.capacity_bytes) capacities[device.id] = *device.capacity_bytes;
  for (const Event& event : r.events)
    if (event.kind == Event::Kind::capacity) capacities[event.device_id] = event.capacity_bytes;
  // The keys of JSON have no order, so the parts of an id have none.
  const auto number = [&](const std::string& device) {
    std::istringstream all(device.starts_with(id_prefix) ? device.substr(id_prefix.size()) : device);
    std::vector<std::string> parts;
    for (std::string part; std::getline(all, part, '/');) parts.push_back(part);
    std::sort(parts.begin(), parts.end());
    return fmt::format("{}", fmt::join(parts, "/"));
  };
  const bool has_reserved = std::any_of(r.samples.begin(), r.samples.end(), [&](const Sample& s) {
    return r.catalog->key(s.series).metric == Metric::allocator_reserved;
  });
  const auto name_of = [&](const SeriesKey& key) {
    // Allocated memory alone is the memory in use: an allocator's in text, a GPU's in tables (0032).
    const bool is_alone = key.metric == Metric::allocator_allocated && !has_reserved;
    const Metric metric = !is_alone ? key.metric : key.pid == 0 ? Metric::device_used : Metric::process_used;
    return fmt::format("{} of {}{}", static_cast<int>(metric), number(key.device_id),
                       key.pid == 0 ? "" : fmt::format(", pid {}", key.pid));
  };
  std::map<std::string, std::uint64_t> named;
  for (const auto& [device, bytes] : capacities) named[number(device)] = bytes;
  for (const auto& [device, bytes] : named)
    out.clock += fmt::format("capacity of {}: {}; ", device, (bytes + 2048) >> 20);
  for (const Sample& s : r.samples) {
    const SeriesKey& key = r.catalog->key(s.series);
    if (is_fact(key.metric)) continue;
    out.series[name_of(key)].emplace_back(s.time.time_since_epoch().count() / 1'000'000'000,
                                          static_cast<double>(s.bytes) / 1048576.0);
  }
  Engine engine(Config{}, *r.catalog);
  engine.ingest({r.samples, r.events, {}, {}, {}});
  engine.end_of_recording();
  const auto view = engine.view();
  for (const SeriesView& s : view->series) {
    const Finding& finding = s.verdict.finding;
    out.verdicts[name_of(s.key)] = {
        fmt::format("{}, {}{}", to_string(s.verdict.severity), to_string(finding.state), finding.leak ? ", LEAK" : ""),
        finding.confidence, finding.growth_bytes_per_s.mid * 3600 / 1048576};
  }
  return out;
}

constexpr double kRounded_mib = 0.01;

bool are_alike(const Read::Verdict& a, const Read::Verdict& b) {
  return a.words == b.words && std::abs(a.confidence - b.confidence) < 0.01 &&
         std::abs(a.growth_mib_per_h - b.growth_mib_per_h) < 0.01 * std::max(1.0, std::abs(a.growth_mib_per_h));
}

bool are_alike(const Read& a, const Read& b) {
  if (a.clock != b.clock || a.series.size() != b.series.size() || a.verdicts.size() != b.verdicts.size()) return false;
  if (!std::equal(a.verdicts.begin(), a.verdicts.end(), b.verdicts.begin(),
                  [](const auto& x, const auto& y) { return x.first == y.first && are_alike(x.second, y.second); }))
    return false;
  return std::equal(a.series.begin(), a.series.end(), b.series.begin(), [](const auto& x, const auto& y) {
    return x.first == y.first && std::equal(x.second.begin(), x.second.end(), y.second.begin(), y.second.end(),
                                            [](const auto& p, const auto& q) {
                                              return p.first == q.first && std::abs(p.second - q.second) < kRounded_mib;
                                            });
  });
}

logtest::Reading read(const Syntax& syntax, const Table& table) {
  return logtest::read_text(syntax.write(table));
}

Table table_of(std::string words, std::string unit, const std::function<double(std::size_t)>& value, bool has_total) {
  Table table;
  Figure figure{std::move(words), unit, {}};
  Figure total{"gpu mem total", "mib", {}};
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double v = value(i);
    figure.values.push_back(v == std::floor(v) ? fmt::format("{:.0f}", v) : fmt::format("{:.2f}", v));
    total.values.emplace_back("24576");
  }
  table.figures.push_back(std::move(figure));
  if (has_total) table.figures.push_back(std::move(total));
  return table;
}

double rising(std::size_t i) {
  return 4000 + 60 * static_cast<double>(i);
}
double falling(std::size_t i) {
  return 20'000 - 60 * static_cast<double>(i);
}

/// The series of device 0 in MiB, or why there is none.
std::string last_of(const logtest::Reading& r) {
  if (!r.error.empty()) return "refused";
  const auto used = r.device("0");
  return used.empty() ? "nothing" : fmt::format("{:.0f} to {:.0f}", used.front().second, used.back().second);
}

TEST(Syntaxes, MemoryThatIsLeftIsFreeInEach) {
  for (const char* words : {"gpu mem left", "gpu mem remaining", "vram left", "gpu memory left", "gpu mem available"})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_EQ(last_of(read(syntax, table_of(words, "mib", falling, true))), "4576 to 6916")
          << words << " as " << syntax.name;
}

TEST(Syntaxes, UsedAndFreeMemoryAddUpToOneTotalInEach) {
  Table table = table_of("gpu mem used", "mib", rising, false);
  Figure free{"gpu mem free", "mib", {}};
  for (std::size_t i = 0; i < table.rows(); ++i)  // each value is rounded
    free.values.push_back(fmt::format("{:.0f}", 24'576 - rising(i) - static_cast<double>(i % 3)));
  table.figures.push_back(std::move(free));
  for (const Syntax& syntax : kSyntaxes) {
    const auto r = read(syntax, table);
    EXPECT_EQ(last_of(r), "4000 to 6340") << syntax.name;
    EXPECT_EQ(read_as(r, "").clock, "capacity of 0: 24576; ") << syntax.name;
    EXPECT_LE(std::count_if(r.events.begin(), r.events.end(),
                            [](const Event& event) { return event.kind == Event::Kind::capacity; }),
              1)
        << syntax.name;
  }
}

TEST(Syntaxes, WhatIsAboveTheTotalIsLeftOutAndCountedInEach) {
  for (const bool free : {false, true}) {
    Table table = table_of(free ? "gpu mem free" : "gpu mem used", "mib", free ? falling : rising, true);
    table.figures.front().values[20] = "30000";
    for (const Syntax& syntax : kSyntaxes) {
      const auto r = read(syntax, table);
      EXPECT_EQ(r.error, "") << syntax.name;
      EXPECT_EQ(r.device("0").size(), table.rows() - 1) << syntax.name;
      EXPECT_EQ(r.notes.skipped_lines, 1U) << syntax.name;
      EXPECT_THAT(r.notes.first_skipped, testing::Contains(HasSubstr("memory above the total"))) << syntax.name;
    }
  }
  // A total on a line of its own applies to the lines below it.
  std::string text = "2026-03-01 10:00:00 GPU 0 memory total: 24576 MiB\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("2026-03-01 10:00:{:02} GPU 0 memory used: {} MiB\n", i, i == 20 ? 30'000 : 4000 + i);
  const auto r = logtest::read_text(text);
  EXPECT_EQ(r.device("0").size(), 39U) << r.error;
}

TEST(Syntaxes, FreeMemoryAloneIsCountedFromTheMostThatWasFreeInEach) {
  const Table table = table_of("gpu mem free", "mib", falling, false);
  for (const Syntax& syntax : kSyntaxes) {
    if (is_of_exporter(syntax)) continue;  // exporters give the total, or used memory, as well
    const auto r = read(syntax, table);
    EXPECT_EQ(last_of(r), "0 to 2340") << syntax.name << ": " << r.error;
    EXPECT_EQ(read_as(r, "").clock, "capacity of 0: 20000; ") << syntax.name;
    EXPECT_THAT(r.warnings(), HasSubstr("only the free memory is given")) << syntax.name;
  }
}

/// A table with another column of figures.
Table with(Table table, std::string words, std::string unit, const std::function<double(std::size_t)>& value) {
  table.figures.push_back(table_of(std::move(words), std::move(unit), value, false).figures.front());
  return table;
}

TEST(Syntaxes, TheSurestFigureIsReadInEach) {
  const auto percent = [](std::size_t i) { return 30.0 + static_cast<double>(i); };
  const auto peak = [](std::size_t i) { return 9000.0 + static_cast<double>(i); };
  const auto expect = [](const Table& table, const std::string& mib, bool by_exporters = true) {
    for (const Syntax& syntax : kSyntaxes)
      if (by_exporters || !is_of_exporter(syntax)) {
        const auto r = read(syntax, table);
        EXPECT_EQ(last_of(r), mib) << syntax.name << ": " << r.error << "\n" << syntax.write(table).substr(0, 200);
      }
  };
  const Table free = table_of("gpu mem free", "mib", falling, true);
  expect(with(free, "gpu mem used", "percent", percent), "4576 to 6916");
  expect(with(free, "gpu mem peak", "mib", peak), "4576 to 6916");
  const Table free_alone = table_of("gpu mem free", "mib", falling, false);
  expect(with(free_alone, "gpu mem peak", "mib", peak), "0 to 2340", false);
  const Table percents = table_of("gpu mem used", "percent", percent, false);
  const std::string whole = "30720 to 70656";  // 100 % is that many MiB
  expect(percents, whole, false);
  expect(with(percents, "gpu mem peak", "mib", peak), whole, false);
}

TEST(Syntaxes, ATotalNamesTheGpuOfTheAmountsBesideIt) {
  for (const char* words : {"memory left", "memory available"})
    for (const Syntax& syntax : kSyntaxes) {
      const bool has_names = syntax.name == "CSV" || syntax.name == "JSON lines" || syntax.name == "long CSV" ||
                             syntax.name == "line protocol";
      if (!has_names) continue;
      EXPECT_EQ(last_of(read(syntax, table_of(words, "mib", falling, true))), "4576 to 6916")
          << words << " as " << syntax.name;
    }
}

TEST(Syntaxes, MemoryOfTheHostIsRefusedForOneReasonInEach) {
  for (const char* words : {"cpu mem used", "host mem used", "swap mem used", "system memory used", "ram used", "rss",
                            "pss", "uss", "vms", "vsz"})
    for (const Syntax& syntax : kSyntaxes) {
      const auto r = read(syntax, table_of(words, "mib", rising, false));
      EXPECT_THAT(r.error, HasSubstr("is the memory of the host, "))
          << words << " as " << syntax.name << ": " << last_of(r);
    }
}

TEST(Syntaxes, AChangeOfMemoryIsNotReadInAny) {
  for (const char* words : {"gpu mem delta", "gpu mem growth", "gpu mem increase", "gpu mem freed",
                            "gpu memory difference", "gpu mem change"})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_NE(read(syntax, table_of(words, "mib", rising, true)).error, "") << words << " as " << syntax.name;
}

TEST(Syntaxes, ALimitAloneIsNotReadInAny) {
  for (const char* words : {"gpu mem limit", "gpu mem capacity", "gpu memory size"})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_NE(read(syntax, table_of(words, "mib", rising, false)).error, "") << words << " as " << syntax.name;
}

TEST(Syntaxes, APeakIsReadWithAWarningInEach) {
  for (const char* words : {"gpu mem highest", "gpu mem maximum", "gpu mem peak", "gpu mem max"})
    for (const bool has_total : {false, true})
      for (const Syntax& syntax : kSyntaxes) {
        const auto r = read(syntax, table_of(words, "mib", rising, has_total));
        EXPECT_EQ(last_of(r), "4000 to 6340") << words << " as " << syntax.name << ": " << r.error;
        EXPECT_THAT(r.warnings(), HasSubstr("only peaks are given")) << words << " as " << syntax.name;
      }
}

TEST(Syntaxes, FractionsWithoutAUnitAreGuessedAlike) {
  const auto from = [](double least) {
    return [least](std::size_t i) { return least + 0.25 + static_cast<double>(i); };
  };
  for (const auto& [least, expected] : {std::pair(400.0, "400 to 439"), {10.0, "10496 to 50432"}})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_EQ(last_of(read(syntax, table_of("gpu mem used", "", from(least), false))), expected) << syntax.name;
  for (const Syntax& syntax : kSyntaxes) {
    const auto r = read(syntax, table_of("gpu mem used", "", from(100), false));
    EXPECT_EQ(r.catalog->scale.unit, AmountUnit::unknown) << syntax.name << ": " << r.error;
  }
}

TEST(Syntaxes, AUnitIsTheSameInEach) {
  for (const auto& [unit, expected] :
       {std::pair("mib", "4000 to 6340"), {"mb", "4000 to 6340"}, {"megabytes", "3815 to 6046"}})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_EQ(last_of(read(syntax, table_of("gpu memory used", unit, rising, false))), expected)
          << unit << " as " << syntax.name;
  LogOptions options = logtest::utc();
  for (const auto& [unit, expected] :
       {std::pair("MiB", "4000 to 6340"), {"MB", "4000 to 6340"}, {"megabytes", "3815 to 6046"}}) {
    options.unit = unit;
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_EQ(last_of(logtest::read_text(syntax.write(table_of("gpu memory used", "", rising, false)), options)),
                expected)
          << unit << " as " << syntax.name;
  }
}

TEST(Syntaxes, MegabytesAreDecimalInEachIfOnlyThenTheyAreWholeAllocations) {
  for (const char* unit : {"mb", ""}) {
    Table table = table_of("gpu mem used", unit, rising, false);
    for (std::size_t i = 0; i < table.rows(); ++i)
      table.figures.front().values[i] = fmt::format("{:.6f}", static_cast<double>(8'000'001 + 20'011 * i) * 512 / 1e6);
    for (const Syntax& syntax : kSyntaxes) {
      if (is_of_exporter(syntax) && *unit != '\0') continue;  // an exporter's names imply one unit
      EXPECT_EQ(last_of(read(syntax, table)), "3906 to 4287") << syntax.name;
    }
  }
}

TEST(Syntaxes, PagesAreNoAmountOfMemoryInAny) {
  for (const char* unit : {"pages", "blocks"})
    for (const Syntax& syntax : kSyntaxes)
      EXPECT_NE(read(syntax, table_of("gpu mem used", unit, rising, false)).error, "") << unit << " as " << syntax.name;
  EXPECT_THAT(read(kSyntaxes[0], table_of("gpu mem used", "pages", rising, false)).error,
              HasSubstr("nothing says how large one of its units is"));
}

TEST(Syntaxes, ADateAndATimeAreOneCellOfATable) {
  Table table = table_of("gpu mem used", "mib", rising, true);
  table.gpus = 2;
  table.readings /= 2;
  for (const char* by : {" ", "  "}) {
    const auto r = logtest::read_text(separated(table, by));
    ASSERT_EQ(r.error, "") << by;
    EXPECT_EQ(last_of(r), "4000 to 6280") << by;
    EXPECT_EQ(r.device("1").back().second, 6340) << by;
    EXPECT_EQ(r.device("0").back().first - r.device("0").front().first, 190) << by;
  }
}

TEST(Syntaxes, PartitionsOfAnExporterAreDevicesOfTheirOwn) {
  std::string text = "# TYPE gpu_used_vram gauge\n";
  for (int i = 0; i < 20; ++i)
    for (int partition = 0; partition < 2; ++partition)
      text += fmt::format("gpu_used_vram{{gpu_id=\"0\",gpu_partition_id=\"{}\",hostname=\"n1\"}} {} {}000\n", partition,
                          partition == 0 ? 1000 + 100 * i : 9000, kStart_s + 10 * i);
  const auto r = logtest::read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
}

/// A table of 4 GPUs; the third one leaks.
Table four_gpus(std::string owner, std::string id_prefix) {
  Table table;
  table.gpus = 4;
  table.owner = std::move(owner);
  table.id_prefix = std::move(id_prefix);
  Figure figure{"gpu mem used", "mib", {}};
  for (std::size_t row = 0; row < table.rows(); ++row)
    figure.values.push_back(std::to_string(2000 + 5000 * table.gpu(row) + (table.gpu(row) == 2 ? 15 * row : row % 7)));
  table.figures.push_back(std::move(figure));
  return table;
}

/// Puts the rows of each reading in another order, which is then meaningless.
void shuffle_readings(Table& table, std::mt19937_64& random) {
  table.order.resize(table.rows());
  std::iota(table.order.begin(), table.order.end(), std::size_t{0});
  for (auto reading = table.order.begin(); reading != table.order.end();
       reading += static_cast<std::ptrdiff_t>(table.gpus))
    std::shuffle(reading, reading + static_cast<std::ptrdiff_t>(table.gpus), random);
}

TEST(Syntaxes, AColumnThatGoesRoundOnceAReadingIsTheGpu) {
  std::mt19937_64 random(1);
  for (const auto& [owner, id_prefix] : {std::pair("slot", ""),
                                         {"board_id", "B"},
                                         {"card", ""},
                                         {"dev", ""},
                                         {"accelerator", ""},
                                         {"gpu_name", "A100-"}})
    for (const Syntax& syntax : kSyntaxes) {
      Table table = four_gpus(owner, id_prefix);
      const std::string leaking = std::string(id_prefix) + '2';
      shuffle_readings(table, random);
      const auto r = read(syntax, table);
      ASSERT_EQ(r.error, "") << owner << " as " << syntax.name;
      EXPECT_EQ(r.series(), 4U) << owner << " as " << syntax.name;
      const auto used = r.device(leaking);
      ASSERT_EQ(used.size(), table.readings) << owner << " as " << syntax.name;
      EXPECT_EQ(used.back().second - used.front().second, 15 * 4 * 39) << owner << " as " << syntax.name;
    }
}

TEST(Syntaxes, OneOddReadingIsLeftOutAndCounted) {
  for (const bool twice : {false, true})
    for (const Syntax& syntax : kSyntaxes) {
      if (!syntax.orders) continue;
      Table table = four_gpus("", "");
      for (std::size_t i = 0; i < table.rows(); ++i)
        if (i != 81 || twice)
          for (std::size_t n = 0; n < (i == 81 ? 2U : 1U); ++n) table.order.push_back(i);
      const auto r = read(syntax, table);
      ASSERT_EQ(r.error, "") << syntax.name;
      EXPECT_EQ(r.series(), 4U) << syntax.name;
      EXPECT_EQ(r.samples.size(), 4 * (table.readings - 1)) << syntax.name;
      EXPECT_EQ(r.notes.skipped_lines, twice ? 5U : 3U) << syntax.name;
      EXPECT_EQ(r.device("2").back().second, 12000 + 15 * 158) << syntax.name;
    }
}

TEST(Syntaxes, TheMostFrequentNumberOfRowsMakesAReading) {
  for (const bool counts : {false, true})
    for (const Syntax& syntax : kSyntaxes) {
      if (!syntax.orders || (counts && syntax.has_clock)) continue;
      Table table = four_gpus("", "");
      table.counts = counts;
      for (std::size_t i = 0; i < table.rows(); ++i) {
        const std::size_t reading = i / 4;
        const bool is_odd = reading % 5 == 1 || reading % 5 == 3;  // fewer than two thirds are complete
        if (!is_odd || table.gpu(i) != (reading % 5 == 1 ? 3U : 0U)) table.order.push_back(i);
      }
      const auto r = read(syntax, table);
      ASSERT_EQ(r.error, "") << syntax.name << (counts ? ", steps" : "");
      EXPECT_EQ(r.series(), 4U) << syntax.name << (counts ? ", steps" : "");
      EXPECT_EQ(r.samples.size(), 4 * 24U) << syntax.name << (counts ? ", steps" : "");
      EXPECT_EQ(r.notes.skipped_lines, 3 * 16U) << syntax.name << (counts ? ", steps" : "");
      EXPECT_EQ(r.device("2").back().second, 12000 + 15 * 158) << syntax.name << (counts ? ", steps" : "");
    }
}

TEST(Syntaxes, AReadingInAnotherOrderDoesNotSpoilTheLog) {
  for (const Syntax& syntax : kSyntaxes) {
    if (!syntax.orders) continue;
    Table table = four_gpus("", "");
    for (std::size_t row = 0; row < table.rows(); ++row)
      table.figures[0].values[row] = std::to_string(2000 + 5000 * table.gpu(row));  // without any noise
    table.order = table.written();
    std::swap(table.order[80], table.order[81]);
    const auto r = read(syntax, table);
    ASSERT_EQ(r.error, "") << syntax.name;
    EXPECT_EQ(r.series(), 4U) << syntax.name;
  }
}

constexpr std::string_view kMayBeOfHost = "says that its memory is a GPU's: it may be that of a process or of the host";

TEST(Syntaxes, MemoryOfNobodyIsReadWithAWarningInEach) {
  for (const char* words : {"process memory", "memory used", "mem used", "memory"})
    for (const Syntax& syntax : kSyntaxes) {
      if (is_of_exporter(syntax)) continue;  // its labels name a GPU
      const auto r = read(syntax, table_of(words, "mib", rising, false));
      EXPECT_EQ(last_of(r), "4000 to 6340") << words << " as " << syntax.name << ": " << r.error;
      EXPECT_THAT(r.warnings(), HasSubstr(std::string(kMayBeOfHost))) << words << " as " << syntax.name;
    }
}

TEST(Syntaxes, TheFieldsOfAQueryAreAGpusInEach) {
  for (const Syntax& syntax : kSyntaxes) {
    if (is_of_exporter(syntax)) continue;  // its names have no dots
    const auto r = read(syntax, table_of("memory.used", "mib", rising, false));
    EXPECT_EQ(last_of(r), "4000 to 6340") << syntax.name << ": " << r.error;
    EXPECT_THAT(r.warnings(), Not(HasSubstr(std::string(kMayBeOfHost)))) << syntax.name;
  }
}

TEST(Syntaxes, AnIndexBesideTheMemoryOfNobodyIsAGpusInEach) {
  for (const Syntax& syntax : kSyntaxes) {
    if (is_of_exporter(syntax)) continue;
    Table table = table_of("memory used", "mib", rising, false);
    table.gpus = 2;
    table.readings /= 2;
    const auto r = read(syntax, table);
    EXPECT_EQ(last_of(r), "4000 to 6280") << syntax.name << ": " << r.error;
    EXPECT_THAT(r.warnings(), Not(HasSubstr(std::string(kMayBeOfHost)))) << syntax.name;
  }
}

// ---- one table, all syntaxes ----

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Table make() {
    Table table;
    table.gpus = pick(2) == 0 ? 2 + pick(3) : 1;
    if (table.gpus > 1 && pick(2) == 0) {
      table.owner = std::array{"", "slot", "board_id", "card", "dev", "accelerator", "device_id", "tray"}[pick(8)];
      table.id_prefix = table.owner == "board_id" ? "B" : "";
    }
    if (table.gpus > 1 && pick(2) == 0) name_owners(table);
    table.readings = 24 + pick(8);
    if (table.names_owners() && pick(2) == 0) shuffle_readings(table, random_);
    if (table.gpus > 1 && !table.names_owners() && pick(2) == 0) {  // a reading lacks a row
      table.order = table.written();
      table.order.erase(table.order.begin() +
                        static_cast<std::ptrdiff_t>(table.gpus + pick(table.rows() - 2 * table.gpus)));
    }
    table.period_s = 5 + static_cast<std::int64_t>(pick(60));
    table.counts = pick(4) == 0;
    constexpr std::string_view kUnits[] = {"mib", "gib", "mb", "gb", "bytes", ""};
    const std::string unit(kUnits[pick(std::size(kUnits))]);
    const std::string of = std::array{"gpu mem", "gpu memory", "vram", "cuda memory", "device memory"}[pick(5)];
    const auto say = [&](std::initializer_list<const char*> words) {
      return of + ' ' + *(words.begin() + pick(words.size()));
    };
    const std::string used = say({"used", "usage", "in use", "consumed", "occupied"});
    const std::string free = say({"free", "left", "remaining", "available", "avail"});
    const std::string total = say({"total", "capacity", "limit"});
    switch (pick(9)) {
      case 0:
        add(table, used, unit, Kind::used);
        break;
      case 6:  // each GPU has its columns
        if (table.gpus > 1) {
          add(table, used, unit, Kind::used);
          break;
        }
        table.kind = "wide";
        for (const char* gpu : {"gpu0", "gpu1", "gpu2"}) {
          add(table, std::string(gpu) + " mem used", unit, Kind::used);
          level_mib_ += 3000;
        }
        break;
      case 7:
        add(table, of + " allocated", unit, Kind::used);
        table.kind += table.kind.empty() ? "allocated alone" : ", allocated alone";
        break;
      case 1:
        add(table, used, unit, Kind::used);
        add(table, total, unit, Kind::total);
        break;
      case 2:
        add(table, free, unit, Kind::free);
        add(table, total, unit, Kind::total);
        break;
      case 3:
        add(table, used, unit, Kind::used);
        add(table, free, unit, Kind::free);
        add(table, total, unit, Kind::total);
        break;
      case 4:
        add(table, of + " allocated", unit, Kind::used);
        add(table, of + " reserved", unit, Kind::reserved);
        break;
      case 5:
        add(table, say({"peak", "highest"}), unit, Kind::used);
        break;
      default:
        add(table, used, unit, Kind::used);
        add(table, std::array{"gpu temperature", "gpu power", "loss", "gpu fan", "learning rate"}[pick(5)], "",
            Kind::other);
        break;
    }
    return table;
  }

 private:
  enum class Kind { used, free, total, reserved, other };

  /// Two or more columns, or one that is no number of a GPU.
  void name_owners(Table& table) {
    const auto column = [&](std::string title, const std::vector<std::string>& values, std::size_t each = 1) {
      Owner& its = table.owners.emplace_back();
      its.title = std::move(title);
      for (std::size_t i = 0; i < table.gpus; ++i) its.values.push_back(values[i / each % values.size()]);
      table.kind += (table.kind.empty() ? "" : " + ") + its.title;
    };
    const std::vector<std::string> pids = {"4242", "5151", "777", "6001"};
    const std::vector<std::string> names = {"python", "blender", "ollama", "trainer"};
    const std::vector<std::string> numbers = {"0", "1", "2", "3"};
    const std::vector<std::string> hosts = {"n1", "n2"};
    switch (pick(17)) {
      case 12:
      case 13:
      case 14:  // only both name an owner
        table.gpus = 4;
        table.needs_fields = true;
        column(std::array{"rack", "namespace", "job_id"}[pick(3)], {"7", "8"}, 2);
        column(std::array{"blade", "pod", "task"}[pick(3)], {"1", "2"});
        return column("gpu", {"0"});
      case 15:
        table.gpus = 4;
        table.needs_fields = true;
        column(std::array{"gpu", "card"}[pick(2)], {"0", "1"}, 2);
        return column(std::array{"partition", "xcp"}[pick(2)], {"0", "1"});
      case 16:
        table.needs_fields = true;
        column("uuid", {"GPU-8f1c0b3a-1111-2222-3333-444455556666"});
        return column(std::array{"pod", "slice", "container"}[pick(3)], {"p0", "p1", "p2", "p3"});
      case 0:
        return column("pid", pids);
      case 1:
        column("pid", numbers);
        table.kind = "pid from 0";
        return;
      case 2:
        return column("process_id", pids);
      case 3:
        return column("process_name", names);
      case 4:
        return column("command", names);
      case 5:
        column("pid", pids);
        return column("process_name", names);
      case 6:
        table.gpus = 4;
        column(std::array{"gpu_index", "gpu", "card", "device"}[pick(4)], numbers, 2);
        return pick(2) == 0 ? column("pid", pids) : column("pid", {"4242", "5151", "4242", "777"});  // one on both GPUs
      case 7:
        return column("pci_bus_id", {"0000:17:00.0", "0000:65:00.0", "0000:ca:00.0", "0000:e3:00.0"});
      case 8:
        return column("uuid", {"GPU-8f1c0b3a-1111-2222-3333-444455556666", "GPU-8f1c0b3a-1111-2222-3333-444455556667",
                               "GPU-9a1c0b3a-1111-2222-3333-444455556668", "GPU-0b1c0b3a-1111-2222-3333-444455556669"});
      case 9:
        table.gpus = 4;
        column("host", hosts, 2);
        return column("gpu", {"0", "1"});
      case 10:
        table.gpus = 4;
        column("job", {"17", "18"}, 2);
        return column("gpu", {"0", "1"});
      default:
        return column("host", {"n1", "n2", "n3", "n4"});
    }
  }

  std::size_t pick(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  void add(Table& table, const std::string& words, const std::string& unit, Kind kind) {
    if (growth_mib_ == 0) {
      growth_mib_ = 1 + static_cast<double>(pick(60));
      noise_.resize(table.rows());
      for (double& n : noise_) n = static_cast<double>(pick(9));
    }
    Figure figure{words, unit, {}};
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const double used = 4000 + level_mib_ + 3000 * static_cast<double>(table.gpu(row)) +
                          growth_mib_ * static_cast<double>(row / table.gpus) + noise_[row];
      const double mib = kind == Kind::free       ? 24'576 - used
                         : kind == Kind::total    ? 24'576
                         : kind == Kind::reserved ? used + 512
                                                  : used;
      figure.values.push_back(kind == Kind::other             ? fmt::format("{:.2f}", 40 + noise_[row] / 4)
                              : unit == "bytes"               ? fmt::format("{:.0f}", mib * 1048576)
                              : unit == "gib" || unit == "gb" ? fmt::format("{:.3f}", mib / 1024)
                                                              : fmt::format("{:.0f}", mib));
    }
    table.figures.push_back(std::move(figure));
  }

  std::mt19937_64 random_;
  double growth_mib_ = 0;
  double level_mib_ = 0;  ///< of the next column
  std::vector<double> noise_;
};

#ifdef NDEBUG
constexpr std::uint64_t kTables = 2'000;
#else
constexpr std::uint64_t kTables = 200;  // builds that check each access are many times slower
#endif

/// Each piece of the test takes every n-th seed, starting with its own, so that the pieces may run side by side.
constexpr std::uint64_t kPieces = 8;

class OneTable : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(OneTable, IsReadAlikeInAll) {
  const char* const asked = std::getenv("VRAMTRACK_TABLES");
  const std::uint64_t tables = asked != nullptr ? std::strtoull(asked, nullptr, 10) : kTables;
  const char* const drawn = std::getenv("VRAMTRACK_TEST_SEED");
  const std::uint64_t first_seed = 1'000'000 * (drawn != nullptr ? std::strtoull(drawn, nullptr, 10) : 1);
  std::map<std::string, int> wrong;
  for (std::uint64_t seed = first_seed + GetParam(); seed < first_seed + tables; seed += kPieces) {
    const Table table = Maker(seed).make();
    std::optional<Read> first;
    std::string_view its_name;
    for (const Syntax& syntax : kSyntaxes) {
      if (table.counts && syntax.has_clock) continue;
      const auto r = read(syntax, table);
      const std::string of = table.kind.empty() ? std::string() : fmt::format(" ({})", table.kind);
      if (table.gpus > 1 && !table.names_owners() && !syntax.orders) {
        if (r.error.find("that cannot be told apart") == std::string::npos)
          ++wrong[fmt::format("{} without labels is read", syntax.name)];
        continue;
      }
      if (table.needs_fields && syntax.is_text) {
        const bool is_told = (r.error + r.warnings()).find("several GPUs") != std::string::npos;
        if (!is_told && (!r.error.empty() || r.series() != table.gpus))
          ADD_FAILURE() << ++wrong[fmt::format("{} merges{}", syntax.name, of)] << ", seed " << seed << "\n"
                        << r.error << "\n"
                        << syntax.write(table).substr(0, 300);
        continue;
      }
      if (!r.error.empty()) {
        ++wrong[fmt::format("{} refused{}", syntax.name, of)];
        if (wrong[fmt::format("{} refused{}", syntax.name, of)] <= 3)
          ADD_FAILURE() << "seed " << seed << ": refused as " << syntax.name << ": " << r.error << "\n"
                        << syntax.write(table).substr(0, 300);
        continue;
      }
      const Read as = read_as(r, table.id_prefix);
      if (!first) {
        first = as;
        its_name = syntax.name;
      } else if (!are_alike(as, *first)) {
        const std::string kind = fmt::format("{} differs from {}{}", syntax.name, its_name, of);
        if (++wrong[kind] <= 3)
          ADD_FAILURE() << "seed " << seed << ": " << kind << "\n"
                        << first->text() << "\n"
                        << as.text() << "\n"
                        << syntax.write(table).substr(0, 300);
      }
    }
  }
  for (const auto& [kind, n] : wrong) ADD_FAILURE() << n << " tables: " << kind;
}

INSTANTIATE_TEST_SUITE_P(Syntaxes, OneTable, ::testing::Range(std::uint64_t{0}, kPieces));

}  // namespace
}  // namespace vramtrack
