#include "source/log/clock_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/format.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using Form = ClockValue::Form;

/// A few broken records do not rule out a field, and a clock may go back in a few, after a program is restarted.
constexpr std::size_t kOddOnes = 10;
/// A clock advances at least once in this many readings of a series (even at ten per second, written in whole seconds);
/// the start time of a run or a process does not.
constexpr std::size_t kReadingsAStep = 20;
/// Numbers from here on are dates: seconds since 1970.
constexpr double kDatesFrom = 9e8;
constexpr double kNextDay_s = 6 * 3600;  ///< times of day that fall by more passed midnight, as StampReader reads them

/// In a table without titles, the rows of all GPUs and processes share a time.
constexpr std::size_t kRowsATime = 256;

/// How the values of a field change from one record of a series to the next.
struct Course {
  std::size_t records = 0;
  std::size_t present = 0;  ///< records with a value
  std::size_t own = 0;      ///< times and numbers that are not carried
  std::size_t dates = 0, times_of_day = 0;
  std::size_t small = 0, whole = 0;  ///< numbers that are not dates, and those of them that are whole
  std::size_t series = 0, rises = 0, falls = 0;
  std::size_t counted = 0, rises_counted = 0, falls_counted = 0;  ///< counted while another field rises

  [[nodiscard]] bool covers() const { return present * kOddOnes >= records * (kOddOnes - 1); }
  [[nodiscard]] bool goes_on() const { return rises > 0 && falls * kOddOnes <= rises; }
};

bool is_small_number(const ClockValue& value) {
  return value.form == Form::number && value.at < kDatesFrom;
}

/// Whether a number may be seconds or milliseconds since 1970 (before 2100); no amount of memory in MiB is so large.
bool is_epoch(const ClockValue& value) {
  constexpr double kDatesTo = 4.1e9;
  const double seconds = value.at < kDatesTo ? value.at : value.at / 1000;
  return value.form == Form::number && seconds >= kDatesFrom && seconds < kDatesTo;
}

class Chooser {
 public:
  Chooser(const ClockRecords& head, std::vector<std::string>& assumptions) : head_(head), assumptions_(assumptions) {}

  Result<ClockChoice> choose() {
    const int named = best([this](int at) { return field(at).hint == ClockHint::name && !is_count(at); });
    int named_count = best([this](int at) { return field(at).hint == ClockHint::name && is_count(at); });
    if (named_count < 0) named_count = best([this](int at) { return field(at).hint == ClockHint::count; });
    int time = named >= 0 ? named : by_place();
    if (time < 0) {
      const auto found = by_values();
      if (!found) return fail(found.error());
      time = *found;
    }
    const bool is_sure = time >= 0 && time != sparse_;
    // Counts matter beside numbers that may be durations, and in place of a time.
    if (is_sure && (time != named || !is_small_number(first_of(time)))) return choice(time);
    const int epoch = best([this](int at) { return field(at).counts == "epoch"; });
    const int count = finest_count(epoch >= 0 ? epoch : named_count);
    if (is_sure && (count < 0 || !is_duration(time, count))) return choice(time);
    if (count < 0) return choice(named_count >= 0 ? named_count : time);
    ClockChoice out = choice(count);
    if (is_sure) {
      assumptions_.push_back(fmt::format(
          "{} is not a clock: it does not rise while {} counts, so it is how long something took; {} are counted in "
          "its place",
          field(time).label, field(count).label, plural(field(count).counts)));
      return out;
    }
    out.begins_anew = epoch >= 0 && epoch != count && course_of(count, epoch).falls_counted > 0;
    // A count that only some records have does not number the restarts of another one.
    if (named_count != count && named_count >= 0 && course_of(named_count).small >= course_of(count).small)
      out.outer_count = named_count;
    return out;
  }

 private:
  [[nodiscard]] const ClockField& field(int at) const { return head_.fields[static_cast<std::size_t>(at)]; }

  /// The field of the highest rank among the `eligible` ones, the first of several; -1 if there is none.
  template <class Eligible>
  [[nodiscard]] int best(Eligible eligible) const {
    int out = -1;
    for (int i = 0; i < static_cast<int>(head_.fields.size()); ++i)
      if (eligible(i) && (out < 0 || field(i).rank > field(out).rank)) out = i;
    return out;
  }

