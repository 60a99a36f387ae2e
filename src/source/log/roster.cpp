#include "source/log/roster.hpp"

#include <algorithm>

#include "core/meaning.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

std::optional<LogDevice> device_numbered(std::string_view text) {
  const auto number = logtext::whole_number<int>(text);
  if (!number || *number < 0 || *number > 4095) return std::nullopt;
  LogDevice device;
  device.index = number;
  return device;
}

std::optional<LogDevice> device_named(std::string_view text) {
  text = logtext::trim(text);
  const auto is_letter = [](char c) { return logtext::is_ascii_letter(c); };
  const auto letters = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_letter) - text.begin());
  if (letters > 0 && meaning_of(text.substr(0, letters)) != Meaning::gpu) return std::nullopt;
  std::size_t digits = letters;
  while (letters > 0 && digits < text.size() && !logtext::is_digit(text[digits]) && !is_letter(text[digits])) ++digits;
  text.remove_prefix(digits);
  return text.size() > 1 && text.front() == '0' ? std::nullopt : device_numbered(text);
}

bool has_id(const LogDevice& device) {
  return !device.uuid.empty() || !device.pci_bus_id.empty() || !device.text.empty() || device.index;
}

SameDevice compare(const LogDevice& a, const LogDevice& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid ? SameDevice::by_uuid : SameDevice::no;
  if (!a.pci_bus_id.empty() && !b.pci_bus_id.empty())
    return a.pci_bus_id == b.pci_bus_id ? SameDevice::by_pci : SameDevice::no;
  if (!a.text.empty() || !b.text.empty()) return a.text == b.text ? SameDevice::by_index : SameDevice::no;
  if (a.index && b.index) return *a.index == *b.index ? SameDevice::by_index : SameDevice::no;
  return has_id(a) || has_id(b) ? SameDevice::unknown : SameDevice::by_index;
}

std::string device_id(const LogDevice& device) {
  if (!device.uuid.empty()) return device.uuid;
  if (!device.pci_bus_id.empty()) return device.pci_bus_id;
  if (!device.text.empty()) return device.text;
  return std::to_string(device.index.value_or(0));
}

namespace {

/// Calls visit(word) for each word by which compare() may match the device with another device.
template <class Visit>
void for_words(const LogDevice& device, Visit visit) {
  if (!device.uuid.empty()) visit("u" + device.uuid);
  if (!device.pci_bus_id.empty()) visit("p" + device.pci_bus_id);
  if (!device.text.empty())
    visit("t" + device.text);
  else if (device.index)
    visit("i" + std::to_string(*device.index));
  if (!has_id(device)) visit("-");
}

}  // namespace

std::size_t DeviceRoster::find(const LogDevice& device) const {
  std::size_t found = entries_.size();
  if (single_device) {
    for (std::size_t i = 0; i < entries_.size() && found == entries_.size(); ++i)
      if (compare(entries_[i].device, device) != SameDevice::no) found = i;
    return found;
  }
  // If all have a UUID, only that decides whether they are the same.
  const bool by_uuid = !device.uuid.empty() && without_uuid_ == 0;
  for_words(device, [&](const std::string& word) {
    const auto it = by_word_.find(word);
    if (by_uuid && word.front() != 'u') return;
    if (it == by_word_.end()) return;
    for (const std::size_t i : it->second) {
      if (i >= found) break;
      if (compare(entries_[i].device, device) > SameDevice::unknown) found = i;
    }
  });
  return found;
}

void DeviceRoster::index(std::size_t at, const LogDevice& device) {
  for_words(device, [&](const std::string& word) {
    std::vector<std::size_t>& positions = by_word_[word];
    const auto found = std::lower_bound(positions.begin(), positions.end(), at);
    if (found == positions.end() || *found != at) positions.insert(found, at);
  });
}

std::size_t DeviceRoster::resolve(const LogDevice& device) {
  const std::size_t at = find(device);
  if (at == entries_.size()) {
    entries_.push_back({device, device_id(device)});
    if (device.uuid.empty()) ++without_uuid_;
    index(at, device);
    return at;
  }
  const auto take = [](std::string& into, const std::string& from) {
    if (into.empty()) into = from;
  };
  LogDevice& known = entries_[at].device;
  if (known.uuid.empty() && !device.uuid.empty()) --without_uuid_;
  take(known.uuid, device.uuid);
  take(known.pci_bus_id, device.pci_bus_id);
  take(known.name, device.name);
  if (!known.index) known.index = device.index;
  index(at, known);
  return at;
}

void DeviceRoster::assign_ids() {
  for (Entry& entry : entries_) entry.id = device_id(entry.device);
}

}  // namespace vramtrack
