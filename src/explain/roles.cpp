#include "explain/roles.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/meaning.hpp"
#include "core/units.hpp"
#include "explain/pattern.hpp"
#include "explain/prose.hpp"
#include "explain/statement.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// The roles that words give to an adjacent size, by their beginnings, if core/words.def has none or a message uses
/// them differently than a log. The first match counts: "target" is ignored.
constexpr struct {
  std::string_view stems;
  Figure figure;
} kRoles[] = {
    {"freed|target|peak|pre-alloc|prealloc", Figure::skipped},
    {"largest", Figure::piece},
    {"unallocated|cached", Figure::unallocated},
    {"request|desired|alloc|tried|need|require|size|asked|creat|chunk|want|需要|申请|请求", Figure::asked},
    {"maxrss|physicalbytes", Figure::resident},
    {"allowed|limit|max|capped|threshold|reqmem|ceiling", Figure::allowed},
    {"totalfree|avail|remain", Figure::free},
    {"totalused", Figure::used},
    {"found|has|have|offer|ready|total|capac", Figure::total},
    {"budget", Figure::budget},
    {"held|hold|occup|usage", Figure::used},
};
constexpr std::string_view kOthers = "other|another|khác|别的|其他";
/// Cards, and words for them. Their names contain digits: "rtx 3050", "a100".
constexpr std::string_view kCards = "vram|card|cards|geforce|rtx|gtx|tesla|quadro|titan|radeon|rx|arc|karte|显卡";
/// Words before the number of a card's model.
constexpr std::string_view kModels = "hd|geforce|gtx|rtx|gt|mx|radeon|rx|quadro|tesla|firepro|arc|iris";
constexpr std::string_view kCardNames =
    "a100|a800|a40|a10|h100|h200|h800|b200|gh200|v100|p100|k80|t4|l4|l40|mi1|mi2|mi3|3060|3070|3080|3090|4060|4070|"
    "4080|4090|5060|5070|5080|5090";
/// Cards with a single capacity, in GiB, for all variants of their number: "3080" had 10 or 12, "a100" 40 or
/// 80.
constexpr struct {
  std::string_view name;
  std::string_view suffix;
  double gib;
} kCapacities[] = {{"1070", "", 8},  {"1080", "ti", 11}, {"2080", "ti", 11}, {"3070", "", 8},  {"3080", "ti", 12},
                   {"3090", "", 24}, {"4070", "", 12},   {"4080", "", 16},   {"4090", "", 24}, {"5070", "ti", 16},
                   {"5080", "", 16}, {"5090", "", 32},   {"a10", "", 24},    {"a10g", "", 24}, {"l4", "", 24},
                   {"l40", "", 48},  {"l40s", "", 48},   {"h100", "", 80},   {"h200", "", 141}};
/// Words before a size that a program needs in total, from its plan or from its user.
constexpr std::string_view kPlans = "estimat|need|requir|project|planned|dag|load";

std::optional<Figure> role_of(std::string_view word) {
  // "allocated" is what the program holds, other forms are requests.
  if (word == "allocated" || word == "mem_allocated") return Figure::allocated;
  // "could not reserve 2 GiB": the act, where "reserved" is the state.
  if (is_any(word, "reserve|commit|obtain|acquire")) return Figure::asked;
  if (word.ends_with("-vm")) return std::nullopt;  // the kernel's "total-vm" is an address space
  for (const auto& role : kRoles)
    if (begins_any(word, role.stems)) return role.figure;
  // "free_bytes", "mem-used": the last part that has a meaning.
  for (std::string_view rest = word; !rest.empty();) {
    const std::size_t cut = rest.find_last_of("_-");
    switch (meaning_of(rest.substr(cut == std::string_view::npos ? 0 : cut + 1))) {
      case Meaning::used:
        return Figure::used;
      case Meaning::reserved:
        return Figure::reserved;
      case Meaning::free:
        return Figure::free;
      case Meaning::total:
        return Figure::total;
      default:
        break;
    }
    rest = rest.substr(0, cut == std::string_view::npos ? 0 : cut);
  }
  // "CL_DEVICE_MAX_MEM_ALLOC_SIZE"
  if (has_any(word, "_max_|_limit")) return Figure::allowed;
  return word.ends_with("alloc") ? std::optional(Figure::asked) : std::nullopt;
}

struct Size {
  double bytes = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool has_unit = false;
};

