#include "source/log/owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "source/log/columns.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {

void add_part(std::string& id, std::string_view part) {
  if (part.empty()) return;
  if (!id.empty()) id += '/';
  id += part;
}

std::string partition_named(std::string_view title, std::string_view value) {
  if (value == "0" || logtext::is_missing(value)) return {};
  return logtext::lower(title) + std::string(value);
}

LogDevice device_of(const OwnerIds& ids) {
  LogDevice out;
  out.name = ids.name;
  if (!logtext::is_missing(ids.uuid)) out.uuid = ids.uuid;
  std::string_view own = ids.index;
  std::string origin(ids.origin);
  if (auto named = device_named(own))
    out.index = named->index;
  else if (own.starts_with("GPU-") || own.starts_with("MIG-"))
    out.uuid = std::exchange(own, {});
  if (out.uuid.empty()) add_part(origin, ids.share);
  if (!out.uuid.empty() || origin.empty()) {
    out.pci_bus_id = ids.pci_bus_id;
    if (out.uuid.empty() && out.pci_bus_id.empty() && !out.index) out.text = own;
  } else {
    out.text = origin;
    const std::string number = out.index ? std::to_string(*out.index) : std::string(own);
    add_part(out.text, ids.pci_bus_id.empty() ? number : ids.pci_bus_id);
  }
  std::string part(ids.partition);
  if (!out.uuid.empty()) add_part(part, ids.share);
  if (part.empty()) return out;
  LogDevice its;
  its.name = std::move(out.name);
  its.parent_id = its.text = device_id(out);
  add_part(its.text, part);
  return its;
}