  /// `by`: the field for Course::counted; -1 if there is none.
  [[nodiscard]] Course course_of(int at, int by = -1) const {
    Course out;
    out.records = head_.series.size();
    std::unordered_map<std::size_t, std::pair<double, double>> last;
    for (std::size_t i = 0; i < head_.series.size(); ++i) {
      const ClockValue value = head_.value(static_cast<std::size_t>(at), i);
      out.present += value.form != Form::missing ? 1U : 0U;
      if (value.form < Form::number) continue;
      ++out.own;
      const bool is_time_of_day = value.form == Form::time_of_day || value.form == Form::minutes;
      const bool is_small = is_small_number(value);
      out.dates += value.form == Form::date ? 1U : 0U;
      out.times_of_day += is_time_of_day ? 1U : 0U;
      out.small += is_small ? 1U : 0U;
      out.whole += is_small && value.at == std::floor(value.at) ? 1U : 0U;
      const ClockValue beside = by < 0 ? ClockValue{} : head_.value(static_cast<std::size_t>(by), i);
      const double counts = beside.form == Form::number ? beside.at : NAN;  // NAN is never above another value
      const auto [it, is_first] = last.try_emplace(head_.series[i], value.at, counts);
      const auto [last_at, last_counts] = std::exchange(it->second, {value.at, counts});
      const bool is_next_day = is_time_of_day && last_at - value.at > kNextDay_s;
      const bool is_counted = counts > last_counts;
      out.series += is_first ? 1U : 0U;
      out.counted += is_counted ? 1U : 0U;
      if (value.at > last_at || is_next_day) {
        ++out.rises;
        out.rises_counted += is_counted ? 1U : 0U;
      } else if (value.at < last_at) {
        ++out.falls;
        out.falls_counted += is_counted ? 1U : 0U;
      }
    }
    return out;
  }

  [[nodiscard]] ClockValue first_of(int at) const {
    for (std::size_t i = 0; i < head_.series.size(); ++i)
      if (const ClockValue value = head_.value(static_cast<std::size_t>(at), i); value.form != Form::missing)
        return value;
    return {};
  }

  /// Whether the thing that a name may count is counted: epochs of a training run, rather than seconds since 1970.
  [[nodiscard]] bool is_count(int at) const {
    if (field(at).counts.empty()) return false;
    const Course course = course_of(at);
    return course.present > 0 && course.small == course.present;
  }

  /// The time at the usual place in lines of text; -1 if there is none. Sets `sparse_` if most lines have none.
  int by_place() {
    for (int i = 0; i < static_cast<int>(head_.fields.size()); ++i) {
      const ClockHint hint = field(i).hint;
      if (hint < ClockHint::place) continue;
      const bool is_stamp = hint == ClockHint::place || hint == ClockHint::heading;
      const Course course = course_of(i);
      if (course.present == 0 || (!is_stamp && !course.covers())) continue;
      const bool is_time = is_time_at_place(i, course);
      if (is_time && course.covers()) return i;
      if (is_time && course.present * 2 > course.records) most_ = i;
      if (is_time) sparse_ = i;
      refuses_stamps_ |= is_stamp && !is_time;
    }
    if (most_ >= 0) sparse_ = -1;
    return std::max(most_, sparse_);
  }

  /// Whether the values behave like a time at such a place. Adds an assumption if a time is not used.
  bool is_time_at_place(int at, const Course& course) {
    constexpr std::size_t kEnough = 5;  // two lines with the same second and a restart prove nothing
    constexpr std::size_t kMostReadingsATime = 10;
    const auto refuse = [&](std::string_view why) {
      assumptions_.push_back(fmt::format("{} {}", field(at).label, why));
      return false;
    };
    if (field(at).hint == ClockHint::elapsed) return course.goes_on() && course.rises * 2 >= course.own;
    if (field(at).hint == ClockHint::heading) {
      // A time that covers many readings of a GPU is a mention: "startup time: 2026-08-09 18:03:53".
      const bool is_clock = course.own <= kMostReadingsATime * (course.series + course.rises + course.falls);
      return is_clock || refuse("are no clock: the readings are counted, many of which share one time");
    }
    if (field(at).hint == ClockHint::place) {  // "eta: 0:33:10", "0:00:17 per step"
      const bool is_mentioned = course.rises + course.falls == 0 && course.present > course.own;
      return course.times_of_day < course.own || course.own < kEnough || course.goes_on() || is_mentioned ||
             refuse("do not rise from line to line: they are durations, not the clock");
    }
    if (course.falls > 0 || course.own < 3) return false;
    if (course.rises * kOddOnes < (course.own - course.series) * (kOddOnes - 1))
      return refuse("have no seconds, and several readings share one: they are not used");
    return first_of(at).at >= 3600 || refuse(
                                          "may be hours and minutes or minutes and seconds: they are not used; write "
                                          "hours, minutes and seconds (0:00:10)");
  }