std::optional<double> read_hex(std::string_view text, std::size_t& at) {
  if (!text.substr(at).starts_with("0x")) return std::nullopt;
  std::size_t end = at + 2;
  double value = 0;
  for (; end < text.size() && end - at < 18; ++end) {
    const char c = text[end];
    if (!is_digit(c) && !(c >= 'a' && c <= 'f')) break;
    value = value * 16 + (is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  if (end == at + 2) return std::nullopt;
  at = end;
  return value;
}

/// A number whose unit follows later: "24 576 MiB", grouped by blanks, and "22.6/24.5GB", a pair with one unit.
std::optional<Size> read_joined(std::string_view line, std::size_t at, double number) {
  Size out;
  std::size_t next = at + 1;
  if (at + 3 < line.size() && line[at] == ' ' && number < 1000 && number >= 1) {
    const auto rest = read_number(line, next);
    if (!rest || next != at + 4) return std::nullopt;
    std::size_t end = at + 1;
    const auto bytes = read_size(line, end);
    if (!bytes || end == next || *rest <= 0) return std::nullopt;
    out.bytes = (number * 1000 + *rest) * (*bytes / *rest);
    out.end = end;
    return out;
  }
  // "DAG (5.01) GB", "1.71799e+10Gb"
  double power = 1;
  std::size_t unit_at = at + 1;
  if (line.substr(at).starts_with("e+") && at + 2 < line.size() && is_digit(line[at + 2])) {
    unit_at = at + 2;
    const auto exponent = read_number(line, unit_at);
    if (!exponent || *exponent > 20) return std::nullopt;
    for (double i = 0; i < *exponent; ++i) power *= 10;
  }
  if (power > 1 || line.substr(at).starts_with(") ")) {
    const std::string one = "1" + std::string(line.substr(unit_at, 8));
    std::size_t unit_end = 0;
    const auto unit = read_size(one, unit_end);
    if (!unit || unit_end < 3) return std::nullopt;
    return Size{number * power * *unit, 0, unit_at + unit_end - 1, true};
  }
  if (at >= line.size() || line[at] != '/') return std::nullopt;
  const auto whole = read_number(line, next);
  std::size_t end = at + 1;
  const auto bytes = whole ? read_size(line, end) : std::nullopt;
  if (!bytes || end == next || *whole <= 0) return std::nullopt;
  out.bytes = number * (*bytes / *whole);
  out.end = at;
  return out;
}

/// The unit that a title gives for the number at `at`: "total memory (GiB): 140.06"; 0: none.
double unit_before(std::string_view line, std::size_t at) {
  const std::string_view title = trimmed(line.substr(0, at), " :=");
  const std::size_t open = title.find_last_of("([");
  if (title.size() < 3 || open == std::string_view::npos || (title.back() != ')' && title.back() != ']')) return 0;
  const std::string one = "1" + std::string(title.substr(open + 1, title.size() - open - 2));
  std::size_t end = 0;
  const auto unit = read_size(one, end);
  return unit && end == one.size() && *unit >= kKiB ? *unit : 0;
}

/// The word before `at`, separated by a blank.
std::string_view word_before(std::string_view line, std::size_t at) {
  if (at == 0 || line[at - 1] != ' ') return {};
  std::size_t begin = at - 1;
  while (begin > 0 && is_part(line[begin - 1])) --begin;
  return line.substr(begin, at - 1 - begin);
}

/// Whether a number without a unit counts what the word behind it names: "493 records", not "493 exceeds 200".
bool is_count_of(std::string_view behind) {
  if (!behind.starts_with(' ')) return false;
  std::size_t end = 1;
  while (end < behind.size() && behind[end] >= 'a' && behind[end] <= 'z') ++end;
  const std::string_view word = behind.substr(1, end - 1);
  constexpr std::size_t kShortest = 4;
  const bool is_plural = word.size() >= kShortest && word.ends_with('s') && !ends_any(word, "ss|us");
  const bool is_label = end < behind.size() && (is_part(behind[end]) || behind[end] == ':' || behind[end] == '=');
  return is_plural && !is_label && !begins_any(word, "byte|octet|this|fail|exceed") && !role_of(word);
}

/// Numbers with a unit, and whole ones without, in line order.
std::vector<Size> sizes_of(std::string_view line) {
  std::vector<Size> out;
  for (std::size_t at = 0; at < line.size();) {
    // "A100-80GB"
    const bool is_suffix = at > 1 && line[at - 1] == '-' && is_part(line[at - 2]);
    const bool begins = is_digit(line[at]) && (at == 0 || is_suffix ||
                                               (!is_part(line[at - 1]) && line[at - 1] != '.' && line[at - 1] != '#'));
    if (!begins) {
      ++at;
      continue;
    }
    Size size;
    size.begin = at;
    std::size_t end = at;
    if (const auto hex = read_hex(line, end)) {
      size.bytes = *hex;
      size.has_unit = line.substr(end).starts_with(" bytes") || line.substr(end).starts_with(" max");
    } else {
      std::size_t number_end = at;
      const auto number = read_number(line, number_end);
      const auto bytes = read_size(line, end);
      if (!number || !bytes) {
        ++at;
        continue;
      }
      size.bytes = *bytes;
      size.has_unit = end > number_end && !line.substr(number_end).starts_with("e+");
      if (!size.has_unit) end = number_end;
      if (!size.has_unit)
        if (const auto joined = read_joined(line, number_end, *number)) {
          size.bytes = joined->bytes;
          size.has_unit = true;
          end = joined->end;
        }
      if (const double unit = size.has_unit ? 0 : unit_before(line, at); unit > 0) {
        size.bytes = *number * unit;
        size.has_unit = true;
      }
      // Part of a name: "qwen3-4b", "HD 8670M"; a code: "8007000e".
      const bool is_letter = end == number_end + 1;
      if (is_letter && line[number_end] == 'e') {
        at = end;
        continue;
      }
      if (size.has_unit &&
          ((is_suffix && size.bytes < kMiB) || (is_letter && begins_any(word_before(line, at), kModels)))) {
        at = end;
        continue;
      }
      // A fraction, a time, a version, a shape or a part of a name is not a size.
      const bool is_whole = number_end == end && *number == static_cast<double>(static_cast<std::uint64_t>(*number)) &&
                            line.substr(at, number_end - at).find('.') == std::string_view::npos;
      const bool goes_on =
          begins_any(line.substr(end), " token| element| pixel| thread| page| block") ||
          is_count_of(line.substr(end)) ||
          (end < line.size() && (is_part(line[end]) || line[end] == ':' || line[end] == '%' || line[end] == '/' ||
                                 (line[end] == '.' && end + 1 < line.size() && is_digit(line[end + 1]))));
      // "gpumem_alloc:2339": a source line of a program.
      const bool is_line = at > 1 && line[at - 1] == ':' && is_part(line[at - 2]) && *number < 1e5;
      // "collectionID=444227381339095701"
      const bool is_id = at > 2 && (line[at - 1] == '=' || line[at - 1] == ':') && line.substr(at - 3, 2) == "id";
      if (!size.has_unit && (!is_whole || goes_on || is_suffix || is_line || is_id)) {
        at = std::max(end, at + 1);
        continue;
      }
    }
    size.end = end;
    at = end;
    out.push_back(size);
  }
  return out;
}

/// The role according to the words right after a size: "of VRAM are free".
std::optional<Figure> role_behind(std::string_view text) {
  for (std::size_t at = 0, count = 0; count < 5; ++count) {
    while (at < text.size() && text[at] == ' ') ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_part(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    // "request: 538MB Available: 168MB": the label of the next one.
    if (word.empty() || (at < text.size() && (text[at] == ':' || text[at] == '='))) return std::nullopt;
    if (word == "total") return Figure::total;
    if (word == "max" || word == "maximum") return Figure::allowed;
    const auto role = role_of(word);
    // "of" introduces the whole of a size, "for" the request.
    if (role && word != "size" && word != "has") return role;
    if (!is_any(word, "of|is|are|was|were|gpu|vram|gtt|memory|video|bytes|in|total|already|device|the|mem"))
      return std::nullopt;
  }
  return std::nullopt;
}

/// The role according to the nearest words before a size; `is_next`: only the nearest. "the maximum allocation size
/// of", but "max alloc size supported by device is": a bound on requests may be further away.
std::optional<Figure> role_before(std::string_view text, bool is_next) {
  constexpr std::size_t kNear = 5, kBound = 8;
  if (has_any(text, "global mem|globalmem")) return has_any(text, "max") ? Figure::allowed : Figure::total;
  const auto words = words_of(text);
  // "used(432.7mb)": the label before the bracket is the amount's, whatever other words are near.
  if (text.size() > 1 && text.back() == '(' && is_part(text[text.size() - 2]) && !words.empty()) {
    const auto role = role_of(words.back().text);
    return role || !words.back().text.ends_with("size") ? role : Figure::asked;
  }
  std::size_t count = 0;
  bool asked = false;
  bool is_of_thing = false;
  for (auto word = words.rbegin(); word != words.rend() && count < (asked || !is_next ? kBound : 1); ++word) {
    if (word->ends_clause) break;
    if (is_any(word->text, is_next ? "memory|is|by|device|supported" : "of|the|is|memory|gpu")) continue;
    ++count;
    // "I am using a laptop with 8 GB": the verb's object is a thing, which has the amount.
    is_of_thing = is_of_thing || is_any(word->text, "with|a|an");
    if (is_of_thing && is_any(word->text, "use|uses|using")) return std::nullopt;
    if (asked && begins_any(word->text, "max|limit")) return Figure::allowed;
    if (count > kNear || (asked && count > 3)) continue;
    const auto role = role_of(word->text);
    if (role && role != Figure::asked) return asked ? Figure::asked : *role;
    if (role && count == 1 && begins_any(word->text, "request|tried|asked|want")) return Figure::asked;
    asked = asked || role || has_any(word->text, "size|requested");
  }
  return asked ? std::optional(Figure::asked) : std::nullopt;
}

/// More than any machine has, or a counter that overflowed.
constexpr double kNoMachineBytes = 16 * kTiB;
constexpr double kNoSize = 1e18;

/// Whether the words between two sizes make the second the whole of which the first is a part.
bool is_of_whole(std::string_view between) {
  const auto words = words_of(between);
  if (words.empty() || words.size() > 4 || between.find_first_of(",;:(") != std::string_view::npos) return false;
  return (words.back().text == "of" || (words.size() > 1 && words[words.size() - 2].text == "of")) &&
         std::all_of(words.begin(), words.end(), [](const Word& word) {
           return is_any(word.text, "of|out|the|free|used|available|in|use|a|total|left");
         });
}

bool is_card(const Word& word) {
  return is_any(word.text, kCards) || begins_any(word.text, kCardNames);
}
/// "8 GB GPU", but not "GPU 1 with 220 MB", which is a part of it.
bool is_card_behind(const Word& word) {
  return is_card(word) || is_any(word.text, "gpu|gpus");
}

/// Whether the words around an amount make it another's than the device's: the host's ("64 GB of RAM", "a laptop with
/// 8 GB"), the sum of several ("64 GB total across 2 GPUs"), a part ("1/4 of the total, in your case 512 MB"), or what
/// somebody else has ("we have 9 GB in the pool", "the store has 4 GB").
bool is_anothers(std::string_view before, std::string_view behind) {
  constexpr std::size_t kNear = 5;
  constexpr std::string_view kMachines = "laptop|notebook|computer|machine|pc|desktop|workstation|server|node|cpu|xeon";
  if (has_any(before, " 1/|quarter of|half of|third of")) return true;
  auto after = words_of(behind.substr(0, behind.find_first_of(",;.(")));
  const auto is_of = [&after](std::string_view list) {
    return std::any_of(after.begin(), after.end(), [list](const Word& word) { return is_any(word.text, list); });
  };
  if (is_of("across|over|on") && is_of("gpus|cards|devices")) return true;
  after.resize(std::min<std::size_t>(after.size(), 3));
  auto words = words_of(before);
  std::size_t from = words.size();
  while (from > 0 && words.size() - from < kNear && !words[from - 1].ends_clause) --from;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(from));
  const auto is_model = [](const Word& word) { return is_card(word) || is_any(word.text, kModels); };
  if (std::any_of(words.begin(), words.end(), is_model) || std::any_of(after.begin(), after.end(), is_card_behind))
    return false;
  if (is_of("ram|dram|system|host")) return true;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (is_any(words[i].text, kMachines) && is_any(words.back().text, "with|has|have")) return true;
    if (is_any(words[i].text, "we|i|you|they|store|pool|cache|allocator|arena") &&
        is_any(words[i + 1].text, "has|have"))
      return true;
  }
  return false;
}

/// Sets missing figures. `takes_asked`: the line may report the request.
void read_line(std::string_view raw, bool takes_asked, Figures& figures) {
  const std::string line = lower(raw.substr(0, kStatementBytes));
  const auto sizes = sizes_of(line);
  std::optional<Figure> last;
  const bool had_use = figures.get(Figure::allocated) || figures.get(Figure::reserved) || figures.get(Figure::used);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Size& size = sizes[i];
    std::size_t from = i == 0 ? 0 : sizes[i - 1].end;
    // A process id is not a size.
    if (i > 0 && size.has_unit && !sizes[i - 1].has_unit) from = i == 1 ? 0 : sizes[i - 2].end;
    const std::string_view before = std::string_view(line).substr(from, size.begin - from);
    const std::size_t until = i + 1 < sizes.size() ? sizes[i + 1].begin : line.size();
    const std::string_view behind = std::string_view(line).substr(size.end, until - size.end);
    auto role = size.has_unit ? role_behind(behind) : std::nullopt;
    const std::string_view joint = before.substr(std::min(before.find_first_not_of(' '), before.size()));
    const bool is_part_of_last =
        i > 0 && size.has_unit && (trimmed(joint) == "/" || joint == "of " || joint == "of which ");
    if (is_part_of_last && joint[0] == '/' && (!last || *last == Figure::used || *last == Figure::free))
      role = Figure::total;
    // "would use a total of 11573 MB / 4095 MB"
    if (is_part_of_last && joint[0] == '/' && last == Figure::total && sizes[i - 1].bytes > size.bytes) {
      role = Figure::total;
      figures.set(Figure::needed, sizes[i - 1].bytes);
      figures.clear(Figure::total);
    }
    // "23.1 GiB of 24.0 GiB in use", "100 MiB free of 8192 MiB", "0.1GiB free out of 12GiB": the total follows.
    if (i > 0 && size.has_unit && is_of_whole(joint)) {
      if (role == Figure::used && (has_any(behind, kOthers) || has_any(behind, " by "))) role = Figure::outside;
      if (role && (!last || *last == Figure::skipped) &&
          is_any(figure_key(*role), "used_bytes|free_bytes|allocated_bytes|outside_bytes") && !figures.get(*role))
        figures.set(*role, sizes[i - 1].bytes);
      if (role != Figure::allowed) role = Figure::total;
    }
    if (!role) role = role_before(before, !size.has_unit);
    // "Buffer size 640000000 is greater than the maximum buffer size (268435456)", "Device 0 OOM 31 / 30"
    const bool is_over =
        i > 0 && (has_any(before, "exceed|greater than|larger than|bigger than|longer than|more than| > ") ||
                  (joint == "/ " && sizes[i - 1].begin > 4 && line.substr(sizes[i - 1].begin - 4, 3) == "oom"));
    if (is_over && (!role || role == Figure::asked || role == Figure::total)) {
      role = Figure::allowed;
      // Memory held including the request counts as in use: no limit is shorter than an overflowed counter.
      const Figure over = joint == "/ " && sizes[i - 1].bytes < kNoSize ? Figure::used : Figure::asked;
      if (!last && sizes[i - 1].bytes >= 256 && !figures.get(over) && takes_asked)
        figures.set(over, sizes[i - 1].bytes);
    }
    // "but size of that heap is only 16777216 bytes"
    if (role == Figure::asked && figures.get(Figure::asked) && trimmed(before).ends_with("only"))
      role = Figure::allowed;
    if (!role && joint == "of ") role = Figure::total;
    if (!role && is_part_of_last) role = Figure::total;
    // "(7619 MiB, 6558 MiB free)"
    if (role == Figure::free && !last && i > 0 && joint.starts_with(", ") && joint.size() < 3 &&
        sizes[i - 1].has_unit && sizes[i - 1].bytes >= size.bytes && !figures.get(Figure::total))
      figures.set(Figure::total, sizes[i - 1].bytes);
    if (role == Figure::reserved && has_any(behind, "unallocated")) role = Figure::unallocated;
    // "other processes on GPU 0: 18.2 GiB": whoever they are, the amount is theirs.
    if ((role == Figure::used || role == Figure::asked || role == Figure::allocated || (!role && size.has_unit)) &&
        !trimmed(before).ends_with("another") &&
        has_any(before.size() < 32 ? std::string(before) + std::string(behind) : before, kOthers))
      role = Figure::outside;
    // "used by Redshift", "5.8 GiB used by this process": by the program that prints it. "Process 4711 has 14 GiB in
    // use" may be this one, so the sum of all decides.
    if ((role == Figure::used || (!role && size.has_unit)) &&
        (has_any(before, "used by|this process|by us |by us:") || has_any(behind, "by this process")))
      role = Figure::process;
    if (const std::size_t process = before.rfind("process ");
        role == Figure::used && process != std::string_view::npos && process + 8 < before.size() &&
        is_digit(before[process + 8]))
      role = Figure::skipped;
    // "cannot operate with less than 128MB of free VRAM"
    if (role == Figure::free && trimmed(before).ends_with("less than")) role = Figure::asked;
    // "349 MB allocated (driver)", beside what the allocator counts.
    if (role == Figure::allocated && trimmed(behind).starts_with("allocated (driver)")) role = Figure::process;
    // "Device limit: 23.69 GiB"
    if (role == Figure::allowed && has_any(before, "device limit")) role = Figure::total;
    if ((role == Figure::total || role == Figure::used) && is_anothers(before, std::string_view(line).substr(size.end)))
      role = Figure::skipped;
    // "to allocate 1200000000 bytes (total 7204800000 bytes)": what the allocator would hold then, not the device.
    if (role == Figure::total && last == Figure::asked && i + 1 == sizes.size() && trimmed(before, " (,:=") == "total")
      role = Figure::skipped;
    // "file descriptors: 303, soft limit: 8192"
    if (!size.has_unit && has_any(line, "file descriptor")) role.reset();
    last = role;
    if (role != Figure::asked && size.bytes >= kNoSize) continue;
    const bool is_none = size.bytes < 1 && !((role == Figure::free || role == Figure::allocated) && size.has_unit);
    if (!role || role == Figure::skipped || is_none || (!size.has_unit && size.bytes < 256)) continue;
    if (*role == Figure::asked && !takes_asked) continue;
    if (!figures.get(*role)) figures.set(*role, size.bytes);
  }
  // "Memory allocation failed on device: cuda for 120 bytes": unambiguous.
  // What a bracket adds to another word is its size: "an M40 (24GB)", "a data set (~150M in txt format)".
  if (takes_asked && sizes.size() == 1 && sizes[0].has_unit && !last && sizes[0].bytes > 0 && has_any(line, "alloc") &&
      figures.count() == 0) {
    const std::string_view before = trimmed(std::string_view(line).substr(0, sizes[0].begin), " ~<>=");
    const auto words = words_of(before);
    if (!before.ends_with('(') || words.empty() || has_any(words.back().text, "alloc|fail|memory|request"))
      figures.set(Figure::asked, sizes[0].bytes);
  }
  // "326 MB allocated, 229 MB used": a part of what the allocator has taken, and no use by all.
  const auto allocated = figures.get(Figure::allocated), used = figures.get(Figure::used);
  if (!had_use && allocated && used && *used <= *allocated && !figures.get(Figure::reserved)) {
    figures.clear(Figure::used);
    figures.clear(Figure::allocated);
    figures.set(Figure::allocated, *used);
    figures.set(Figure::reserved, *allocated);
  }
  // The share of the device that the system allows all programs together.
  if (const auto budget = figures.get(Figure::budget); budget && !figures.get(Figure::total))
    figures.set(Figure::total, *budget);
}

