#include "explain/statement.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "explain/pattern.hpp"

namespace vramtrack::explain {
namespace {

using Names = std::span<const std::string_view>;

/// Of what memory ran out. The order is that of Wordings below.
enum class Memory : std::uint8_t { device, any, host, pinned, shared, scratch, session };
constexpr Wording kWordings[] = {
    {"statement_device", "any", "any", Role::device, Cause::unknown, "", ""},
    {"statement", "any", "any", Role::device, Cause::unknown, "", ""},
    {"statement_host", "any", "any", Role::host, Cause::host, "", ""},
    {"statement_pinned", "any", "any", Role::host, Cause::host, "", ""},
    {"statement_shm", "any", "any", Role::host, Cause::host, "the size of /dev/shm (docker run --shm-size, --ipc=host)",
     ""},
    {"statement_scratch", "any", "any", Role::device, Cause::too_big, "", ""},
    {"statement_session", "any", "any", Role::device, Cause::unknown, "", ""},
};

constexpr std::string_view kCues[] = {
    "out of",       "outof",    "out_of",    "insufficient", "not enough", "exhaust",   "fail",
    "cannot alloc", "can't",    "could not", "couldn't",     "unable to",  "no_memory", "no memory",
    "oom",          "8007000e", "exceed",    "too much",     "bad_alloc",  "low on",    "paging file",
    "refused",      "不足",     "不够",      "不夠",         "太小",       "无法分配",  "無法分配"};

/// A word of a line. Its text is in lower case.
struct Word {
  std::string_view text;
  std::size_t begin = 0;  ///< offset in the line
  std::size_t end = 0;
  bool ends_clause = false;    ///< a mark that ends a clause stands between it and the next
  bool is_allocation = false;  ///< as the functions below tell
  bool is_storage = false;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_part(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '\'' || c == '-';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_one_of(std::string_view word, Names of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}
bool has_one_of(std::string_view text, Names of) {
  return std::any_of(of.begin(), of.end(), [text](auto each) { return text.find(each) != std::string_view::npos; });
}

bool is_memory(std::string_view word) {
  static constexpr std::string_view kMemory[] = {"memory", "mem", "vram", "ram", "vmem", "smem", "hbm", "memory's"};
  return is_one_of(word, kMemory) || word.ends_with("-memory") || word.ends_with("_memory");
}

/// What is allocated, where the verb alone could mean an address or a port.
bool is_allocation(std::string_view word) {
  return word.starts_with("alloc") || word.ends_with("alloc") || word.find("malloc") != std::string_view::npos ||
         word.find("allocat") != std::string_view::npos || word.starts_with("preallocat");
}
bool is_storage(std::string_view word) {
  static constexpr std::string_view kStorage[] = {"buffer",   "buffers", "tensor",       "tensors", "array", "texture",
                                                  "textures", "bytes",   "pool",         "heap",    "arena", "block",
                                                  "vector",   "matrix",  "kib",          "mib",     "gib",   "mb",
                                                  "gb",       "size",    "rendertexture"};
  return is_memory(word) || is_one_of(word, kStorage) || word.find("malloc") != std::string_view::npos ||
         word.find("memory") != std::string_view::npos || word.find("memalloc") != std::string_view::npos;
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> out;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_part(line[at])) {
      const bool is_mark = line[at] == ';' || line[at] == '!' || line[at] == '?' ||
                           (line[at] == '.' && (at + 1 == line.size() || line[at + 1] == ' '));
      if (is_mark && !out.empty()) out.back().ends_clause = true;
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && is_part(line[at])) ++at;
    const std::string_view word = line.substr(begin, at - begin);
    out.push_back({word, begin, at, false, is_allocation(word), is_storage(word)});
  }
  return out;
}

/// The code of a failed allocation, as drivers, systems and languages name it.
bool is_code(std::string_view word) {
  static constexpr std::string_view kCodes[] = {"out_of_memory",
                                                "outofmemory",
                                                "out_of_device_memory",
                                                "outofdevicememory",
                                                "out_of_host_memory",
                                                "outofhostmemory",
                                                "outofvideomemory",
                                                "alloc_failed",
                                                "err_no_memory",
                                                "allocation_failure",
                                                "bad_alloc",
                                                "8007000e",
                                                "memory_allocation",
                                                "errormemoryallocation",
                                                "cl_out_of_resources",
                                                "oom-kill",
                                                "oom_kill",
                                                "vmemoom"};
  return has_one_of(word, kCodes);
}

bool is_of_device(std::string_view words) {
  static constexpr std::string_view kDevices[] = {"gpu",
                                                  "cuda",
                                                  "rocm",
                                                  "vram",
                                                  "nvidia",
                                                  "amdgpu",
                                                  "radeon",
                                                  "vulkan",
                                                  "d3d",
                                                  "dxgi",
                                                  "directx",
                                                  "opencl",
                                                  "sycl",
                                                  "metal",
                                                  "mps ",
                                                  "npu",
                                                  "xpu",
                                                  "tpu",
                                                  "hbm",
                                                  "device",
                                                  "video mem",
                                                  "videomem",
                                                  "nvrm",
                                                  "[drm",
                                                  "texture",
                                                  "cumem",
                                                  "hip",
                                                  "webgpu",
                                                  "wgpu",
                                                  "opengl",
                                                  "vkalloc",
                                                  "vkresult",
                                                  "cl_",
                                                  "ze_res",
                                                  "dxvk",
                                                  "dml",
                                                  "geforce",
                                                  "render",
                                                  "显存",
                                                  "nvenc",
                                                  "cublas",
                                                  "cudnn",
                                                  "encoder session"};
  return has_one_of(words, kDevices);
}

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// "out of GPU memory", "not enough GPU video memory", "System is out of GPU and shared host memory"
std::optional<Range> lack_at(const std::vector<Word>& words, std::size_t i) {
  const auto next = [&words, i](std::size_t n) {
    return i + n < words.size() ? words[i + n].text : std::string_view();
  };
  std::size_t from = 0;
  if (words[i].text == "out" && next(1) == "of") from = 2;
  if ((words[i].text == "not" || words[i].text == "n't") && next(1) == "enough") from = 2;
  if (words[i].text == "low" && next(1) == "on") from = 2;
  if (words[i].text == "insufficient") from = 1;
  if (from == 0) return std::nullopt;
  for (std::size_t j = i + from; j < words.size() && j < i + from + 5; ++j) {
    // "GPU out of memory"
    const bool has_subject = i > 0 && !words[i - 1].ends_clause && is_of_device(words[i - 1].text);
    if (is_memory(words[j].text)) return Range{words[has_subject ? i - 1 : i].begin, words[j].end};
    if (words[j].ends_clause) break;
  }
  return std::nullopt;
}

/// "virtual memory exhausted"
std::optional<Range> exhausted_at(const std::vector<Word>& words, std::size_t i) {
  if (words[i].text != "exhausted" && words[i].text != "insufficient") return std::nullopt;
  for (std::size_t j = i; j > 0 && i - j < 2 && !words[j - 1].ends_clause; --j)
    if (is_memory(words[j - 1].text)) return Range{words[j - 1].begin, words[i].end};
  return std::nullopt;
}

/// "failed to allocate 339738624 bytes", "memory allocation of size 4096 failed", "cannot allocate big buffer"
std::optional<Range> failure_at(const std::vector<Word>& words, std::size_t i) {
  static constexpr std::string_view kFailures[] = {"fail",     "failed", "fails",  "failure", "cannot", "can't",
                                                   "couldn't", "could",  "unable", "refused", "error"};
  if (!is_one_of(words[i].text, kFailures)) return std::nullopt;
  if (words[i].text == "could" && (i + 1 >= words.size() || words[i + 1].text != "not")) return std::nullopt;
  constexpr std::size_t kNear = 9;
  std::size_t from = i;
  while (from > 0 && i - from < kNear && !words[from - 1].ends_clause) --from;
  std::size_t until = i;
  while (until + 1 < words.size() && until - i < kNear && !words[until].ends_clause) ++until;
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(until) + 1;
  const auto verb = std::find_if(begin, end, [](const Word& word) { return word.is_allocation; });
  if (verb == end || std::none_of(begin, end, [](const Word& word) { return word.is_storage; })) return std::nullopt;
  // "error" alone fails nothing: "allocation error".
  if (words[i].text == "error" && (i == 0 || !words[i - 1].is_allocation)) return std::nullopt;
  return Range{std::min(words[i].begin, verb->begin), std::max(words[i].end, verb->end)};
}

/// "uses too much shared data (0x10000 bytes, 0xc000 max)", "Scoped allocation with size 19.85M exceeded scoped vmem
/// limit", "MaxRSS 255.97G"
std::optional<Range> excess_at(const std::vector<Word>& words, std::size_t i) {
  const std::string_view word = words[i].text;
  const bool is_much = word == "too" && i + 1 < words.size() && words[i + 1].text == "much";
  if (!is_much && word != "exceeded" && word != "exceeds" && word != "exceed") return std::nullopt;
  static constexpr std::string_view kLimits[] = {"limit", "max", "capacity", "available", "maximum"};
  bool has_limit = false;
  bool has_memory = false;
  for (const Word& each : words) {
    has_limit = has_limit || is_one_of(each.text, kLimits);
    has_memory = has_memory || is_memory(each.text) || each.text == "data" || each.text == "pool";
  }
  if (!has_limit || !has_memory) return std::nullopt;
  return Range{words[i].begin, words[is_much ? i + 1 : i].end};
}

/// The text gives another reason, on the line or on the next ones: nothing is short.
bool has_other_reason(std::string_view words) {
  static constexpr std::string_view kReasons[] = {
      "driver version is insufficient", "no such file",       "result = 700", "permission denied",
      "device creation failed",         "no device available"};
  return has_one_of(words, kReasons);
}

/// In Chinese and Japanese no blanks part the words.
std::optional<Range> cjk_lack(std::string_view line) {
  static constexpr std::string_view kLacks[] = {"显存不足",   "内存不足", "显存不够", "内存不够",     "記憶體不足",
                                                "メモリ不足", "无法分配", "無法分配", "页面文件太小", "显存耗尽"};
  for (const std::string_view lack : kLacks)
    if (const std::size_t at = line.find(lack); at != std::string_view::npos) return Range{at, at + lack.size()};
  return std::nullopt;
}

std::optional<Range> failure_in(const std::vector<Word>& words, std::string_view line) {
  std::optional<Range> code;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const auto rule : {lack_at, exhausted_at, failure_at, excess_at})
      if (const auto found = rule(words, i)) return found;
    if (!code && is_code(words[i].text)) code = Range{words[i].begin, words[i].end};
  }
  if (code) return code;
  for (const std::string_view fixed : {"paging file is too small", "due to memory pressure"})
    if (const std::size_t at = line.find(fixed); at != std::string_view::npos) return Range{at, at + fixed.size()};
  return cjk_lack(line);
}