namespace {

/// "job id" for "Job_ID".
std::string words_of(std::string_view key) {
  std::string out = logtext::lower(key);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

/// The titles of words.def with one of these roles.
std::unordered_set<std::string> titles_of(std::initializer_list<ColumnRole> roles) {
  std::unordered_set<std::string> out;
  const auto add = [&](const char* title, ColumnRole role) {
    if (std::find(roles.begin(), roles.end(), role) != roles.end()) out.emplace(title);
  };
#define VRAMTRACK_TITLE(title, role, rank) add(title, ColumnRole::role);
#include "core/words.def"
  return out;
}

}  // namespace

bool names_owner(ColumnRole role) {
  using enum ColumnRole;
  return role == series || role == user || role == index || role == partition || role == uuid || role == pci;
}

bool names_origin(std::string_view key) {
  static const std::unordered_set<std::string> known = [] {
    std::unordered_set<std::string> words =
        titles_of({ColumnRole::series, ColumnRole::process_name, ColumnRole::pid, ColumnRole::user});
#define VRAMTRACK_ORIGIN(word) words.emplace(word);
#include "core/words.def"
    return words;
  }();
  return known.contains(words_of(key));
}

bool names_program(std::string_view key) {
  constexpr std::size_t kLongest = 15;  // asked about each word of a line: without memory from the heap
  static const std::unordered_set<std::string> known = titles_of({ColumnRole::process_name});
  return key.size() <= kLongest && known.contains(words_of(key));
}

std::optional<std::uint32_t> pid_of(std::string_view text) {
  const auto pid = logtext::whole_number<std::uint32_t>(logtext::trim(text));
  return pid && *pid > 0 ? pid : std::nullopt;
}

bool number_programs(std::span<const std::string_view> pids) {
  std::set<std::uint32_t> numbers;
  for (const std::string_view text : pids) {
    if (logtext::is_missing(text)) continue;
    const auto number = logtext::whole_number<std::uint32_t>(logtext::trim(text));
    if (!number) return false;
    numbers.insert(*number);
  }
  return !numbers.empty() && *numbers.rbegin() + 1 == numbers.size();
}

std::string distinguished_by_fields(std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", logtext::excerpt(name));
  return fmt::format("readings of one GPU at one time have different amounts: they are distinguished by {}", all);
}

bool may_name_owner(std::string_view title, std::span<const std::string_view> values) {
  if (names_owner(classify_column(title).role) || may_be_id(title)) return true;
  return !counted_by(title).empty() &&
         std::none_of(values.begin(), values.end(), [](std::string_view value) { return logtext::number_in(value); });
}

bool number_rows(std::span<const std::string_view> ids, std::span<const std::string_view> times) {
  constexpr std::size_t kRows = 24;
  constexpr int kReadings = 3;
  if (ids.size() < kRows) return false;
  int readings = 1;
  for (std::size_t i = 1; i < ids.size() && readings < kReadings; ++i) readings += times[i] != times[i - 1] ? 1 : 0;
  if (readings < kReadings && !times.front().empty()) return false;
  return std::set<std::string_view>(ids.begin(), ids.end()).size() == ids.size();
}

namespace {

/// A field of few values, by the number of the value in each record.
struct NumberedField {
  std::size_t at = 0;  ///< position among the fields
  std::vector<std::uint32_t> values;
};

constexpr std::size_t kMostValues = 64;

/// nullopt unless the values are few and repeat, as those of an id do and measurements do not. Words for kinds of
/// memory
/// ("used", "free") and fractions (quantiles) are none of ids.
std::optional<NumberedField> number_values(std::size_t at, const HeadField& field) {
  constexpr std::size_t kRepeated = 3;
  NumberedField out;
  out.at = at;
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (const std::string_view value : field) {
    const auto [number, is_new] = numbers.try_emplace(value, static_cast<std::uint32_t>(numbers.size()));
    out.values.push_back(number->second);
    if (!is_new) continue;
    if (numbers.size() > kMostValues) return std::nullopt;
    const bool is_fraction = logtext::number_in(value) && !logtext::whole_number<std::uint64_t>(value);
    if (is_fraction || !read_label(value).roles.empty()) return std::nullopt;
  }
  if (numbers.size() < 2 || numbers.size() * kRepeated > field.size()) return std::nullopt;
  return out;
}

/// The records of a head, by owner and time.
class SharedTimes {
 public:
  explicit SharedTimes(const HeadRecords& records) {
    std::unordered_map<std::string_view, std::uint32_t> owners;
    std::map<std::pair<std::uint32_t, std::string_view>, std::size_t> group_of;
    std::vector<std::uint32_t> times;  // of each owner
    for (std::size_t i = 0; i < records.owners.size(); ++i) {
      if (records.times[i].empty() || std::isnan(records.amounts[i])) continue;
      const auto owner = owners.try_emplace(records.owners[i], static_cast<std::uint32_t>(owners.size())).first->second;
      times.resize(owners.size());
      const auto [group, is_new] = group_of.try_emplace({owner, records.times[i]}, groups_.size());
      if (is_new) groups_.push_back({owner, times[owner]++, {}, false});
      groups_[group->second].records.emplace_back(i, records.amounts[i]);
    }
    std::vector<std::uint32_t> shared(owners.size());
    for (const Group& group : groups_) shared[group.owner] += group.has_several() ? 1U : 0U;
    for (Group& group : groups_) {
      const std::uint32_t its = shared[group.owner];
      group.is_shared = group.has_several() && its >= kFewest && its * kOften >= times[group.owner];
      shared_ += group.is_shared ? 1U : 0U;
    }
  }

  /// Whether an owner often has different amounts at one time.
  [[nodiscard]] bool exist() const { return shared_ > 0; }