/// What an amount is in a comparison.
enum class Side : std::uint8_t { none, need, bound };

/// By the words right behind it, up to the next clause, else by the nearest of those before it.
Side side_of(const std::vector<Word>& before, std::string_view rest) {
  constexpr std::size_t kNear = 8, kBehind = 3;
  constexpr std::string_view kNeeds =
      "need|requir|request|consum|grow|tried|want|demand|enlarg|large|much|big|take|uses|需要|申请|必要|benötigt";
  constexpr std::string_view kBounds =
      "has|have|only|limit|max|avail|capacity|support|allow|budget|offer|provid|free|left|hardware|beyond|exceed|"
      "但只有|只有|可用|vorhanden";
  const auto side = [=](std::string_view word) {
    return begins_any(word, kNeeds) ? Side::need : begins_any(word, kBounds) ? Side::bound : Side::none;
  };
  const auto behind = words_of(rest.substr(0, rest.find_first_of(",;.")));
  for (std::size_t i = 0; i < std::min(kBehind, behind.size()); ++i) {
    if (is_any(behind[i].text, "but|only|while|and|which|that|beyond|exceeds|exceed|但只有|只有|但")) break;
    if (const Side found = side(behind[i].text); found != Side::none) return found;
  }
  for (std::size_t i = 0; i < std::min(kNear, before.size()); ++i) {
    const std::string_view word = before[before.size() - 1 - i].text;
    if (begins_any(word, "alloc|used|reserv|peak|held|in-use|previous")) return Side::none;
    // "device memory is 8 GB"
    if (i == 0 && word == "is" && before.size() > 1 && is_any(before[before.size() - 2].text, "memory|vram"))
      return Side::bound;
    if (const Side found = side(word); found != Side::none) return found;
  }
  return Side::none;
}