/// The line of `at`, no further than kStatementBytes / 2 to each side.
Range line_of(std::string_view text, std::size_t begin, std::size_t end) {
  Range line{begin, end};
  while (line.begin > 0 && text[line.begin - 1] != '\n' && begin - line.begin < kStatementBytes / 2) --line.begin;
  while (line.end < text.size() && text[line.end] != '\n' && line.end - end < kStatementBytes / 2) ++line.end;
  return line;
}

/// The lines around `line`.
std::string_view around(std::string_view text, Range line) {
  std::size_t lines = 0;
  std::size_t from = line.begin;
  while (from > 0 && line.begin - from < kStatementBytes && (text[from - 1] != '\n' || ++lines <= kStatementLines))
    --from;
  lines = 0;
  std::size_t until = line.end;
  while (until < text.size() && until - line.end < kStatementBytes &&
         (text[until] != '\n' || ++lines <= kStatementLines))
    ++until;
  return text.substr(from, until - from);
}

Memory memory_of(std::string_view line, std::string_view next, std::string_view lines) {
  static constexpr std::string_view kSessions[] = {"openencodesession", "encode session", "encoder session"};
  static constexpr std::string_view kPinned[] = {"pinned",     "page-locked", "pagelocked",
                                                 "mallochost", "hostalloc",   "hostregister"};
  static constexpr std::string_view kScratch[] = {
      "shared data", " vmem", " smem", "registers", "per-block shared", "shared memory per block"};
  static constexpr std::string_view kShared[] = {"/dev/shm", "shared memory", "shmem"};
  static constexpr std::string_view kHost[] = {
      "paging file",   "page file",       "页面文件",      "virtual memory",
      "system memory", "on host",         "host memory",   "cpu buffer",
      "cpu_buffer",    "cgroup",          "oom-kill",      "oom_kill",
      "out_of_host",   "defaultcpu",      "cpu allocator", "memory on the node",
      "maxrss",        "memory pressure", "the node",      "virtual memory exhausted"};
  static constexpr std::string_view kKilled[] = {"oom-kill", "oom_kill", "maxrss", "cgroup", "memory pressure"};
  if (has_one_of(line, kKilled)) return Memory::host;
  if (has_one_of(line, kSessions)) return Memory::session;
  if (has_one_of(line, kScratch) || (line.find("shared memory") != std::string_view::npos &&
                                     has_one_of(line, std::array<std::string_view, 2>{"ptxas", "triton"})))
    return Memory::scratch;
  if (has_one_of(line, kPinned)) return Memory::pinned;
  if (has_one_of(line, kShared)) return Memory::shared;
  const bool is_device = is_of_device(line);
  if (has_one_of(line, kHost) && !is_device) return Memory::host;
  if (is_device && !has_one_of(next, kPinned)) return Memory::device;
  if (has_one_of(lines, kPinned)) return Memory::pinned;
  if (has_one_of(lines, kSessions)) return Memory::session;
  return is_of_device(lines) ? Memory::device : Memory::any;
}

