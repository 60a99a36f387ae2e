#include "explain/smi_table.hpp"

#include <algorithm>
#include <optional>

#include "core/units.hpp"
#include "explain/pattern.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostProcesses = 64;

const Wording kSmi{"nvidia_smi", "NVIDIA driver", "any", Role::context, Cause::unknown, "", ""};

const Wording kProcesses{"processes", "any", "any", Role::context, Cause::unknown, "", ""};

/// The words of a row, without bars and brackets.
std::vector<std::string_view> row_words(std::string_view row) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < row.size() && out.size() < 64;) {
    at = std::min(row.find_first_not_of(" \t\r|[]", at), row.size());
    const std::size_t end = std::min(row.find_first_of(" \t\r|[]", at), row.size());
    if (end > at) out.push_back(row.substr(at, end - at));
    at = end;
  }
  return out;
}

/// nullopt: not a whole number.
std::optional<double> number_of(std::string_view word) {
  std::size_t at = 0;
  const auto number = read_number(word, at);
  return at == word.size() ? number : std::nullopt;
}

/// "22528MiB"
std::optional<double> mib_of(std::string_view word) {
  return word.ends_with("MiB") ? number_of(word.substr(0, word.size() - 3)) : std::nullopt;
}

bool is_type(std::string_view word) {
  return word == "C" || word == "G" || word == "C+G" || word == "M+C";
}

/// The program name of a path: "...rs/kit/kit" is "kit".
std::string name_of(std::string_view path) {
  return std::string(path.substr(path.find_last_of("/\\") + 1));
}

/// "alice(8123M)", "alice:python/4711(8123M)", as gpustat lists processes.
std::optional<OtherProcess> gpustat_process(std::string_view word) {
  const std::size_t open = word.find('(');
  if (open == std::string_view::npos || open == 0 || !word.ends_with("M)")) return std::nullopt;
  const auto mib = number_of(word.substr(open + 1, word.size() - open - 3));
  if (!mib) return std::nullopt;
  const std::string_view name = word.substr(0, open);
  const std::size_t slash = name.rfind('/');
  const auto pid = slash == std::string_view::npos ? std::nullopt : number_of(name.substr(slash + 1));
  return OtherProcess{pid.value_or(0), *mib * kMiB, std::string(pid ? name.substr(0, slash) : name)};
}

}  // namespace

bool SmiTable::take_row_alone(std::string_view line, std::uint64_t number) {
  const auto words = row_words(line);
  if (words.size() < 4 || !is_type(words[1])) return false;
  const auto pid = number_of(words[0]);
  const auto bytes = mib_of(words.back());
  if (!pid || !bytes || rows_.others.size() >= kMostProcesses) return false;
  rows_.wording = &kSmi;
  rows_.line = number;
  rows_.others.push_back({*pid, *bytes * kMiB, name_of(words[words.size() - 2])});
  rows_.figures.set(Figure::outside, rows_.figures.get(Figure::outside).value_or(0) + *bytes * kMiB);
  return true;
}

/// The kernel counts in pages, ps and top in KiB.
bool SmiTable::take_titles(std::string_view line, std::uint64_t number) {
  const std::string titles = lower(line);
  if (titles.find("pid") == std::string::npos || !has_any(titles, "rss|mem|res")) return false;
  const auto words = row_words(titles);
  const auto column = [&words](std::string_view list) {
    return static_cast<std::size_t>(
        std::find_if(words.begin(), words.end(), [list](auto word) { return is_any(word, list); }) - words.begin());
  };
  pid_ = column("pid");
  size_ = column("rss|res");
  if (size_ == words.size()) size_ = column("mem");
  name_ = column("command|name|cmd|comm");
  // "PID   GPU Memory": of a device, without names.
  const bool is_of_device = words.size() == 3 && words[1] == "gpu" && words[2] == "memory";
  if (is_of_device) size_ = name_ = 1;
  if (std::max({pid_, size_, name_}) == words.size() || (name_ + 1 < words.size() && !is_of_device)) return false;
  list_is_of_device_ = is_of_device;
  unit_bytes_ = titles.find("total_vm") != std::string::npos ? 4 * kKiB : kKiB;
  list_ = {};
  list_.wording = &kProcesses;
  list_.line = number;
  return true;
}