/// "GPU 1", "device 0", "cuda:2"; nullopt: none on the line, or several.
std::optional<double> device_in(std::string_view raw) {
  const std::string line = lower(raw);
  const auto words = words_of(line);
  std::optional<double> out;
  for (const Word& word : words) {
    if (!is_any(word.text.substr(0, word.text.find('-')), "gpu|npu|device|cuda")) continue;
    std::size_t at = word.begin + word.text.find_first_of('-') + 1;  // "gpu-0"
    if (word.text.find('-') == std::string_view::npos) at = word.end + 1;
    const std::size_t from = at;
    if (at >= line.size() || !is_digit(line[at])) continue;
    const auto index = read_number(line, at);
    if (at - from > 2 || (at < line.size() && is_part(line[at]))) continue;
    if (!index || line.substr(at).starts_with(".") || (out && *out != *index)) return std::nullopt;
    out = index;
  }
  return out;
}

/// A wrapped line of a message: it has sizes with roles, and no time before them.
bool is_wrapped(std::string_view raw) {
  const std::string line = lower(raw);
  if (line.empty() || has_statement(line)) return false;
  const auto sizes = sizes_of(line);
  const bool begins_with_size = !sizes.empty() && sizes.front().begin == 0 && sizes.front().has_unit;
  if (is_digit(line.front()) && !begins_with_size) return false;
  return std::any_of(sizes.begin(), sizes.end(), [&line](const Size& size) {
    return size.has_unit && (role_behind(std::string_view(line).substr(size.end)) ||
                             role_before(std::string_view(line).substr(0, size.begin), false));
  });
}

/// A line that continues the previous one: "[requestedSpace: 343146496 B]", "err: Size: 65536".
bool goes_on(std::string_view line) {
  const std::size_t from = std::min(line.find_first_not_of(" \t\r>|"), line.size());
  if (from >= line.size()) return false;
  if (line[from] == '[' || from >= 2) return true;
  if (line.substr(from).starts_with("- ") && line.find(": ") != std::string_view::npos) return true;
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon + 2 >= line.size()) return is_wrapped(line);
  // "Requested : 512.00 KiB"
  constexpr std::size_t kLongestKey = 48;
  const bool is_field = colon < kLongestKey && is_digit(line[colon + 2]) && line[colon + 1] == ' ';
  return is_field || line.substr(colon + 1, 3) == "   " || is_wrapped(line);
}

/// A line near a failure that does not report another one: about a device, or the free part of a total.
bool is_beside(std::string_view line) {
  const std::string words = lower(line);
  const auto names = [&words](std::string_view role) {
    return has_any(words, std::string(role) + "=|" + std::string(role) + ": ");
  };
  return (is_of_device(words) || (names("free") && names("total"))) && !has_statement(words);
}

/// The last words of the clause at the end of `text`, at most `count`.
std::vector<Word> last_words(std::string_view text, std::size_t count) {
  auto words = words_of(text);
  std::size_t from = words.size();
  while (from > 0 && words.size() - from < count && !words[from - 1].ends_clause) --from;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(from));
  return words;
}

/// The capacity of the card whose model `words` name without a capacity; nullopt: none, or several.
std::optional<double> capacity_in(const std::vector<Word>& words) {
  std::optional<double> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view name = words[i].text;
    const bool is_named = i > 0 && is_any(words[i - 1].text, "rtx|gtx|geforce|nvidia|tesla|a|an|my|the|on");
    if (begins_any(name, "rtx|gtx")) name.remove_prefix(3);
    const std::string_view next = i + 1 < words.size() ? words[i + 1].text : "";
    for (const auto& card : kCapacities) {
      if (name != card.name || (!card.suffix.empty() && next != card.suffix) || is_any(next, "laptop|mobile")) continue;
      if (!is_named && name.size() == words[i].text.size()) continue;
      if (out && *out != card.gib * kGiB) return std::nullopt;
      out = card.gib * kGiB;
    }
  }
  return out;
}

