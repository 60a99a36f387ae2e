// Whether a column of numbers is a GPU's index or a measure: behaves_like_index().
#include <algorithm>
#include <map>

#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// Whether the time `a` is before `b`, both as written in one log.
bool is_before(std::string_view a, std::string_view b) {
  logtext::Decimal x;
  logtext::Decimal y;
  if (logtext::read_decimal(a, x) && x.length == a.size() && logtext::read_decimal(b, y) && y.length == b.size())
    return x.value() < y.value();
  return a < b;
}

}  // namespace

bool behaves_like_index(std::span<const std::vector<std::string_view>> rows, std::size_t column, int time) {
  constexpr int kMost = 1023;
  /// At least this percentage of the steps from one row to the next must lead to the usual successor.
  constexpr std::size_t kRegularPercent = 90;
  std::vector<int> values;
  std::vector<std::string_view> times;
  for (const auto& row : rows) {
    if (column >= row.size() || logtext::is_missing(row[column])) continue;
    logtext::Decimal number;
    if (!logtext::read_decimal(row[column], number) || number.length != row[column].size())
      return true;  // a name, not a number
    const auto value = logtext::whole_number<int>(row[column]);
    if (!value || *value < 0 || *value > kMost) return false;
    values.push_back(*value);
    const bool timed = time >= 0 && static_cast<std::size_t>(time) < row.size();
    times.push_back(timed ? row[static_cast<std::size_t>(time)] : std::string_view{});
  }
  if (values.size() < 2) return true;

  // A reading contains each GPU only once.
  std::vector<int> reading;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && (time < 0 || times[i] != times[i - 1])) reading.clear();
    if (std::find(reading.begin(), reading.end(), values[i]) != reading.end()) return false;
    reading.push_back(values[i]);
  }
  // One GPU is listed after another: time begins again with each.
  std::size_t runs = 1;
  std::size_t restarts = 0;
  std::map<int, std::map<int, std::size_t>> follows;
  for (std::size_t i = 1; i < values.size(); ++i) {
    ++follows[values[i - 1]][values[i]];
    if (values[i] == values[i - 1]) continue;
    ++runs;
    if (is_before(times[i], times[i - 1])) ++restarts;
  }
  follows.try_emplace(values.back());
  if (runs == follows.size() && restarts + 1 == runs) return true;  // a constant is one run
  // The GPUs are listed in rounds: each one is always followed by the same other.
  std::size_t usual = 0;
  for (const auto& [value, next] : follows) {
    std::size_t most = 0;
    for (const auto& [other, n] : next)
      if (other != value) most = std::max(most, n);
    usual += most;
  }
  return usual * 100 >= (values.size() - 1) * kRegularPercent;
}

}  // namespace vramtrack
