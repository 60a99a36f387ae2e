#include "run/process_facts.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vramtrack::run {

using probe::Record;
using probe::Slot;

namespace {

constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostTexts = 4096;  ///< the newest ones, because a text precedes the record that needs it
constexpr std::size_t kMostOuts = 16;
constexpr std::size_t kMostKeepers = 64;

/// Whether it is a driver's allocation, or the first use of its device.
bool is_of_driver(const Slot& slot) {
  switch (probe::record_of(slot)) {
    case Record::device:
      return true;
    case Record::alloc:
    case Record::refused:
    case Record::failed: {
      const probe::CallInfo* const info = probe::info_of(probe::call_of(slot));
      return info != nullptr && info->level == probe::Level::driver;
    }
    default:
      return false;
  }
}

}  // namespace

void ProcessFacts::add_text(const Slot& piece) {
  const std::size_t length = std::min<std::size_t>(piece.a >> 32U, kLongestText);
  const std::size_t offset = piece.a & 0xffff'ffffU;
  // Numbers ascend, so the smallest is the oldest.
  while (texts_.size() >= kMostTexts && !texts_.contains(probe::number_of(piece))) texts_.erase(texts_.begin());
  std::string& text = texts_[probe::number_of(piece)];
  text.resize(length);
  if (offset >= length) return;
  std::uint64_t bytes[2] = {piece.address, piece.bytes};
  std::memcpy(text.data() + offset, bytes, std::min(probe::kTextBytes, length - offset));
}

std::string ProcessFacts::text(std::uint64_t number) const {
  const auto found = texts_.find(static_cast<std::uint32_t>(number));
  return found == texts_.end() ? std::string() : found->second;
}

void ProcessFacts::take(std::span<const Slot> records) {
  for (const Slot& slot : records) take(slot);
}

void ProcessFacts::take(const Slot& slot) {
  has_driver_calls_ = has_driver_calls_ || is_of_driver(slot);
  const int device = probe::device_of(slot);
  switch (probe::record_of(slot)) {
    case Record::text:
      return add_text(slot);
    case Record::module:
      modules_.push_back(text(probe::number_of(slot)));
      return;
    case Record::device:
      devices_[device].uuid = text(probe::number_of(slot));
      devices_[device].name = text(slot.bytes);
      devices_[device].total_bytes = slot.address;
      return;
    case Record::totals:
      devices_[device].allocated_bytes = slot.address;
      devices_[device].reserved_bytes = slot.bytes;
      return;
    case Record::refused:
    case Record::failed:
      if (outs_.size() < kMostOuts) outs_.push_back({device, slot.bytes, probe::record_of(slot) == Record::refused});
      return;
    case Record::kept:
      return take_kept(slot);
    default:
      return;
  }
}

/// A keeper is recorded once for each of its blocks, consecutively.
void ProcessFacts::take_kept(const Slot& slot) {
  std::string words = text(probe::number_of(slot));
  if ((probe::flags_of(slot) & probe::kLookEnd) != 0) {
    open_look_.why = std::move(words);
    newest_look_ = std::exchange(open_look_, {});
    ++looks_;
  } else if ((probe::flags_of(slot) & (probe::kUnheldBlock | probe::kUnaskedBlock)) != 0) {
    return;  // no keeper
  } else if (open_look_.keepers.empty() || open_look_.keepers.back() != words) {
    if (open_look_.keepers.size() < kMostKeepers) open_look_.keepers.push_back(std::move(words));
  }
}

std::vector<std::string> ProcessFacts::new_modules() {
  return std::exchange(modules_, {});
}
std::vector<MemoryOut> ProcessFacts::memory_outs() {
  return std::exchange(outs_, {});
}

}  // namespace vramtrack::run