/// What a line of prose, or of a plan, says about the device and the program's need.
void read_remark(std::string_view raw, Figures& figures) {
  constexpr std::size_t kNearWords = 7;
  const std::string line = lower(raw);
  // A suggestion or a hypothetical need is not a fact.
  if (has_any(line, "if |recommend|at least|minimum|should|try ")) return;
  auto sizes = sizes_of(line);
  std::erase_if(sizes, [](const Size& size) { return !size.has_unit || size.bytes < kMiB; });  // "13B": parameters
  const auto words = words_of(line);
  const bool names_cards = std::count_if(words.begin(), words.end(), is_card) > 0;
  if (const auto capacity = names_cards && sizes.empty() ? capacity_in(words) : std::nullopt;
      capacity && !figures.get(Figure::total))
    figures.set(Figure::total, *capacity);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // "This will require 1.71799e+10Gb of memory": an invalid size.
    const bool is_wrong = sizes[i].bytes >= kNoMachineBytes;
    if (sizes[i].bytes < kGiB || (sizes[i].bytes > kTiB && !is_wrong)) continue;
    const std::size_t from = i == 0 ? 0 : sizes[i - 1].end;
    const auto before = last_words(std::string_view(line).substr(from, sizes[i].begin - from), kNearWords);
    const std::size_t until = i + 1 < sizes.size() ? sizes[i + 1].begin : line.size();
    const std::string_view rest = std::string_view(line).substr(sizes[i].end, until - sizes[i].end);
    auto behind = words_of(rest.substr(0, rest.find_first_of(",;.(")));
    behind.resize(std::min<std::size_t>(behind.size(), 3));
    const auto any = [](const std::vector<Word>& all, auto is) { return std::any_of(all.begin(), all.end(), is); };
    const bool is_of_model = has_any(line, "model|tensor|weight");
    const auto is_plan = [is_of_model](const Word& word) {
      return begins_any(word.text, kPlans) || (is_of_model && word.text.starts_with("prepar"));
    };
    const auto is_other = [](const Word& word) {
      return is_any(word.text, "ram|host|system|swap|page|disk|cpu|storage|file|model|buffer") ||
             begins_any(
                 word.text,
                 "free|avail|left|remain|use|usage|other|alloc|takes|occup|consum|about|limit|max|peak|request|amount");
    };
    // "GPU with 8gb": a whole number, not "GPU 1 with 220 MB", a part
    const bool is_gpu_with = before.size() > 1 && is_any(before.back().text, "with|has") &&
                             is_any(before[before.size() - 2].text, "gpu|gpus") && std::fmod(sizes[i].bytes, kGiB) < 1;
    const bool is_stated = !before.empty() && is_any(before.back().text, "is|are|take|takes|was|were");
    if (any(before, is_plan) || (!is_wrong && is_stated && !any(before, is_card) && !any(before, is_other))) {
      figures.set(Figure::planned, std::max(sizes[i].bytes, figures.get(Figure::planned).value_or(0)));
    } else if (!is_wrong && (any(before, is_card) || any(behind, is_card_behind) || is_gpu_with) &&
               !any(before, is_other) && !any(behind, is_other) &&
               !is_anothers(std::string_view(line).substr(from, sizes[i].begin - from), rest)) {
      // A second card, as `skipped` shows.
      if (const auto total = figures.get(Figure::total); total && *total != sizes[i].bytes)
        figures.set(Figure::skipped, sizes[i].bytes);
      else
        figures.set(Figure::total, sizes[i].bytes);
    }
  }
}

/// "after 6 hours", "runs fine for roughly 14 million steps, then", "until 1 hour of playing": if it fits at first and
/// not later, it has grown. "vram usage is always growing" says so directly.
std::string growth_in(std::string_view raw) {
  const std::string line = lower(raw);
  const auto words = words_of(line);
  const auto quote = [&](std::size_t from, std::size_t to) {
    return std::string(raw.substr(words[from].begin, words[to].end - words[from].begin));
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_rise = begins_any(words[i].text, "grow|increas|climb|rises|rising|creep") ||
                         (words[i].text == "runs" && i > 0 && words[i - 1].text == "rapidly");
    for (std::size_t j = i - std::min<std::size_t>(i, 3); is_rise && j < std::min(i + 4, words.size()); ++j)
      if (has_any(line, "memory|vram|ram usage") && !has_any(line, "no longer|not grow|n't grow") &&
          is_any(words[j].text,
                 "always|keeps|kept|keep|steadily|constantly|continuously|slowly|gradually|rapidly|until"))
        return quote(std::min(i, j), std::max(words[i].text == "runs" ? std::min(i + 3, words.size() - 1) : i, j));
    const bool is_then = words[i].text == "for" && has_any(line, " then |stops|dies|crashes");
    if (!is_any(words[i].text, "after|until") && !is_then) continue;
    bool is_many = false;
    for (std::size_t j = i + 1; j < words.size() && j < i + 5 && !words[j - 1].ends_clause; ++j) {
      const std::string_view word = words[j].text;
      std::size_t at = words[j].begin;  // "1,000"
      const auto number = read_number(line, at);
      is_many = is_many || is_any(word, "million|thousand|several|few|some|many|hundreds|thousands") ||
                (number && *number >= 100);
      const bool is_long =
          (begins_any(word, "hour|day|epoch|week") || word == "1hour") && (j > i + 1 || is_digit(word[0]));
      const bool is_while = is_any(word, "time|while") && words[j - 1].text == "long";
      if (is_long || is_while ||
          (is_many && begins_any(word,
                                 "step|iteration|frame|minute|run|batch|request|generation|inference|call|image|loop|"
                                 "quer|file|job|render|message|prediction")))
        return "after" + std::string(raw.substr(words[i].end, words[j].end - words[i].end));
    }
  }
  return {};
}

