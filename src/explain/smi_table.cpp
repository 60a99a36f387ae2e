#include "explain/smi_table.hpp"

#include <algorithm>
#include <optional>

#include "core/units.hpp"
#include "explain/pattern.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostProcesses = 64;

const Wording kSmi{"nvidia_smi", "NVIDIA driver", "any", Role::context, Cause::unknown, "", ""};

/// The words of a row, without its bars.
std::vector<std::string_view> words_of(std::string_view row) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < row.size() && out.size() < 64;) {
    at = std::min(row.find_first_not_of(" \t\r|", at), row.size());
    const std::size_t end = std::min(row.find_first_of(" \t\r|", at), row.size());
    if (end > at) out.push_back(row.substr(at, end - at));
    at = end;
  }
  return out;
}

/// nullopt: it is no whole number.
std::optional<double> number_of(std::string_view word) {
  std::size_t at = 0;
  const auto number = read_number(word, at);
  return at == word.size() ? number : std::nullopt;
}

/// "22528MiB"
std::optional<double> mib_of(std::string_view word) {
  return word.ends_with("MiB") ? number_of(word.substr(0, word.size() - 3)) : std::nullopt;
}

}  // namespace

bool SmiTable::take(std::string_view line, std::uint64_t number) {
  const std::size_t bar = line.find('|');
  if (bar == std::string_view::npos || line.find('|', bar + 1) == std::string_view::npos) return false;
  const auto words = words_of(line.substr(bar));
  if (words.size() < 3) return false;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i + 1] != "/") continue;
    const auto used = mib_of(words[i]);
    const auto total = mib_of(words[i + 2]);
    if (!used || !total || *total <= 0 || *used > *total) continue;
    if (devices_.size() >= kMostDevices) return true;
    Message& device = devices_[next_];
    device.wording = &kSmi;
    device.line = number;
    device.figures.set(Figure::total, *total * kMiB);
    device.figures.set(Figure::used, *used * kMiB);
    return true;
  }
  const auto index = number_of(words[0]);
  if (!index) return false;
  const auto bytes = mib_of(words.back());
  if (!bytes) {
    next_ = *index;
    return true;
  }
  const auto device = devices_.find(*index);
  if (device == devices_.end() || device->second.others.size() >= kMostProcesses) return false;
  for (std::size_t i = 2; i < words.size(); ++i)
    if (words[i] == "C" || words[i] == "G" || words[i] == "C+G" || words[i] == "M+C") {
      const auto pid = number_of(words[i - 1]);
      if (pid) device->second.others.push_back({*pid, *bytes * kMiB});
      return pid.has_value();
    }
  return false;
}

void SmiTable::end(std::vector<Message>& out) {
  for (auto& [index, device] : devices_) {
    if (devices_.size() > 1) device.figures.set(Figure::device, index);
    out.push_back(std::move(device));
  }
  devices_.clear();
  next_ = 0;
}

}  // namespace vramtrack::explain