  /// Whether each of the values, of each owner, occurs at most times between its first and its last.
  [[nodiscard]] bool stay(const std::vector<std::uint64_t>& values) const {
    constexpr std::size_t kPresentPercent = 75;
    struct Span {
      std::uint32_t first = 0, last = 0, times = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint64_t>, Span> spans;
    for (const Group& group : groups_)
      for (const auto& [record, amount] : group.records) {
        const auto [its, is_new] = spans.try_emplace({group.owner, values[record]}, Span{group.time, group.time, 1});
        if (is_new || its->second.last == group.time) continue;
        its->second.last = group.time;
        ++its->second.times;
      }
    std::size_t present = 0;
    std::size_t all = 0;
    for (const auto& [of, span] : spans) {
      present += span.times;
      all += span.last - span.first + 1;
    }
    return present * 100 >= all * kPresentPercent;
  }

  /// Whether, at most of the times that one owner's amounts share, no value has two of them.
  [[nodiscard]] bool are_distinguished(const std::vector<std::uint64_t>& values) const {
    std::size_t apart = 0;
    for (const Group& group : groups_) {
      if (!group.is_shared) continue;
      std::map<std::uint64_t, double> amounts;
      apart +=
          std::all_of(group.records.begin(), group.records.end(),
                      [&](const auto& record) {
                        return amounts.try_emplace(values[record.first], record.second).first->second == record.second;
                      })
              ? 1U
              : 0U;
    }
    return apart * 3 >= shared_ * 2;
  }

 private:
  static constexpr std::uint32_t kFewest = 3;
  static constexpr std::uint32_t kOften = 3;  ///< one time in three

  struct Group {
    std::uint32_t owner = 0;
    std::uint32_t time = 0;  ///< 0, 1, 2, ...: of that owner
    std::vector<std::pair<std::size_t, double>> records;
    bool is_shared = false;  ///< it has several amounts, as its owner often has
    [[nodiscard]] bool has_several() const {
      return std::any_of(records.begin(), records.end(),
                         [&](const auto& record) { return record.second != records.front().second; });
    }
  };
  std::vector<Group> groups_;
  std::size_t shared_ = 0;  ///< groups
};

/// The values of several fields as one.
std::vector<std::uint64_t> joined(std::span<const NumberedField> fields, std::span<const std::size_t> chosen) {
  std::vector<std::uint64_t> out(fields.front().values.size());
  for (const std::size_t field : chosen)
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * (kMostValues + 1) + fields[field].values[i];
  return out;
}

/// The smallest set of fields that distinguishes the records, the first of several; empty: there is none.
std::vector<std::size_t> smallest_set(const SharedTimes& shared, std::span<const NumberedField> fields) {
  constexpr std::size_t kMostFields = 4;
  std::vector<std::size_t> chosen;
  const auto complete = [&](const auto& self, std::size_t from, std::size_t missing) -> bool {
    if (missing == 0) {
      const std::vector<std::uint64_t> values = joined(fields, chosen);
      return shared.are_distinguished(values) && shared.stay(values);
    }
    for (std::size_t i = from; i + missing <= fields.size(); ++i) {
      chosen.push_back(i);
      if (self(self, i + 1, missing - 1)) return true;
      chosen.pop_back();
    }
    return false;
  };
  for (std::size_t size = 1; size <= std::min(kMostFields, fields.size()); ++size)
    if (complete(complete, 0, size)) return chosen;
  return {};
}

}  // namespace

std::vector<std::size_t> find_owner_fields(HeadRecords records, std::span<const HeadField> fields) {
  constexpr std::size_t kMostTried = 8;
  std::vector<std::size_t> out;
  while (true) {  // some owners may need other fields than most do
    const SharedTimes shared(records);
    if (!shared.exist()) break;
    std::vector<NumberedField> may_be;
    for (std::size_t i = 0; i < fields.size() && may_be.size() < kMostTried; ++i) {
      if (std::find(out.begin(), out.end(), i) != out.end()) continue;
      auto field = number_values(i, fields[i]);
      if (field && shared.stay({field->values.begin(), field->values.end()})) may_be.push_back(std::move(*field));
    }
    const std::vector<std::size_t> found = smallest_set(shared, may_be);
    if (found.empty()) break;
    for (const std::size_t one : found) {
      out.push_back(may_be[one].at);
      for (std::size_t i = 0; i < records.owners.size(); ++i) (records.owners[i] += '\n') += fields[may_be[one].at][i];
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace vramtrack