/// The words in `raw` showing that others use the device: words for company ("another instance", "also", "on the same
/// card", "when X is") next to a word for running. Suggestions and possibilities do not count.
std::string sharing_in(std::string_view raw) {
  constexpr std::size_t kNearWords = 7;
  constexpr std::string_view kProgram =
      "instance|process|program|job|application|app|container|game|copy|session|user|service|notebook|kernel|training";
  const std::string line = lower(raw);
  // One sentence at a time: a question in another one does not matter.
  for (const std::string_view mark : {". ", "? ", "! ", "\xe3\x80\x82", "\xef\xbc\x9f"})
    if (const std::size_t at = line.find(mark); at != std::string::npos && at + mark.size() < line.size()) {
      const std::string found = sharing_in(raw.substr(0, at + mark.size()));
      return found.empty() ? sharing_in(raw.substr(at + mark.size())) : found;
    }
  if (has_any(line,
              "?|if you|if another|if other|if there|make sure|check|please|no other|not |may |instead|如果|可能|是否"))
    return {};
  if (has_any(line,
              "别人|其他人|他人|其他进程|其它进程|别的进程|另一个进程|其他程序|别的程序|把显存占|全吃|他のプロセス|"
              "別のプロセス|다른 프로세스"))
    return std::string(trimmed(raw, " \r"));
  const auto words = words_of(line);
  const auto text = [&words](std::size_t i) { return i < words.size() ? words[i].text : std::string_view(); };
  const auto runs = [](std::string_view word) {
    return begins_any(word,
                      "run|start|launch|open|play|gaming|use|using|active|process|instance|ranks|workers|hold|occup");
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    // "only when Wallpaper Engine is open"; not "when it is running", "when running".
    const bool is_named = is_any(text(i), "when|while") && i + 3 < words.size() &&
                          !is_any(text(i + 1), "it|i|we|the|this|my|training|inference|running|model|using");
    std::size_t company = 0;
    if (text(i) == "same" && is_any(text(i + 1), "gpu|card|device")) company = i + 1;
    for (const std::size_t j : {i + 1, i + 2})
      if (company == 0 && is_any(text(i), "another|second|other") && is_any(text(j), kProgram)) company = j;
    // "13 workers", "2 kernels running"
    const std::size_t number_end = text(i).find_first_not_of("0123456789");
    const bool is_count =
        (number_end == std::string_view::npos && !text(i).empty() && text(i) != "0" && text(i) != "1") ||
        is_any(text(i), "two|three|several|multiple|many|both");
    const std::size_t counted = text(i + 1) == "个" || text(i + 1) == "個" ? i + 2 : i + 1;
    const bool is_next = counted < words.size() && line.find(':', words[i].end) > words[counted].begin;
    if (is_count && is_next &&
        begins_any(text(counted), "kernel|process|worker|instance|notebook|session|job|container|game|rank") &&
        has_any(line, "running|runs|gunicorn|uvicorn|celery|same gpu|one gpu|gpu0|gpu 0"))
      return std::string(raw.substr(words[i].begin, words[counted].end - words[i].begin));
    const bool is_beside = text(i) == "also" && begins_any(text(i + 1), "run|start|launch|open|play");
    if (is_beside || (text(i) == "background" && i > 2 && runs(text(i - 3)))) company = i;
    // "run a game", "the game is running"
    if (is_any(text(i), "game|games") && i > 0 && !is_any(text(i - 1), "the|my|our|your|this") &&
        (runs(text(i - std::min<std::size_t>(i, 2))) || runs(text(i + 2)))) {
      const std::size_t first = i - std::min<std::size_t>(i, 2);
      return std::string(raw.substr(words[first].begin, words[i].end - words[first].begin));
    }
    if (is_any(text(i), "when|while") && is_any(text(i + 1), "gaming|playing"))
      return std::string(raw.substr(words[i].begin, words[i + 1].end - words[i].begin));
    if (text(i) == "per" && text(i + 1) == "gpu" && i > 0 && runs(text(i - 1))) company = i + 1;
    // "more MPI processes than the number of GPUs"
    if (text(i) == "more" && has_any(line, "than the number of gpus"))
      company = static_cast<std::size_t>(
          std::find_if(words.begin(), words.end(), [](const Word& word) { return word.text == "gpus"; }) -
          words.begin());
    if (company > 0 || is_named)
      for (std::size_t j = i - std::min(i, kNearWords); j < std::min(i + kNearWords, words.size()); ++j) {
        const bool is_open =
            is_named && j > i && is_any(text(j - 1), "is|are") && is_any(text(j), "running|open|active|started");
        if (is_open || (company > 0 && runs(text(j)))) {
          const std::size_t from = std::min(i, j);
          const std::size_t to = std::max(company, j);
          return std::string(raw.substr(words[from].begin, words[to].end - words[from].begin));
        }
      }
  }
  return {};
}

/// What says that free memory is in pieces: not advice about it, nor a guess.
std::string pieces_in(std::string_view raw) {
  constexpr std::size_t kWords = 24;
  const std::string line = lower(raw);
  if (has_any(line,
              "to avoid|avoid frag|reduce|if |may |might|could be|maybe|no frag|not frag|?|避免|防止|回避|可能|如果"))
    return {};
  // "total fragmentation 4.6%" is a figure of a plan; programs say that memory "is fragmented".
  const bool is_prose = is_sentence(line) && !has_any(line, "%");
  const std::size_t at = std::min({line.find(is_prose ? "fragmentation" : "fragmented"), line.find("fragmented"),
                                   line.find("not contiguous"), line.find("\xe6\x96\xad\xe7\x89\x87"),
                                   line.find("\xe7\xa2\x8e\xe7\x89\x87")});
  return at == std::string::npos ? "" : std::string(raw.substr(at, raw.find_first_of(" ,.;", at + kWords) - at));
}

/// "beautifully with smaller files. But with larger images": what fits shows that the rest is too large.
std::string less_in(std::string_view raw) {
  constexpr std::size_t kNear = 8;
  const std::string line = lower(raw);
  if (has_any(line, "?|still|even|if |n't |not |try ")) return {};
  const auto words = words_of(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_any(words[i].text, "smaller|small|shorter|tiny")) continue;
    for (std::size_t j = i - std::min(i, kNear); j < std::min(i + kNear, words.size()); ++j)
      if (is_any(words[j].text, "works|work|worked|fine|runs|ok|succeeds|perfectly|beautifully"))
        return std::string(
            raw.substr(words[std::min(i, j)].begin, words[std::max(i, j)].end - words[std::min(i, j)].begin));
  }
  return {};
}

/// Adds the memory settings on `raw`: "device_memory_GB=9", "--gpu-memory-utilization 0.95", "--shm-size=64m". A figure
/// in a log has a name for a past value, not for an allowed one.
void read_settings(std::string_view raw, Remarks& out) {
  constexpr std::string_view kBounds =
      "limit|max|fraction|util|ratio|static|_gb|_mb|pool|size|watermark|workspace|threshold|preallocate";
  constexpr std::size_t kMostBytes = 160;
  const std::string line = lower(raw);
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = is_part(line[at]) && !is_digit(line[at]) && (at == 0 || !is_part(line[at - 1]));
    if (!begins) continue;
    const std::size_t from = at;
    while (at < line.size() && is_part(line[at])) ++at;
    const std::string_view name = std::string_view(line).substr(from, at - from);
    const bool is_option = name.starts_with("--");
    if (at + 1 >= line.size() || !(line[at] == '=' || (is_option && line[at] == ' '))) continue;
    if (!has_any(name, "mem|pool|cache|vram|heap|shm|workspace") || !has_any(name, kBounds) ||
        has_any(name, "free|used|total|alloc|reserved|peak|avail|usage|path|dir|type"))
      continue;
    const std::size_t value = at + 1;
    std::size_t end = value;
    const auto number = read_number(line, end);
    if (!number) continue;
    end = value;
    double bytes = read_size(line, end).value_or(0);
    if (bytes <= *number && name.ends_with("_gb")) bytes = *number * kGiB;
    if (bytes <= *number && name.ends_with("_mb")) bytes = *number * kMiB;
    const std::string words(raw.substr(from, end - from));
    if (out.settings.find(words) != std::string::npos || out.settings.size() > kMostBytes) continue;
    out.settings += (out.settings.empty() ? "" : ", ") + words;
    if (bytes >= kMiB && has_any(name, "memory|vram|pool|workspace")) out.set_aside = std::max(out.set_aside, bytes);
  }
}

/// The program's own advice on `raw`, in its words: "try reducing the timeline resolution", "raise --scene-cache-mb",
/// "..., which can be specified in requiredLimits"; empty: none.
std::string advice_in(std::string_view raw) {
  constexpr std::string_view kVerbs =
      "try|reduce|lower|decrease|increase|raise|shorten|consider|close|adjust|use|set|enable|free|please";
  const std::string line = lower(raw);
  if (has_any(line, "?|http|i |my ")) return {};
  std::size_t from = 0;
  while (from < line.size()) {
    const std::size_t end =
        std::min({line.find(". ", from), line.find("; ", from), line.find(" - ", from), line.find(" | ", from),
                  line.find("! ", from), line.find(", ", from), line.size()});
    const std::string_view clause = trimmed(std::string_view(line).substr(from, end - from), " .\"'`*()>");
    const std::string_view first = clause.substr(0, clause.find(' '));
    const bool is_asked = clause.find(": ") == std::string_view::npos && is_any(first, kVerbs) &&
                          clause.size() > first.size() + 4 && has_any(clause.substr(first.size()), " ");
    if (is_asked || has_any(clause, "can be specified|can be raised|can be increased|can be set|can be changed"))
      return std::string(trimmed(raw.substr(from, std::min(line.find(". ", from), line.size()) - from), " .`*>\r"));
    from = end + 2;
  }
  return {};
}

