#include "source/log/memory_pair.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "core/units.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;

struct Amount {
  logtext::Decimal number;
  std::uint64_t unit_bytes = 0;  ///< 0: none
  bool binary = false;           ///< MiB or GiB, which are hardly used for anything but memory
  std::size_t end = 0;
};

/// Units as people write them, including "M" and "Gi".
std::uint64_t unit_of(std::string_view word) {
  if (word == "M" || word == "Mi") return kBytesPerMiB;
  if (word == "G" || word == "Gi") return kBytesPerGiB;
  return logtext::unit_bytes(word);
}

/// "8123", "8.1 GiB", "8123MB" at `at`.
std::optional<Amount> amount_at(std::string_view line, std::size_t at) {
  Amount out;
  if (at >= line.size() || !is_digit(line[at]) || !logtext::read_decimal(line.substr(at), out.number))
    return std::nullopt;
  out.end = at + out.number.length;
  std::size_t word = out.end;
  while (word < line.size() && line[word] == ' ') ++word;
  std::size_t end = word;
  while (end < line.size() && is_alpha(line[end])) ++end;
  out.unit_bytes = unit_of(line.substr(word, end - word));
  out.binary = line.substr(word, end - word) == "MiB" || line.substr(word, end - word) == "GiB";
  // Nobody writes used memory in bytes here; neither "B" nor a rate in "MB/s" is meant.
  const bool rate = end + 1 < line.size() && line[end] == '/' && line[end + 1] == 's';
  if (out.unit_bytes == 1 || rate) return std::nullopt;
  if (out.unit_bytes != 0)
    out.end = end;
  else if (end > word && word == out.end)
    return std::nullopt;  // "12x"
  return out;
}

std::uint64_t bytes_of(const logtext::Decimal& number, std::uint64_t unit) {
  if (number.whole > (std::uint64_t{1} << 60) / unit) return 0;
  return number.whole * unit +
         static_cast<std::uint64_t>(static_cast<double>(number.nano) * 1e-9 * static_cast<double>(unit));
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What the words before a pair refer to.
struct Label {
  bool gpu = false, memory = false, other = false;
  int index = -1;
};

Label read_label(std::string_view text) {
  Label out;
  bool after_gpu = false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_alpha(text[i])) {
      std::size_t end = i;
      while (end < text.size() && is_alpha(text[end])) ++end;
      const std::string word = logtext::lowered(text.substr(i, end - i));
      i = end;
      if (is_one_of(word, {"gpu", "cuda", "gpus", "device", "card"})) {
        out.gpu = after_gpu = true;
        continue;
      }
      after_gpu = false;
      if (is_one_of(word, {"vram", "hbm", "gram"}))
        out.gpu = out.memory = true;
      else if (is_one_of(word, {"memory", "mem", "memused", "gpumem"}))
        out.memory = true;
      else if (is_one_of(word,
                         {"ram",      "cpu",         "host",       "swap",   "disk",  "system", "virtual",  "shared",
                          "download", "downloading", "downloaded", "upload", "cache", "cached", "reserved", "peak",
                          "max",      "file",        "storage",    "heap",   "bar",   "network"}))
        out.other = true;
    } else if (is_digit(text[i])) {
      std::size_t end = i;
      while (end < text.size() && is_digit(text[end])) ++end;
      if (after_gpu && out.index < 0) out.index = logtext::whole_number<int>(text.substr(i, end - i)).value_or(-1);
      if (out.index > 1023) out.index = -1;
      after_gpu = false;
      i = end;
    } else {
      // "GPU 0", "GPU[0]", "cuda:0", "gpu_0", "GPU#0"
      if (!is_one_of(text.substr(i, 1), {" ", "[", ":", "_", "#", "-"})) after_gpu = false;
      ++i;
    }
  }
  return out;
}

}  // namespace

void find_memory_pairs(std::string_view line, std::vector<MemoryPair>& pairs) {
  pairs.clear();
  std::size_t label_from = 0;
  Label whole;  // of the whole line up to here: "GPU 0: util 5 %, memory 1/2 GB"
  for (std::size_t i = 0; i < line.size();) {
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    const bool within = begin > 0 && (is_alpha(line[begin - 1]) || line[begin - 1] == '.' || line[begin - 1] == '/');
    const auto used = within ? std::nullopt : amount_at(line, begin);
    if (!used) {
      while (i < line.size() && (is_digit(line[i]) || line[i] == '.')) ++i;
      continue;
    }
    i = used->end;
    std::size_t at = used->end;
    while (at < line.size() && line[at] == ' ') ++at;
    if (at < line.size() && line[at] == '/')
      ++at;
    else if (line.substr(at, 3) == "of ")
      at += 3;
    else
      continue;
    while (at < line.size() && line[at] == ' ') ++at;
    const auto total = amount_at(line, at);
    if (!total || total->unit_bytes == 0) continue;
    i = total->end;
    const Label label = read_label(line.substr(label_from, begin - label_from));
    label_from = total->end;
    if (label.gpu) whole.gpu = true;
    if (label.index >= 0) whole.index = label.index;
    MemoryPair pair;
    pair.bare = !label.gpu && !label.memory;
    if (label.other || (pair.bare && !(used->binary && total->binary))) continue;
    pair.used_bytes = bytes_of(used->number, used->unit_bytes != 0 ? used->unit_bytes : total->unit_bytes);
    pair.total_bytes = bytes_of(total->number, total->unit_bytes);
    pair.gpu = label.index >= 0 ? label.index : label.gpu ? -1 : whole.index;
    pair.names_gpu = label.gpu || whole.gpu;
    if (pair.total_bytes > 0 && pair.used_bytes <= pair.total_bytes) pairs.push_back(pair);
  }
  // If some pairs are labelled as memory, the bare ones are something else.
  if (std::any_of(pairs.begin(), pairs.end(), [](const MemoryPair& p) { return !p.bare; }))
    std::erase_if(pairs, [](const MemoryPair& p) { return p.bare; });
  // "memory 10/64 GB, GPU memory 8/24 GB": if one is labelled as a GPU's, the other is not a GPU's.
  if (std::any_of(pairs.begin(), pairs.end(), [](const MemoryPair& p) { return p.names_gpu; }))
    std::erase_if(pairs, [](const MemoryPair& p) { return !p.names_gpu; });
}

}  // namespace vramtrack
