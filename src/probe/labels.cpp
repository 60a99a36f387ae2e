#include "probe/labels.hpp"

#include <algorithm>
#include <cstring>

#include "probe/recorder.hpp"
#include "probe/ring.hpp"
#include "probe/stacks_table.hpp"

namespace vramtrack::probe {
namespace {

Recent<12> texts;

std::uint32_t number_of_text(std::string_view text) {
  Hash hash;
  hash.add(text.size());
  for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t piece = 0;
    std::memcpy(&piece, text.data() + at, std::min(sizeof piece, text.size() - at));
    hash.add(piece);
  }
  std::uint32_t number = 0;
  if (texts.find(hash.value(), number)) return number;
  number = record_text(text);
  texts.put(hash.value(), number);
  return number;
}

}  // namespace

void record_label(std::uint64_t address, std::string_view category, std::string_view name) {
  if (address == 0 || !is_recording()) return;
  const std::uint32_t category_number = number_of_text(category);
  const std::uint32_t name_number = name.empty() ? 0 : number_of_text(name);
  write_label(address, category_number, name_number);
}

void forget_labels() {
  texts.forget();
}

}  // namespace vramtrack::probe