bool SmiTable::take_list_row(std::string_view line) {
  const auto words = row_words(line);
  if (words.size() <= name_ || list_.others.size() >= kMostProcesses) return false;
  const auto pid = number_of(words[pid_]);
  const auto number = number_of(words[size_]);
  const std::string_view rest = line.substr(static_cast<std::size_t>(words[size_].data() - line.data()));
  const std::string_view text = list_is_of_device_ ? rest : words[size_];
  std::size_t at = 0;
  const auto size = read_size(text, at);
  if (!pid || !size || at < words[size_].size()) return false;
  const double bytes = number && !list_is_of_device_ ? *number * unit_bytes_ : *size;
  list_.others.push_back({*pid, bytes, list_is_of_device_ ? "" : name_of(words[name_])});
  if (list_is_of_device_) list_.figures.set(Figure::outside, list_.figures.get(Figure::outside).value_or(0) + bytes);
  return true;
}

bool SmiTable::take(std::string_view line, std::uint64_t number) {
  const std::size_t bar = line.find('|');
  if (bar == std::string_view::npos || line.find('|', bar + 1) == std::string_view::npos) {
    if (list_.wording != nullptr && take_list_row(line)) return true;
    return take_titles(line, number) || (trimmed(line).ends_with("MiB") && take_row_alone(line, number));
  }
  // "[6] NVIDIA A100 80GB PCIe | 52'C, 100 % | 10151 / 81920 MB | alice(8123M)", as gpustat has it.
  const std::size_t open = line.find('[');
  const auto stat = open < bar ? number_of(line.substr(open + 1, line.find(']') - open - 1)) : std::nullopt;
  if (stat) next_ = *stat;
  const auto words = row_words(line.substr(bar));
  if (words.size() < 3) return false;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i + 1] != "/") continue;
    const bool is_stat = stat && i + 3 < words.size() && words[i + 3] == "MB";
    const auto used = is_stat ? number_of(words[i]) : mib_of(words[i]);
    const auto total = is_stat ? number_of(words[i + 2]) : mib_of(words[i + 2]);
    if (!used || !total || *total <= 0 || *used > *total) continue;
    if (devices_.size() >= kMostDevices) return true;
    Message& device = devices_[next_];
    device.wording = &kSmi;
    device.line = number;
    device.figures.set(Figure::total, *total * kMiB);
    device.figures.set(Figure::used, *used * kMiB);
    for (std::size_t k = i + 4; is_stat && k < words.size(); ++k)
      if (auto process = gpustat_process(words[k])) device.others.push_back(std::move(*process));
    return true;
  }
  const auto index = number_of(words[0]);
  if (!index) return false;
  const auto bytes = mib_of(words.back());
  if (!bytes) {
    next_ = *index;
    return true;
  }
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto pid = is_type(words[i]) ? number_of(words[i - 1]) : std::nullopt;
    if (!pid || (devices_.size() >= kMostDevices && !devices_.contains(*index))) continue;
    Message& device = devices_[*index];
    if (device.others.size() >= kMostProcesses) return true;
    // Only a list of processes.
    if (device.wording == nullptr) device.line = number;
    device.wording = &kSmi;
    // "Unknown Error", "[Not Found]": the driver does not know the name.
    const bool is_named = !is_any(words[i + 1], "Unknown|Not|No|-");
    device.others.push_back({*pid, *bytes * kMiB, is_named ? name_of(words[words.size() - 2]) : "without a name"});
    return true;
  }
  return false;
}

void SmiTable::end(std::vector<Message>& out) {
  for (auto& [index, device] : devices_) {
    if (devices_.size() > 1) device.figures.set(Figure::device, index);
    out.push_back(std::move(device));
  }
  if (rows_.wording != nullptr) out.push_back(std::move(rows_));
  if (!list_.others.empty()) out.push_back(std::move(list_));
  rows_ = list_ = {};
  devices_.clear();
  next_ = 0;
}

}  // namespace vramtrack::explain
