#include "top/device_cards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"
#include "report/accounting.hpp"
#include "report/conclusion_words.hpp"
#include "report/words.hpp"
#include "top/chart.hpp"
#include "top/draw.hpp"
#include "top/gauges.hpp"

namespace vramtrack::top {
namespace {

/// From this width on, a one-line row with the device's activity also shows its history.
constexpr int kSparkBesideGauges = 100;

/// The time span of the small histories: the known time, in steps up to an hour, so that the first minutes fill them.
double spark_span_s(const Model& m) {
  constexpr double kMost_s = 3600;
  if (m.view->scale.counts_steps()) return kMost_s;
  double known_s = 0;
  for (const SeriesView& s : m.view->series) {
    if (s.key.pid != 0 || !s.first) continue;
    Timestamp begin = *s.first;
    if (m.feed.history_begin) begin = std::min(begin, m.feed.history_begin(s.key).value_or(begin));
    known_s = std::max(known_s, seconds_between(begin, m.view->time));
  }
  for (const double minutes : {2.0, 5.0, 10.0, 15.0, 30.0})
    if (known_s <= minutes * 60) return minutes * 60;
  return kMost_s;
}

/// The time span as text: "1h", "5m"; "600 steps" if steps are counted.
std::string spark_span_words(const Model& m) {
  const double span_s = spark_span_s(m);
  if (m.view->scale.counts_steps()) return m.view->scale.duration(span_s);
  return span_s < 3600 ? fmt::format("{:.0f}m", span_s / 60) : "1h";
}

std::string used_words(const DeviceRow& d, const Scale& scale) {
  if (d.used == nullptr) return "not known";
  const auto used = static_cast<double>(d.used->used_bytes);
  return d.any->device.capacity_bytes ? scale.bytes_of(used, static_cast<double>(*d.any->device.capacity_bytes))
                                      : scale.bytes(used);
}

std::string growth_words(const SeriesView& s, const Scale& scale) {
  return s.verdict.finding.state == State::too_short ? "" : scale.rate(s.verdict.finding.growth_bytes_per_s.mid);
}

void draw_memory_bar(Screen& screen, int x, int y, int width, const DeviceRow& d, const ConclusionWords& words) {
  if (d.used == nullptr || !d.any->device.capacity_bytes || *d.any->device.capacity_bytes == 0) return;
  const Role role = d.used->verdict.finding.leak ? figure_role(words.tone) : Role::bar;
  draw_ratio(screen, x, y, width,
             static_cast<double>(d.used->used_bytes) / static_cast<double>(*d.any->device.capacity_bytes), role);
}

void draw_spark(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d) {
  if (d.used == nullptr || r.empty() || !m.feed.history) return;
  const Timestamp to = m.view->time;
  const Timestamp from = to - from_seconds(spark_span_s(m));
  const auto points = m.feed.history(d.used->key, from, to, chart_points(r.width));
  double high = static_cast<double>(d.used->peak_bytes);
  if (d.any->device.capacity_bytes) high = static_cast<double>(*d.any->device.capacity_bytes);
  draw_history(screen, r, {from, to, 0, std::max(high, 1.0)}, points);
}

/// Puts "! failing" next to the name of an unhealthy device, or "!" if there is less room. Returns its width; 0: none.
int put_condition(Screen& screen, int x, int y, int room, const Model& m, const DeviceRow& d) {
  if (d.used == nullptr) return 0;
  const Condition condition = judge_health(*d.used, m.view->time).condition;
  const Role role = condition_role(condition);
  if (role == Role::plain || room < 1) return 0;
  const std::string words = fmt::format("! {}", to_string(condition));
  return screen.put(x, y, room, columns_of(words) <= room ? words : "!", role);
}

/// Columns of a one-line row: where each begins, for the row and for the heading.
struct LineColumns {
  int bar, bar_width, used, gauges, spark, spark_width, growth, conclusion;
  LineColumns(const Rect& r, const Scale& scale, bool words) {
    const bool beside = r.width >= (words ? kSparkBesideGauges : 70);
    const int growth_columns = growth_width(scale) + 1;
    spark_width = beside ? std::clamp((r.width - 30 - growth_columns) / 5, 7, 30) : 0;
    bar_width = std::clamp((r.width - 37 - growth_columns - (words ? 14 : 0)) / 4, 6, 30);
    bar = r.x + 7;
    used = bar + bar_width + 1;
    gauges = used + 15;
    spark = gauges + 1 + (words ? 18 : 0);
    growth = spark + spark_width + (spark_width > 0 ? 1 : 0);
    conclusion = growth + growth_columns;
  }
};

bool any_gauges(const Model& m) {
  return std::any_of(m.view->series.begin(), m.view->series.end(),
                     [](const SeriesView& s) { return s.key.pid == 0 && has_gauges(s); });
}

/// In a narrow row, the verdict takes precedence over the activity.
bool line_has_gauges(const Rect& r, const Model& m) {
  constexpr int kLeastWithGauges = 76;
  return r.width >= kLeastWithGauges && any_gauges(m);
}

/// "87 % busy", or "-".
std::string ratio_words(const std::optional<double>& ratio, std::string_view what) {
  return percent_or_dash(ratio) + (ratio ? std::string(what) : std::string());
}

/// Puts the device's activity after its bar, as far as it fits.
void put_gauges(Screen& screen, int x, int y, int end, const SeriesView& s) {
  const DeviceGauges& g = s.gauges;
  struct Part {
    std::string words;
    int width;
    Role role;
  };
  const std::array<Part, 5> parts = {{{ratio_words(s.utilisation_ratio, " busy"), 10, Role::plain},
                                      {temperature_words(s), 6, temperature_role(s)},
                                      {power_words(g), 9, Role::plain},
                                      {"fan " + percent_or_dash(g.fan_ratio), 9, Role::faint},
                                      {"memory bus " + percent_or_dash(g.memory_utilisation_ratio), 16, Role::faint}}};
  for (const Part& part : parts) {
    if (x + part.width > end) return;
    screen.put(x, y, part.width, part.words, part.role);
    x += part.width + 2;
  }
}

/// One gauge of a tall card.
struct Meter {
  std::string_view label;
  std::optional<double> ratio;
  std::string words;
  Role bar = Role::busy;
  Role role = Role::plain;
};

/// The gauges of a device, one per row, most important first.
std::vector<Meter> meters(const SeriesView& s) {
  const DeviceGauges& g = s.gauges;
  std::vector<Meter> out = {
      {"GPU", s.utilisation_ratio, ratio_words(s.utilisation_ratio, " busy")},
      {"PWR", power_ratio(g),
       power_words(g) + (g.fan_ratio ? "   fan " + percent_or_dash(g.fan_ratio) : std::string())},
  };
  const auto celsius = temperature_celsius(s);
  out.insert(out.begin() + 1,
             {"TMP", celsius ? std::optional(*celsius / 100) : std::nullopt, temperature_words(s),
              temperature_role(s) == Role::plain ? Role::busy : temperature_role(s), temperature_role(s)});
  out.push_back({"BUS", g.memory_utilisation_ratio, ratio_words(g.memory_utilisation_ratio, " reads and writes memory"),
                 Role::busy, Role::faint});
  return out;
}

constexpr int kLabelWidth = 4;  ///< "MEM "
constexpr int kMeterRows = 6;   ///< from this height on, each gauge of a card has a row

}  // namespace

void draw_device_heads(Screen& screen, const Rect& r, const Model& m) {
  const bool gauges = line_has_gauges(r, m);
  const LineColumns at(r, m.view->scale, gauges);
  screen.put(r.x, r.y, 6, "GPU", Role::faint);
  screen.put_right(at.used + 14, r.y, 14, "MEMORY", Role::faint);
  if (gauges) {
    screen.put_right(at.gauges + 5, r.y, 4, "GPU%", Role::faint);
    screen.put_right(at.gauges + 11, r.y, 5, "TEMP", Role::faint);
    screen.put_right(at.gauges + 18, r.y, 6, "POWER", Role::faint);
  }
  if (at.spark_width > 0) screen.put(at.spark, r.y, at.spark_width, "LAST " + spark_span_words(m), Role::faint);
  screen.put_right(at.growth + growth_width(m.view->scale), r.y, growth_width(m.view->scale), "GROWTH", Role::faint);
  screen.put(at.conclusion, r.y, r.right() - at.conclusion, "VERDICT", Role::faint);
}

void draw_device_line(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d) {
  const bool gauges = line_has_gauges(r, m);
  const LineColumns at(r, m.view->scale, gauges);
  const int name = screen.put(r.x, r.y, 7, short_name(d), Role::title);
  put_condition(screen, r.x + name, r.y, std::min(1, 7 - name), m, d);
  const ConclusionWords words = d.used != nullptr ? conclusion_words(*m.view, *d.used) : ConclusionWords{};
  draw_memory_bar(screen, at.bar, r.y, at.bar_width, d, words);
  screen.put_right(at.used + 14, r.y, 14, used_words(d, m.view->scale));
  draw_spark(screen, {at.spark, r.y, at.spark_width, 1}, m, d);
  if (d.used == nullptr) return;
  if (gauges) {
    const SeriesView& s = *d.used;
    screen.put_right(at.gauges + 5, r.y, 4, percent_figure(s.utilisation_ratio));
    screen.put_right(at.gauges + 11, r.y, 5, temperature_words(s), temperature_role(s));
    DeviceGauges drawn = s.gauges;
    drawn.power_limit_watts.reset();
    screen.put_right(at.gauges + 18, r.y, 6, power_words(drawn));
  }
  screen.put_right(at.growth + growth_width(m.view->scale), r.y, growth_width(m.view->scale),
                   growth_words(*d.used, m.view->scale));
  put_conclusion(screen, at.conclusion, r.y, r.right() - at.conclusion, *d.used, words, m.view->scale);
}

void draw_device_card(Screen& screen, const Rect& r, const Model& m, const DeviceRow& d, CardStyle style) {
  const int name = screen.put(r.x, r.y, std::max(20, r.width / 2 - 2),
                              d.used != nullptr ? device_words(*d.used) : short_name(d), Role::title);
  const ConclusionWords words = d.used != nullptr ? conclusion_words(*m.view, *d.used) : ConclusionWords{};
  if (d.used != nullptr) {
    constexpr int kConclusion = 44;  // a complete ETA with its interval takes precedence over the word
    int x = r.x + name + 2;
    const int sign = put_condition(screen, x, r.y, std::max(1, r.right() - x - kConclusion - 2), m, d);
    if (sign > 0) x += sign + 2;
    put_conclusion(screen, x, r.y, r.right() - x, *d.used, words, m.view->scale);
  }
  const bool gauges = d.used != nullptr && has_gauges(*d.used);
  const bool labelled = gauges && r.height > 2;
  const int bar = std::clamp(r.width / (r.height == 2 && gauges ? 5 : 3), 14, 60);
  const int left = r.x + 2 + (labelled ? kLabelWidth : 0);
  if (labelled) screen.put(r.x + 2, r.y + 1, kLabelWidth, "MEM", Role::faint);
  draw_memory_bar(screen, left, r.y + 1, bar, d, words);
  int x = left + bar + 1;
  x += screen.put(x, r.y + 1, 20, used_words(d, m.view->scale)) + 2;
  if (d.used != nullptr) {
    screen.put(x, r.y + 1, std::min(growth_width(m.view->scale) + 1, r.right() - x),
               growth_words(*d.used, m.view->scale), figure_role(words.growth_tone));
    x += growth_width(m.view->scale) + 2;
  }
  const Rect beside{x, r.y + 1, std::min(60, r.right() - x), 1};
  if (r.height == 2) {
    if (gauges)
      put_gauges(screen, x, r.y + 1, r.right(), *d.used);
    else
      draw_spark(screen, beside, m, d);
    return;
  }
  int row = 2;
  if (gauges && (r.height < kMeterRows || style.history)) {
    screen.put(r.x + 2, r.y + row, kLabelWidth, "GPU", Role::faint);
    draw_ratio(screen, left, r.y + row, bar, d.used->utilisation_ratio, Role::busy);
    put_gauges(screen, left + bar + 1, r.y + row, r.right(), *d.used);
    ++row;
  } else if (gauges) {
    for (const Meter& meter : meters(*d.used)) {
      if (row >= r.height) break;
      screen.put(r.x + 2, r.y + row, kLabelWidth, meter.label, Role::faint);
      draw_ratio(screen, left, r.y + row, bar, meter.ratio, meter.bar);
      screen.put(left + bar + 1, r.y + row, r.right() - left - bar - 1, meter.words, meter.role);
      ++row;
    }
  }
  if (d.used != nullptr && !d.used->paging.empty() && row < r.height)
    screen.put(r.x + 2, r.y + row++, r.width - 2, "no alert: " + printable(d.used->paging), Role::faint);
  // The table below shows the only device's accounting anyway.
  if (!style.only && row < r.height && (!gauges || r.height > 3)) {
    screen.put(r.x + 2, r.y + row, r.width - 2,
               accounting_words(account(*m.view, device_key(d.any->key)), m.view->scale), Role::faint);
    ++row;
  }
  if (!style.history) return;
  if (row >= r.height - 1) {
    draw_spark(screen, beside, m, d);
    return;
  }
  const Rect history{r.x + 2, r.y + row, r.width - 2, r.height - row};
  const std::string span = "last " + spark_span_words(m);
  const int label_width = columns_of(span) + 1;
  draw_spark(screen, {history.x, history.y, history.width - label_width - 2, history.height}, m, d);
  screen.put(history.right() - label_width, history.bottom() - 1, label_width, span, Role::faint);
}

}  // namespace vramtrack::top