// ---- figures by role

constexpr struct {
  std::string_view stem;
  Figure figure;
} kRoles[] = {{"request", Figure::asked},   {"alloc", Figure::asked},    {"tried", Figure::asked},
              {"need", Figure::asked},      {"required", Figure::asked}, {"requires", Figure::asked},
              {"size", Figure::asked},      {"asked", Figure::asked},    {"creat", Figure::asked},
              {"chunk", Figure::asked},     {"target", Figure::skipped}, {"ready", Figure::total},
              {"free", Figure::free},       {"avail", Figure::free},     {"left", Figure::free},
              {"remain", Figure::free},     {"total", Figure::total},    {"capac", Figure::total},
              {"found", Figure::total},     {"has", Figure::total},      {"used", Figure::used},
              {"usage", Figure::used},      {"use", Figure::used},       {"using", Figure::used},
              {"maxrss", Figure::resident}, {"reqmem", Figure::allowed}, {"occup", Figure::used},
              {"held", Figure::used},       {"hold", Figure::used},      {"limit", Figure::allowed},
              {"max", Figure::allowed},     {"capped", Figure::allowed}, {"threshold", Figure::allowed},
              {"rảnh", Figure::free},       {"livre", Figure::free},     {"chiếm", Figure::used},
              {"显存是", Figure::total}};

