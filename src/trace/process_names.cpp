#include "trace/process_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace vramtrack::trace {
namespace {

using probe::Record;

constexpr std::size_t kMostFrames = 1024;
constexpr std::size_t kMostTextBytes = 64U << 10U;

}  // namespace

bool ProcessNames::take(const probe::Slot& slot) {
  const std::uint32_t number = probe::number_of(slot);
  switch (probe::record_of(slot)) {
    case Record::frame:
      keep_frame(slot);
      return true;
    case Record::text:
      keep_text(slot);
      return true;
    case Record::code:
      codes_[number] = {static_cast<std::uint32_t>(slot.a), static_cast<std::uint32_t>(slot.address),
                        static_cast<std::uint32_t>(slot.address >> 32U)};
      return true;
    case Record::module:
      modules_.push_back({std::string(text(number)), slot.address, slot.bytes, slot.a});
      return true;
    case Record::process:
      command_text_ = static_cast<std::uint32_t>(slot.bytes);
      return true;
    case Record::thread:
      threads_[static_cast<std::uint16_t>(slot.a)] = number;
      return true;
    default:
      return false;
  }
}

void ProcessNames::keep_frame(const probe::Slot& slot) {
  const std::uint64_t index = slot.a & 0xffffffffU;
  if (index >= kMostFrames) return;
  auto& frames = stacks_[probe::number_of(slot)];
  if (frames.size() <= index) frames.resize(index + 1);
  const std::uint8_t flags = probe::flags_of(slot);
  frames[index] = {(flags & probe::kPythonFrame) != 0, (flags & probe::kEntryFrame) != 0,
                   static_cast<std::uint32_t>(slot.bytes), slot.address};
  is_python_ = is_python_ || frames[index].is_python;
}

/// Keeps one piece of a text; even an empty text has one.
void ProcessNames::keep_text(const probe::Slot& slot) {
  std::string& text = texts_[probe::number_of(slot)];
  const std::uint64_t offset = slot.a & 0xffffffffU;
  const std::size_t size = std::min<std::size_t>(slot.a >> 32U, kMostTextBytes);
  if (offset >= size) return;
  const std::size_t end = std::min(size, offset + probe::kTextBytes);
  if (text.size() < end) text.resize(end);
  const std::array<std::uint64_t, 2> piece = {slot.address, slot.bytes};
  std::memcpy(text.data() + offset, piece.data(), end - offset);
}

std::string_view ProcessNames::text(std::uint32_t number) const {
  const auto known = texts_.find(number);
  return known == texts_.end() ? std::string_view{} : known->second;
}

const std::vector<RawFrame>& ProcessNames::stack(std::uint32_t number) const {
  static const std::vector<RawFrame> none;
  const auto known = stacks_.find(number);
  return known == stacks_.end() ? none : known->second;
}

std::string_view ProcessNames::thread_name(std::uint16_t thread) const {
  const auto known = threads_.find(thread);
  return known == threads_.end() ? std::string_view{} : text(known->second);
}

const CodeObject* ProcessNames::code(std::uint32_t number) const {
  const auto known = codes_.find(number);
  return known == codes_.end() ? nullptr : &known->second;
}

const MappedModule* ProcessNames::module_at(std::uint64_t address) const {
  for (std::size_t i = modules_.size(); i-- > 0;)
    if (address >= modules_[i].begin && address - modules_[i].begin < modules_[i].length) return &modules_[i];
  return nullptr;
}

}  // namespace vramtrack::trace