  /// Whether the values of a field are dates or times of day that advance like a clock.
  [[nodiscard]] Form clock_form(int at) const {
    const bool is_untitled = field(at).hint == ClockHint::untitled;
    const ClockValue first = first_of(at);
    if (first.form < Form::time_of_day && !(is_untitled && is_epoch(first))) return Form::other;
    const Course course = course_of(at);
    const std::size_t times = course.dates + course.times_of_day;
    if (is_epoch(first)) return times + course.falls == 0 && course.rises > 0 ? Form::number : Form::other;
    const std::size_t steps = course.rises + course.falls;
    const bool is_advancing =
        is_untitled ? (steps + 1) * kRowsATime >= course.own : steps * kReadingsAStep >= course.own - course.series;
    const bool are_mixed = course.dates > 0 && course.times_of_day > 0;
    if (times == 0 || (course.present - times) * kOddOnes > times || are_mixed || !is_advancing) return Form::other;
    if (course.dates > 0) return Form::date;
    return course.rises >= course.falls ? Form::time_of_day : Form::other;  // falling values are the time left
  }

  /// The only field of dates, else of times of day, that is a clock by its values alone; -1 if there is none. Without
  /// titles, else a field of numbers, and the first of several.
  [[nodiscard]] Result<int> by_values() const {
    std::vector<int> found;
    Form best = Form::other;
    for (int i = 0; i < static_cast<int>(head_.fields.size()); ++i) {
      if (field(i).hint != ClockHint::values && field(i).hint != ClockHint::untitled) continue;
      const Form form = clock_form(i);
      if (form == Form::other || form < best) continue;
      if (form > best) found.clear();
      best = form;
      found.push_back(i);
    }
    if (found.size() > 1 && field(found[0]).hint == ClockHint::values)
      return fail(
          fmt::format("{} and {} both hold times, and their names do not say which is the time of the reading; name "
                      "that one 'timestamp'",
                      field(found[0]).label, field(found[1]).label));
    return found.empty() ? -1 : found.front();
  }

  /// The count that rises most often, and falls only with a new epoch or after a restart; -1 if there is none.
  [[nodiscard]] int finest_count(int epoch) const {
    int out = -1;
    std::size_t most = 0;
    for (int i = 0; i < static_cast<int>(head_.fields.size()); ++i) {
      if (field(i).counts.empty()) continue;
      Course course = course_of(i, i == epoch ? -1 : epoch);
      course.falls -= course.falls_counted;
      if (course.whole < course.present || !course.covers() || !course.goes_on() || course.rises <= most) continue;
      most = course.rises;
      out = i;
    }
    return out;
  }

  /// Whether numbers named like a time are durations: while `count` rises, a clock would rise, too.
  [[nodiscard]] bool is_duration(int at, int count) const {
    constexpr std::size_t kFewest = 3;
    const Course course = course_of(at, count);
    return course.small == course.present && course.counted >= kFewest &&
           (course.falls_counted * kOddOnes >= course.counted ||
            course.rises_counted * kReadingsAStep < course.counted);
  }

  [[nodiscard]] ClockChoice choice(int time) const {
    ClockChoice out;
    out.time = time;
    out.refuses_stamps = refuses_stamps_;
    if (time < 0) return out;
    const ClockHint hint = field(time).hint;
    out.title = {field(time).unit_ns, hint == ClockHint::count || hint == ClockHint::word, field(time).counts};
    return out;
  }

  const ClockRecords& head_;
  std::vector<std::string>& assumptions_;
  bool refuses_stamps_ = false;
  int most_ = -1;    ///< a time that most records have, but not all
  int sparse_ = -1;  ///< a time that fewer have; it ranks below a count
};

}  // namespace

ClockValue read_clock_value(std::string_view text) {
  text = logtext::trim(text);
  if (logtext::is_missing(text)) return {};
  if (const auto civil = whole_civil(text); civil && civil->has_time) {
    const Form form = civil->has_date ? Form::date : civil->has_seconds ? Form::time_of_day : Form::minutes;
    return {form, static_cast<double>(civil->local_s)};
  }
  const auto number = logtext::number_in(text, true);
  return number ? ClockValue{Form::number, *number} : ClockValue{Form::other, 0};
}

ClockField named_field(std::string label, std::string_view name) {
  const Column column = classify_column(name);
  const ClockHint hint = column.role == ColumnRole::time    ? ClockHint::name
                         : column.role == ColumnRole::step  ? ClockHint::count
                         : column.role == ColumnRole::other ? ClockHint::values
                                                            : ClockHint::none;
  return {std::move(label), hint, column.rank, counted_by(name), column.unit_ns};
}

Result<ClockChoice> choose_clock(const ClockRecords& head, std::vector<std::string>& assumptions) {
  return Chooser(head, assumptions).choose();
}

}  // namespace vramtrack