std::optional<Figure> role_of(std::string_view word) {
  // "allocated" is what is held, the other forms what is asked for.
  if (word == "allocated" || word == "mem_allocated") return Figure::used;
  if (word.starts_with("totalfree") || word.starts_with("total_free")) return Figure::free;
  if (word.starts_with("largest")) return Figure::piece;
  if (word.ends_with("-vm")) return std::nullopt;  // the kernel's "total-vm" is an address space
  for (const auto& role : kRoles)
    if (word.starts_with(role.stem)) return role.figure;
  return std::nullopt;
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

/// A number that has its unit further on: "24 576 MiB", grouped by blanks, and "22.6/24.5GB", a pair of one unit.
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
  if (at >= line.size() || line[at] != '/') return std::nullopt;
  const auto whole = read_number(line, next);
  std::size_t end = at + 1;
  const auto bytes = whole ? read_size(line, end) : std::nullopt;
  if (!bytes || end == next || *whole <= 0) return std::nullopt;
  out.bytes = number * (*bytes / *whole);
  out.end = at;
  return out;
}

/// Numbers with a unit, and whole ones without, in the order of the line.
std::vector<Size> sizes_of(std::string_view line) {
  std::vector<Size> out;
  for (std::size_t at = 0; at < line.size();) {
    const bool begins =
        is_digit(line[at]) && (at == 0 || (!is_part(line[at - 1]) && line[at - 1] != '.' && line[at - 1] != '#'));
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
      size.has_unit = end > number_end;
      if (!size.has_unit)
        if (const auto joined = read_joined(line, number_end, *number)) {
          size.bytes = joined->bytes;
          size.has_unit = true;
          end = joined->end;
        }
      // A fraction, a time, a version, a shape and a part of a name are no bytes.
      const bool is_whole = number_end == end && *number == static_cast<double>(static_cast<std::uint64_t>(*number)) &&
                            line.substr(at, number_end - at).find('.') == std::string_view::npos;
      const bool goes_on =
          end < line.size() && (is_part(line[end]) || line[end] == ':' || line[end] == '%' || line[end] == '/' ||
                                (line[end] == '.' && end + 1 < line.size() && is_digit(line[end + 1])));
      if (!size.has_unit && (!is_whole || goes_on)) {
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

/// The role that the words right behind a size give it: "of VRAM are free".
std::optional<Figure> role_behind(std::string_view text) {
  static constexpr std::string_view kBetween[] = {"of",      "is",     "are",   "was",   "were", "gpu",
                                                  "vram",    "memory", "video", "bytes", "in",   "total",
                                                  "already", "device", "the",   "mem"};
  for (std::size_t at = 0, count = 0; count < 5; ++count) {
    while (at < text.size() && text[at] == ' ') ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_part(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    if (word.empty()) return std::nullopt;
    if (word == "total") return Figure::total;
    if (word == "max" || word == "maximum") return Figure::allowed;
    const auto role = role_of(word);
    // "of" leads to the size of which it is a part, "for" to what is asked for.
    if (role && word != "size" && word != "has") return role;
    if (!is_one_of(word, kBetween)) return std::nullopt;
  }
  return std::nullopt;
}

/// The role that the nearest words before a size give it; `is_next`: the nearest alone.
std::optional<Figure> role_before(std::string_view text, bool is_next) {
  const auto words = words_of(text);
  std::size_t count = 0;
  for (auto word = words.rbegin(); word != words.rend() && count < (is_next ? 1 : 5); ++word, ++count) {
    if (word->ends_clause) return std::nullopt;
    if (is_next && word->text == "memory") {
      --count;
      continue;
    }
    if (const auto role = role_of(word->text)) return role;
    if (word->text.find("size") != std::string_view::npos || word->text.find("requested") != std::string_view::npos)
      return Figure::asked;
  }
  return std::nullopt;
}

/// Sets what is missing. `takes_asked`: the line may tell of the request.
void read_line(std::string_view raw, bool takes_asked, Figures& figures) {
  const std::string line = lower(raw.substr(0, kStatementBytes));
  const auto sizes = sizes_of(line);
  std::optional<Figure> last;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Size& size = sizes[i];
    const std::size_t from = i == 0 ? 0 : sizes[i - 1].end;
    const std::string_view before = std::string_view(line).substr(from, size.begin - from);
    const std::size_t until = i + 1 < sizes.size() ? sizes[i + 1].begin : line.size();
    const std::string_view behind = std::string_view(line).substr(size.end, until - size.end);
    auto role = size.has_unit ? role_behind(behind) : std::nullopt;
    const std::string_view joint = before.substr(std::min(before.find_first_not_of(' '), before.size()));
    const bool is_part_of_last =
        i > 0 && size.has_unit && (joint == "/" || joint == "/ " || joint == "of " || joint == "of which ");
    if (is_part_of_last && joint[0] == '/' && (!last || *last == Figure::used || *last == Figure::free))
      role = Figure::total;
    if (!role) role = role_before(before, !size.has_unit);
    if (!role && joint == "of ") role = Figure::total;
    if (!role && is_part_of_last) role = Figure::total;
    // "(7619 MiB, 6558 MiB free)"
    if (role == Figure::free && !last && i > 0 && joint.starts_with(", ") && joint.size() < 3 &&
        sizes[i - 1].has_unit && sizes[i - 1].bytes >= size.bytes && !figures.get(Figure::total))
      figures.set(Figure::total, sizes[i - 1].bytes);
    static constexpr std::string_view kOthers[] = {"other", "another", "khác", "别的", "其他"};
    if (role == Figure::used && has_one_of(before, kOthers)) role = Figure::outside;
    last = role;
    constexpr double kNoSize = 1e18;
    if (role != Figure::asked && size.bytes >= kNoSize) continue;
    if (!role || role == Figure::skipped || size.bytes < 1 || (!size.has_unit && size.bytes < 256)) continue;
    if (*role == Figure::asked && !takes_asked) continue;
    if (!figures.get(*role)) figures.set(*role, size.bytes);
  }
}

/// A line that goes on with the one above: "[requestedSpace: 343146496 B]", "err:     Size:      65536".
bool goes_on(std::string_view line) {
  const std::size_t from = std::min(line.find_first_not_of(" \t\r>|"), line.size());
  if (from >= line.size()) return false;
  if (line[from] == '[' || from >= 2) return true;
  if (line.substr(from).starts_with("- ") && line.find(": ") != std::string_view::npos) return true;
  const std::size_t colon = line.find(':');
  return colon != std::string_view::npos && colon + 3 < line.size() && line.substr(colon + 1, 3) == "   ";
}

/// In a span of code (`...`) the whole of it is meant: "`call to cuMemAlloc returned error 2: Out of memory`".
void widen_to_span(std::string_view line, Range& found) {
  const std::string_view before = line.substr(0, found.begin);
  if (std::count(before.begin(), before.end(), '`') % 2 == 0) return;
  const std::size_t close = line.find('`', found.end);
  if (close == std::string_view::npos) return;
  found = {before.rfind('`') + 1, close};
}

/// A line beside a failure that tells of no other one.
bool is_beside(std::string_view line) {
  const std::string words = lower(line);
  return is_of_device(words) && !failure_in(words_of(words), words);
}

}  // namespace

std::span<const std::string_view> statement_cues() {
  return kCues;
}

std::optional<Statement> read_statement(std::string_view text, std::size_t at) {
  const Range line = line_of(text, at, at);
  const std::string words = lower(text.substr(line.begin, line.end - line.begin));
  auto found = failure_in(words_of(words), words);
  if (!found) return std::nullopt;
  constexpr std::size_t kReasonBytes = 200;
  if (has_other_reason(lower(text.substr(line.begin, line.end - line.begin + kReasonBytes)))) return std::nullopt;
  widen_to_span(words, *found);
  return Statement{line.begin + found->begin, line.begin + found->end};
}

const Wording& wording_of(std::string_view text, const Statement& statement) {
  const Range line = line_of(text, statement.begin, statement.end);
  const Range next = line_of(text, std::min(line.end + 1, text.size()), std::min(line.end + 1, text.size()));
  const Memory memory = memory_of(lower(text.substr(line.begin, line.end - line.begin)),
                                  lower(text.substr(next.begin, next.end - next.begin)), lower(around(text, line)));
  return kWordings[static_cast<std::size_t>(memory)];
}

const Wording& any_statement() {
  return kWordings[static_cast<std::size_t>(Memory::any)];
}

std::size_t read_figures(std::string_view text, std::size_t begin, std::size_t end, Figures& figures) {
  const Range line = line_of(text, begin, end);
  read_line(text.substr(line.begin, line.end - line.begin), true, figures);
  const std::size_t own_count = figures.count();
  bool is_same = true;
  std::size_t at = line.end;
  for (std::size_t count = 0; count < kStatementLines && at < text.size() && text[at] == '\n'; ++count) {
    const Range next = line_of(text, at + 1, at + 1);
    const std::string_view words = text.substr(next.begin, next.end - next.begin);
    is_same = is_same && goes_on(words);
    if (is_same || is_beside(words)) read_line(words, is_same, figures);
    at = next.end;
  }
  Figures above;
  at = line.begin;
  for (std::size_t count = 0; count < kStatementLines && at > 0 && text[at - 1] == '\n'; ++count) {
    const Range line_above = line_of(text, at - 1, at - 1);
    const std::string_view words = text.substr(line_above.begin, line_above.end - line_above.begin);
    if (is_beside(words)) read_line(words, false, above);
    at = line_above.begin;
  }
  // What was free or in use before the failure shows what was then only where it was too little already.
  const auto total = above.get(Figure::total);
  const auto used = above.get(Figure::used);
  const auto free = above.get(Figure::free);
  if (total && !figures.get(Figure::total)) figures.set(Figure::total, *total);
  if (used && total && *used >= 0.95 * *total && !figures.get(Figure::used)) figures.set(Figure::used, *used);
  if (free && *free < figures.get(Figure::asked).value_or(0) && !figures.get(Figure::free))
    figures.set(Figure::free, *free);
  if (const auto others = above.get(Figure::outside); others && !figures.get(Figure::outside))
    figures.set(Figure::outside, *others);
  return own_count;
}

bool is_row_of_terms(std::string_view text, std::size_t begin) {
  const Range line = line_of(text, begin, begin);
  const std::string words = lower(text.substr(line.begin, line.end - line.begin));
  const std::size_t from = words.find_first_not_of(" \t");
  if (from == std::string::npos || words[from] != '|' || std::count(words.begin(), words.end(), '|') < 3) return false;
  const auto sizes = sizes_of(words);
  return std::count_if(sizes.begin(), sizes.end(), [](const Size& size) { return size.has_unit; }) < 2;
}

std::string_view went_on_words(std::string_view text, std::size_t begin, std::size_t end) {
  static constexpr std::string_view kWords[] = {
      "falling back",   "fall back to", "fallback to",        "retrying",         "will retry",
      "skipping",       "trying again", "attempting to free", "is not a failure", "continuing with",
      "using unpinned", "继续运行",     "continues without"};
  constexpr std::size_t kLines = 2;
  const Range line = line_of(text, begin, end);
  std::size_t until = line.end;
  for (std::size_t lines = 0; until < text.size() && until - line.end < kStatementBytes; ++until)
    if (text[until] == '\n' && ++lines > kLines) break;
  const std::string_view raw = text.substr(line.begin, until - line.begin);
  const std::string words = lower(raw);
  // What cannot be pinned is only slower, where the program warns of it.
  const std::string_view own = std::string_view(words).substr(0, line.end - line.begin);
  if (own.starts_with("warning") && own.find("pinned") != std::string_view::npos) return raw.substr(0, own.size());
  for (const std::string_view each : kWords)
    if (const std::size_t at = words.find(each); at != std::string::npos) {
      const std::size_t from = raw.rfind('\n', at) + 1;
      return raw.substr(from, raw.find('\n', at) - from);
    }
  return {};
}

}  // namespace vramtrack::explain