/// "pid 900 (blender) uses 7000 MB", "blender (pid 900) holds 6.8 GiB", "process 900 (blender): 7000 MB": each process
/// of a line with its name, and the size that a word for holding, or a colon, gives it.
std::vector<OtherProcess> processes_in(std::string_view raw, std::string_view line) {
  constexpr std::size_t kNear = 6;  // words between a process and its size
  constexpr std::string_view kHolds = "us|hold|has|have|tak|occup|own|keep|consum|alloc";
  std::vector<OtherProcess> out;
  const auto words = words_of(line);
  const auto sizes = sizes_of(line);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!is_any(words[i].text, "pid|process")) continue;
    std::size_t number = i + 1;
    if (words[number].text == "pid" && number + 1 < words.size()) ++number;
    if (!is_all_digits(words[number].text)) continue;
    OtherProcess process;
    std::size_t at = words[number].begin;
    process.pid = read_number(line, at).value_or(0);
    const auto name = [&](std::size_t k) {
      return std::string(raw.substr(words[k].begin, words[k].end - words[k].begin));
    };
    // Its name, behind the number or before the word: "900 (blender)", "blender (pid 900)".
    const std::string_view behind = line.substr(words[number].end);
    std::size_t from = number + 1;
    if (behind.starts_with(" (") && from < words.size()) {
      process.name = name(from++);
    } else if (behind.starts_with(")") && i > 0) {
      process.name = name(i - 1);
    }
    const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const Size& each) {
      return each.has_unit && each.bytes >= kMiB && each.begin >= words[number].end;
    });
    if (process.name.empty() || size == sizes.end()) continue;
    const bool is_colon = trimmed(line.substr(words[from - 1].end, size->begin - words[from - 1].end), " )=") == ":";
    bool holds = is_colon;
    for (std::size_t k = from; k < std::min(words.size(), from + kNear) && words[k].begin < size->begin; ++k) {
      if (is_any(words[k].text, "pid|process") || words[k - 1].ends_clause) break;
      holds = holds || begins_any(words[k].text, kHolds);
    }
    process.bytes = size->bytes;
    if (holds) out.push_back(std::move(process));
  }
  return out;
}

/// The part of a program that failed: "The following component could not be created: KV cache".
std::string part_in(std::string_view raw) {
  constexpr std::size_t kMostBytes = 60;
  constexpr std::string_view kCue = "could not be ";
  const std::string line = lower(raw);
  const std::size_t at = line.find(kCue);
  const std::size_t colon = at == std::string::npos ? at : line.find(": ", at + kCue.size());
  if (colon == std::string::npos ||
      line.substr(at + kCue.size(), colon - at - kCue.size()).find(' ') != std::string::npos)
    return {};
  const std::string_view part = trimmed(raw.substr(colon + 2, raw.find('\n', colon) - colon - 2), " \t\r.\"'`");
  // A sentence names no part, and neither does an error.
  return part.size() > kMostBytes || has_statement(lower(part)) || part.find(": ") != std::string_view::npos
             ? ""
             : std::string(part);
}

/// Calls `read` with the lines above and below, nearest first, while it returns true.
template <class Read>
void for_lines_around(std::string_view text, Range line, std::size_t lines, Read read) {
  std::size_t at = line.end;
  for (std::size_t count = 0; count < lines && at < text.size() && text[at] == '\n'; ++count) {
    const Range next = line_of(text, at + 1, at + 1);
    read(text.substr(next.begin, next.end - next.begin), false);
    at = next.end;
  }
  at = line.begin;
  for (std::size_t count = 0; count < lines && at > 0 && text[at - 1] == '\n'; ++count) {
    const Range above = line_of(text, at - 1, at - 1);
    read(text.substr(above.begin, above.end - above.begin), true);
    at = above.begin;
  }
}

/// Where what `line` reports of a failure that ends at `at` ends: whoever goes on with "Then I found that a slab has 2
/// GB" gives no request.
std::size_t end_of_report(std::string_view line, std::size_t at) {
  const std::string words = lower(line);
  if (!is_sentence(words)) return line.size();
  for (std::size_t stop = words.find(". ", at); stop != std::string::npos; stop = words.find(". ", stop + 1))
    if (names_writer(std::string_view(words).substr(stop + 2, words.find(". ", stop + 2) - stop - 2))) return stop;
  return line.size();
}

/// Whether `line` reports the failure of another request than `own` has.
bool is_of_other_failure(std::string_view line, const Figures& own) {
  const auto asked = own.get(Figure::asked);
  if (!asked || !has_statement(lower(line))) return false;
  Figures other;
  read_line(line, true, other);
  return other.get(Figure::asked) && std::abs(*other.get(Figure::asked) - *asked) > *asked / 50;
}

}  // namespace

std::optional<Range> excess_of(std::string_view line) {
  if (!(is_of_device(line) || has_any(line, "memory|heap|buffer| l1 |vram| lds")) ||
      has_any(line, "disk|upload|payload|packet|storage|partition|download|if |at least|recommend|should"))
    return std::nullopt;
  auto sizes = sizes_of(line);
  // "(36860/32768)"
  const auto words = words_of(line);
  for (std::size_t i = 0; i + 1 < words.size() && sizes.size() < 2 && has_any(line, "too "); ++i) {
    std::size_t at = words[i].begin, next = words[i + 1].begin;
    const auto part = read_number(line, at), whole = read_number(line, next);
    if (part && whole && at == words[i].end && next == words[i + 1].end && next > at && line[at] == '/' &&
        words[i + 1].begin == at + 1)
      sizes = {{*part, words[i].begin, at, false}, {*whole, at + 1, next, false}};
  }
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const Size& a = sizes[i];
    const Size& b = sizes[i + 1];
    if (std::min(a.bytes, b.bytes) < 256 || a.has_unit != b.has_unit) continue;
    const std::size_t from = i == 0 ? 0 : sizes[i - 1].end;
    const std::size_t until = i + 2 < sizes.size() ? sizes[i + 2].begin : line.size();
    const auto before = words_of(line.substr(from, a.begin - from));
    const std::string_view joint = line.substr(a.end, b.begin - a.end);
    const auto between = words_of(joint);
    const Side first = joint == "/" && has_any(line, "too ") ? Side::need : side_of(before, joint);
    const Side second = side_of(between, line.substr(b.end, until - b.end));
    const bool is_over = has_any(joint, "exceed|beyond|greater than|larger than|bigger than");
    const bool is_first = a.bytes > b.bytes && ((first == Side::need && (second == Side::bound || joint == "/")) ||
                                                (first != Side::bound && is_over));
    const bool is_second =
        first == Side::bound && second == Side::need && b.bytes > a.bytes && has_any(joint, "but |yet |aber |但");
    if (is_first || is_second)
      return Range{from + (before.empty() ? 0 : before[before.size() - std::min<std::size_t>(before.size(), 4)].begin),
                   b.end};
  }
  return std::nullopt;
}

std::size_t read_figures(std::string_view text, std::size_t begin, std::size_t end, bool may_go_on, Figures& figures) {
  const Range line = line_of(text, begin, end);
  const std::string_view own_line = text.substr(line.begin, line.end - line.begin);
  const std::size_t until = end_of_report(own_line, end - line.begin);
  read_line(own_line.substr(0, until), true, figures);
  if (until < own_line.size()) read_line(own_line.substr(until), false, figures);
  const bool has_budget = figures.get(Figure::budget).has_value();
  figures.clear(Figure::budget);
  const std::size_t own_count = figures.count();
  if (const auto device = device_in(text.substr(line.begin, line.end - line.begin)))
    figures.set(Figure::device, *device);
  const Figures own = figures;
  bool is_same = true;
  Figures above;
  for_lines_around(text, line, kStatementLines, [&](std::string_view words, bool is_above) {
    is_same = is_same && (is_above || goes_on(words));
    if (!(is_same && !is_above) && !is_beside(words)) return;
    Figures here;
    read_line(words, is_same && !is_above, here);
    if (is_of_other_failure(words, own)) return;
    // A program reports its own memory and its limit itself: those of a sentence are what somebody has read.
    if (is_sentence(lower(words)))
      for (const Figure own_figure : {Figure::allocated, Figure::reserved, Figure::process, Figure::allowed})
        here.clear(own_figure);
    (is_above ? above : figures).complete(here);
  });
  // "VRAM budget 6144 MB", "6000 MB of 6144 MB used": a budget of which the program counts its use is its limit.
  const auto budget = above.get(Figure::budget) ? above.get(Figure::budget) : figures.get(Figure::budget);
  figures.clear(Figure::budget);
  if (const auto whole = own.get(Figure::total);
      budget && whole && !has_budget && own.get(Figure::used) && std::abs(*whole - *budget) <= *budget / 100) {
    figures.set(Figure::allowed, *whole);
    figures.clear(Figure::total);
    above.clear(Figure::total);
  }
  if (!may_go_on)
    for (const Figure held : {Figure::allocated, Figure::reserved, Figure::unallocated, Figure::process})
      if (!own.get(held)) figures.clear(held);
  // Free or used memory before the failure counts only if it was already too little then.
  const auto total = above.get(Figure::total);
  const auto used = above.get(Figure::used);
  const auto free = above.get(Figure::free);
  const double asked = figures.get(Figure::asked).value_or(0);
  const bool had_room = free && asked > 0 && *free >= asked;
  if (total && !had_room && !figures.get(Figure::total)) figures.set(Figure::total, *total);
  if (used && total && *used >= 0.95 * *total && !figures.get(Figure::used)) figures.set(Figure::used, *used);
  // The memory in use belongs to this process, if more than that is not free.
  if (used && total && free && *free < *total / 10 && 2 * *used < *total - *free && !figures.get(Figure::free)) {
    figures.set(Figure::process, *used);
    figures.set(Figure::free, *free);
  }
  if (free && *free < asked && !figures.get(Figure::free)) figures.set(Figure::free, *free);
  if (const auto others = above.get(Figure::outside); others && !figures.get(Figure::outside))
    figures.set(Figure::outside, *others);
  // An account of the program's own memory, and of its limit, if by it the request did not fit.
  double held = 0;
  for (const Figure each : {Figure::allocated, Figure::reserved, Figure::process, Figure::used})
    held = std::max(held, above.get(each).value_or(0));
  if (const auto allowed = above.get(Figure::allowed);
      allowed && held > 0 && held <= *allowed && held + asked > *allowed)
    for (const Figure each : {Figure::allowed, Figure::used})
      if (!figures.get(each)) figures.set(each, each == Figure::allowed ? *allowed : held);
  if (may_go_on && total && free && *free < asked && held + *free <= 1.02 * *total)
    for (const Figure each : {Figure::allocated, Figure::reserved, Figure::process})
      if (const auto own_part = above.get(each); own_part && !figures.get(each)) figures.set(each, *own_part);
  return own_count;
}

Remarks read_remarks(std::string_view text, std::size_t begin, std::size_t end, Figures& figures) {
  constexpr std::size_t kAdvisedLines = 2;
  constexpr std::size_t kRemarkLines = 16;
  const Range line = line_of(text, begin, end);
  Remarks out;
  bool has_several = false;
  const bool had_total = figures.get(Figure::total).has_value();
  const auto read_need = [&](std::string_view words) {
    Figures here;
    read_remark(words, here);
    if (const auto total = here.get(Figure::total)) {
      has_several = has_several || here.get(Figure::skipped) ||
                    (out.capacity > 0 && std::abs(out.capacity - *total) > *total / 20);
      out.capacity = *total;
    }
    if (const auto planned = here.get(Figure::planned))
      figures.set(Figure::planned, std::max(*planned, figures.get(Figure::planned).value_or(0)));
    here.clear(Figure::planned);
    here.clear(Figure::skipped);
    figures.complete(here);
  };
  const auto read = [&](std::string_view words) {
    if (out.failed_part.empty()) out.failed_part = part_in(words);
    out.is_gtt = out.is_gtt || lower(words).find(" gtt ") != std::string::npos;
    if (out.grew.empty()) out.grew = growth_in(words);
    if (out.shared.empty()) out.shared = sharing_in(words);
    if (out.less_works.empty()) out.less_works = less_in(words);
    if (out.in_pieces.empty()) out.in_pieces = pieces_in(words);
    read_settings(words, out);
  };
  const std::string_view own = text.substr(line.begin, line.end - line.begin);
  read(own);
  out.advised = advice_in(text.substr(begin, line.end - begin));
  std::size_t below = 0;
  for_lines_around(text, line, kRemarkLines, [&](std::string_view words, bool is_above) {
    read_need(words);
    read(words);
    if (is_above && out.free_before <= 0 && is_beside(words) && !is_sentence(lower(words))) {
      Figures before;
      read_line(words, false, before);
      const double free = before.get(Figure::free).value_or(0);
      if (free > figures.get(Figure::asked).value_or(free)) out.free_before = free;
    }
    if (is_above || ++below > kAdvisedLines) return;
    if (out.advised.empty())
      out.advised = advice_in(words);
    else if (below == kAdvisedLines && !words.empty() && words[0] >= 'a' && words[0] <= 'z' &&
             out.advised.back() != ')')
      out.advised += ' ' + std::string(trimmed(words, " .\r"));  // it is wrapped
  });
  // Of several cards, none is known to be the one that failed.
  if (has_several) out.capacity = 0;
  if (has_several && !had_total) figures.clear(Figure::total);
  return out;
}

std::vector<OtherProcess> named_processes(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kMost = 8;
  std::vector<OtherProcess> out;
  for_lines_around(text, line_of(text, begin, end), kStatementLines, [&out](std::string_view raw, bool) {
    const std::string line = lower(raw);
    if (!has_any(line, "pid|process") || has_statement(line)) return;
    for (OtherProcess& each : processes_in(raw, line))
      if (out.size() < kMost && std::none_of(out.begin(), out.end(), [&](const auto& p) { return p.pid == each.pid; }))
        out.push_back(std::move(each));
  });
  return out;
}

bool is_row_of_terms(std::string_view text, std::size_t begin, bool is_statement) {
  const Range line = line_of(text, begin, begin);
  const std::string words = lower(text.substr(line.begin, line.end - line.begin));
  const std::size_t from = words.find_first_not_of(" \t");
  if (from == std::string::npos || words[from] != '|' || std::count(words.begin(), words.end(), '|') < 3) return false;
  // A wording may occur in a row of a listing: a Markdown table has a rule under its titles.
  bool has_rule = is_statement;
  for_lines_around(text, line, 2 * kStatementLines, [&has_rule](std::string_view each, bool is_above) {
    has_rule = has_rule || (is_above && each.starts_with("|--"));
  });
  if (!has_rule) return false;
  const auto sizes = sizes_of(words);
  return std::count_if(sizes.begin(), sizes.end(), [](const Size& size) { return size.has_unit; }) < 2;
}

}  // namespace vramtrack::explain
