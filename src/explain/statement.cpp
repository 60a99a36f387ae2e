#include "explain/statement.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/what_runs.hpp"
#include "explain/codes.hpp"
#include "explain/pattern.hpp"
#include "explain/roles.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// The memory that ran out. The order is that of kWordings.
enum class Memory : std::uint8_t {
  device,
  any,
  host,
  pinned,
  shared,
  scratch,
  session,
  pool,
  excess,
  address,
  killed,
  piece,
  requirement,
  thread,
  ended,
  other_reason
};
constexpr std::string_view kShm = "the size of /dev/shm (docker run --shm-size, --ipc=host)";
constexpr std::string_view kPool = "the size or share that the program sets aside when it starts";
constexpr std::string_view kPiece = "the largest piece that the driver allocates: split the request";
constexpr std::string_view kRequirement = "what the program requires of a device before it uses it";
constexpr std::string_view kThreads = "of threads or addresses: ulimit -u and -v, pids.max of the container";
constexpr std::string_view kAddress = "a program of 64 bits; of Wine, WINE_LARGE_ADDRESS_AWARE=1";
constexpr std::string_view kOtherReason =
    "an allocation failed for another reason than a lack of memory, which its line or one beside it gives";
constexpr Wording kWordings[] = {
    {"statement_device", "any", "any", Role::device, Cause::unknown, "", ""},
    {"statement", "any", "any", Role::device, Cause::unknown, "", ""},
    {"statement_host", "any", "any", Role::host, Cause::host, "", ""},
    {"statement_pinned", "any", "any", Role::host, Cause::host, "", ""},
    {"statement_shm", "any", "any", Role::host, Cause::host, kShm, ""},
    {"statement_scratch", "any", "any", Role::resource, Cause::resource, "", ""},
    {"statement_session", "any", "any", Role::device, Cause::unknown, "", ""},
    {"statement_pool", "any", "any", Role::device, Cause::limit, kPool, ""},
    {"statement_excess", "any", "any", Role::device, Cause::too_big, "", ""},
    {"statement_address", "any", "any", Role::resource, Cause::resource, kAddress, ""},
    {"statement_killed", "any", "any", Role::host, Cause::host, "", ""},
    {"statement_piece", "any", "any", Role::device, Cause::limit, kPiece, ""},
    {"statement_requirement", "any", "any", Role::device, Cause::limit, kRequirement, ""},
    {"statement_thread", "any", "any", Role::resource, Cause::resource, kThreads, ""},
    {"statement_ended", "any", "any", Role::host, Cause::unknown, "", ""},
    {"statement_other_reason", "any", "any", Role::event, Cause::unknown, kOtherReason, ""},
};

constexpr std::string_view kCues =
    "out of|outof|reject|denied|reached|too long|over quota|over budget|not fit|too big|bigger than|longer than|"
    "> 2**|buffer_size|image_size|all available|all the|out_of|insufficient|exhaust|fail|cannot alloc|"
    "cannot reserve|cannot commit|cannot map|can not|can't|could not|couldn't|unable to|not able|tried to|"
    "attempted to|trying to alloc|invalid buffer|invalid alloc|allocation on|memoryerror|no avail|no "
    "space|failcnt|memory: -|"
    "cache: -|memory is -|cache is -|terminated|evicted|allocation err|no_memory|no memory|memoryalloc|oom|"
    "ed more |for more |out-of-mem|8007000e|2147024882|exceed|too much|bad_alloc|low on|too low|enomem|not "
    "possible|less than|smaller "
    "than|"
    "larger than|greater than|more than|too large|but only|paging file|refused|error -|error `-|error (-|errno|"
    "code -|code: -|shortage|lack of|no_mem|mem_|-12|error 2|result=2|result = 2|error=2|error code 2|"
    "error code: 2|error 3|status 3|error 10|code 10|error 12|0x505|0x0505|70000002|70000003|8876017c|2005532292|"
    "c01e0100|clenqueue|clcreatebuffer|vkqueue|status 2|137|sigkill|killed|bad allocation|error when|error while|"
    "error alloc|dst tensor|: -9|= -9|不足|不够|不夠|is full|太小|无法分配|부족|無法分配|enough|more "
    "system|overflow|returned n|"
    "(nil)|too many res|but |only |beyond |require|needs |need |wants |limit|需要|benötigt|c000012d|is only|vkalloc";

constexpr std::string_view kDevices =
    "gpu|cuda|rocm|vram|rmm failure|/rmm/|nvidia|amdgpu|radeon|vulkan|d3d|dxgi|directx|vkcreate|opencl|sycl|metal|mps "
    "|npu|xpu|tpu|hbm|"
    "device|video mem|videomem|nvrm|[drm|texture|cumem|curesult|hip|webgpu|wgpu|opengl|vkalloc|vkresult|cl_|ze_res|"
    "dxvk|dml|geforce|hpu|habana|devmem|_gmem|render|kgsl|adreno|mali |显存|nvenc|cublas|cudnn|encoder session";
/// Texts that give another reason than a lack of memory, whatever the failure says.
constexpr std::string_view kOtherReasons =
    "driver version is insufficient|no such file|result = 700|permission denied|device creation failed|"
    "no device available|no va display";
/// The same for a failure that does not itself say that memory is short. After a fault of a kernel every call fails.
constexpr std::string_view kOtherErrors =
    "invalid argument|not supported|kernel image|illegal memory access|illegal address|invalid device|unspecified "
    "launch|device-side assert|misaligned address|invalid resource handle|initialization error|operation not permitted";
constexpr std::string_view kLacks =
    "out of|out_of|outof|not enough|insufficient|exhaust|memoryallocation|no memory|nomem|enomem|cannot allocate "
    "memory";

bool is_memory(std::string_view word) {
  // "out of memor": a line that was cut off.
  const bool is_begun = word.size() >= 3 && std::string_view("memory").starts_with(word);
  return is_begun || is_any(word, "vram|ram|vmem|smem|hbm|memory's|memoryerror") || word.ends_with("-memory") ||
         word.ends_with("_memory") || word.ends_with("-mem");
}
bool is_allocation(std::string_view word) {
  if (is_any(word, "jemalloc|tcmalloc|mimalloc")) return false;  // names of libraries
  return word.starts_with("alloc") || word.ends_with("alloc") ||
         has_any(word, "malloc|allocat|_alloc_|cuctxcreate|memalign|mmap|encodesession") || word == "pin";
}
/// What is allocated, where the verb alone could mean an address or a port.
bool is_storage(std::string_view word) {
  return is_memory(word) || has_any(word, "malloc|memory|memalloc|memalign|_gmem|devmem|encodesession") ||
         is_any(word,
                "buffer|buffers|tensor|tensors|array|texture|textures|bytes|pool|heap|arena|block|vector|matrix|kib|"
                "mib|gib|mb|gb|size|rendertexture|atlas");
}

/// "412 mb", "5mb": the end of a number of bytes.
bool is_unit(std::string_view word) {
  const std::size_t at = std::min(word.find_first_not_of("0123456789"), word.size());
  return is_any(word.substr(at), "bytes|kb|kib|mb|mib|gb|gib");
}

/// The forms of a number of bytes, elements or pixels: "640000000", "0xc000", "412 mb", "5mb", "23040x23040".
bool is_amount(const std::vector<Word>& words, std::size_t i) {
  constexpr std::size_t kManyDigits = 6;
  const std::string_view word = words[i].text;
  if (!is_digit(word.front())) return false;
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  return digits >= kManyDigits || word.starts_with("0x") || is_unit(word) ||
         (digits < word.size() && word[digits] == 'x' && is_digit(word.back())) ||
         (i + 2 < words.size() && words[i + 1].text == "x" && is_digit(words[i + 2].text.front())) ||
         (i + 1 < words.size() && is_unit(words[i + 1].text) && !is_digit(words[i + 1].text.front()));
}

/// Whether one of words [from, until) is in `list`.
bool has_word(const std::vector<Word>& words, std::size_t from, std::size_t until, std::string_view list) {
  for (std::size_t i = from; i < std::min(until, words.size()); ++i)
    if (is_any(words[i].text, list)) return true;
  return false;
}

/// "out of GPU memory", "not enough GPU video memory", "System is out of GPU and shared host memory"
std::optional<Range> lack_at(const std::vector<Word>& words, std::size_t i) {
  const auto next = [&words, i](std::size_t n) {
    return i + n < words.size() ? words[i + n].text : std::string_view();
  };
  if (i > 0 && is_any(words[i - 1].text, "not|no|never|without") && !words[i - 1].ends_clause) return std::nullopt;
  std::size_t from = 0;
  const bool is_of = next(1) == "of" && is_any(words[i].text, "out|lack|shortage");
  const bool is_not = next(1) == "enough" && is_any(words[i].text, "not|n't");
  if (is_of || is_not || (words[i].text == "low" && next(1) == "on")) from = 2;
  if (words[i].text == "not" && next(2) == "enough") from = 3;  // "does not provide enough"
  // "no memory for strdup", and not "no memory region specified"
  const std::size_t noun = is_any(next(1), "available|usable|remaining|contiguous") ? 2 : 1;
  const bool is_none =
      words[i].text == "no" && is_memory(next(noun)) &&
      (next(noun + 1).empty() || words[i + noun].ends_clause || is_any(next(noun + 1), "for|to|available|left"));
  if (words[i].text == "insufficient" || is_none) from = 1;
  // "the cgroup out-of-memory handler", "Created an OOM event", "GPU OOM"
  const bool is_event = (words[i].text == "out-of-memory" && is_any(next(1), "handler|killer")) ||
                        (words[i].text == "oom" && next(1) == "event");
  if (is_event || (words[i].text == "oom" && i > 0 && is_of_device(words[i - 1].text)))
    return Range{words[i - (is_event ? 0 : 1)].begin, words[i].end};
  // "Device 0 OOM 3171158016 / 3145728000"
  if (words[i].text == "oom" && i > 1 && !next(1).empty() && is_digit(next(1).front()) &&
      is_of_device(words[i - 2].text))
    return Range{words[i - 2].begin, words[i].end};
  // "CUDA OOMs: 1"
  if (words[i].text == "ooms" && !next(1).empty() && is_digit(next(1).front()) && next(1) != "0")
    return Range{words[i - std::min<std::size_t>(i, 1)].begin, words[i + 1].end};
  // "OOM when allocating tensor", "OOM: need 12.5 GiB"
  if (words[i].text == "oom" && i + 2 < words.size() &&
      (words[i + 1].is_allocation || words[i + 2].is_allocation || begins_any(next(1), "need|request|tried|wanted")))
    return Range{words[i].begin, words[i].end};
  if (words[i].text == "unlikely" && has_word(words, i + 2, i + 3, "enough")) from = 3;
  if (from == 0) return std::nullopt;
  for (std::size_t j = i + from; j < words.size() && j < i + from + 5; ++j) {
    // "GPU out of memory"
    const bool has_subject =
        i > 0 && !words[i - 1].ends_clause && (words[i - 1].text == "system" || is_of_device(words[i - 1].text));
    const bool is_space = (words[j].text == "space" && words[j - 1].text == "address") ||
                          (words[j].text == "resources" && words[j - 1].text == "system");
    if (is_space || is_memory(words[j].text)) return Range{words[has_subject ? i - 1 : i].begin, words[j].end};
    if (words[j].ends_clause) break;
  }
  return std::nullopt;
}

/// "virtual memory exhausted", "after using all available RAM"
std::optional<Range> exhausted_at(const std::vector<Word>& words, std::size_t i) {
  if (words[i].text == "all" && i > 0 && begins_any(words[i - 1].text, "us|consum|exhaust|fill"))
    for (std::size_t j = i + 1; j < std::min(i + 4, words.size()); ++j)
      if (is_memory(words[j].text)) return Range{words[i - 1].begin, words[j].end};
  // "memory: usage 2097152kB, limit 2097152kB, failcnt 65": the requests that a control group refused
  if (words[i].text == "failcnt" && i + 1 < words.size() && is_digit(words[i + 1].text.front()) &&
      words[i + 1].text != "0")
    return Range{words[i].begin, words[i + 1].end};
  // "memory too low on GPU 0"
  if (words[i].text == "low" && i > 1 && words[i - 1].text == "too" && is_memory(words[i - 2].text))
    return Range{words[i - 2].begin, words[i].end};
  if (!is_any(words[i].text, "exhausted|insufficient|shortage")) return std::nullopt;
  for (std::size_t j = i; j > 0 && i - j < 2 && !words[j - 1].ends_clause; --j)
    if (is_memory(words[j - 1].text)) return Range{words[j - 1].begin, words[i].end};
  return std::nullopt;
}

/// Things that are allocated but are not memory.
constexpr std::string_view kOtherResources =
    "address|addresses|port|ports|socket|sockets|file|descriptor|descriptors|fd|fds|node|nodes|job|jobs|task|tasks|"
    "register|registers|vgpr|sgpr|color|colors|tty|pty|inode|id|ids|license|resource|resources|cpu|cpus|cores|ip|"
    "subnet|route|channel|slot|slots|thread|threads|worker|workers|resolver|bus|gpus|quota|column|symbol|stack";

/// "failed to allocate 339738624 bytes", "memory allocation of size 4096 failed", "cannot allocate big buffer"
std::optional<Range> failure_at(const std::vector<Word>& words, std::size_t i) {
  if (!is_any(words[i].text,
              "fail|failed|fails|failing|failure|cannot|can|can't|couldn't|could|unable|able|refused|rejected|denied|"
              "error|null|"
              "nullptr|nil"))
    return std::nullopt;
  // "large alloc 8589934592 bytes == (nil)", "malloc returned NULL"; not "data != NULL"
  if (begins_any(words[i].text, "null") && (i == 0 || !is_any(words[i - 1].text, "returned|got|gave")))
    return std::nullopt;
  if (is_any(words[i].text, "can|could") && (i + 1 >= words.size() || words[i + 1].text != "not")) return std::nullopt;
  if (words[i].text == "able" && (i == 0 || words[i - 1].text != "not")) return std::nullopt;
  constexpr std::string_view kNegations = "cannot|can|can't|couldn't|could|unable|able";
  constexpr std::size_t kNear = 9;
  std::size_t from = i;
  while (from > 0 && i - from < kNear && !words[from - 1].ends_clause) --from;
  std::size_t until = i;
  while (until + 1 < words.size() && until - i < kNear && !words[until].ends_clause) ++until;
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(until) + 1;
  // "mem_allocated 12 GiB, request failed": "allocated" memory did not fail, unless "could not be" precedes it.
  const bool may_be_past = is_any(words[i].text, kNegations);
  // "cannot" negates the verb: "cannot allocate", but not "the allocated size cannot be less".
  const auto after = may_be_past ? words.begin() + static_cast<std::ptrdiff_t>(i) : begin;
  auto verb = std::find_if(after, end, [may_be_past](const Word& word) {
    return word.is_allocation && (may_be_past || !word.text.ends_with("allocated"));
  });
  // "failed to create a shared memory segment of 536870912 bytes"
  const auto has = [begin, end](std::string_view list) {
    return std::any_of(begin, end, [list](const Word& word) { return is_any(word.text, list); });
  };
  const bool has_bytes =
      std::any_of(begin, end, [](const Word& word) { return is_unit(word.text); }) || (has("memory") && has("size"));
  if (verb == end && has("memory|vram|pool|heap|arena|device|gpu"))
    verb = std::find_if(begin, end, [has_bytes](const Word& word) {
      return begins_any(word.text, "reserv|commit|obtain") ||
             (has_bytes && begins_any(word.text, "creat|map|plac|fit|satisf|grow|expand|enlarge|extend|resiz"));
    });
  if (verb == end) return std::nullopt;
  // Memory is what is allocated, unless the words name something else, without memory next to it.
  const auto stores = [](const Word& word) { return word.is_storage || is_unit(word.text); };
  const auto is_other = [](const Word& word) { return is_any(word.text, kOtherResources); };
  if (std::none_of(begin, end, stores) && std::any_of(begin, end, is_other)) return std::nullopt;
  // "error" needs a noun for the action: "allocation error", "error when allocating".
  const auto allocates = [&words](std::size_t k) { return k < words.size() && words[k].is_allocation; };
  const bool is_verb_next = verb == words.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  if (words[i].text == "error" && !allocates(i - 1) && !allocates(i + 1) && !is_verb_next) return std::nullopt;
  // "no allocation failed"
  const auto first = std::min(static_cast<std::size_t>(verb - words.begin()), words[i].text == "able" ? i - 1 : i);
  if (first > 0 && is_any(words[first - 1].text, "no|never|without")) return std::nullopt;
  // "Error while creating shared memory segment x (size 9637888)": up to its size.
  const bool has_size = is_verb_next && words[until].begin > verb->begin && is_amount(words, until);
  return Range{words[first].begin, has_size ? words[until].end : std::max(words[i].end, verb->end)};
}

/// Things with their own maximum size, and reserved parts of the memory.
constexpr std::string_view kPieces =
    "buffer|buffers|binding|texture|textures|image|tensor|tensors|ndarray|array|matrix|variable|block|object|dimension|"
    "dimensions|width|height|allocation|newbufferwith";
constexpr std::string_view kPools = "pool|budget|quota|cache|arena|kv|kvcache|limit|vgpu";
struct Found {
  Range range;
  std::optional<Memory> memory;  ///< if only the structure shows it
};

/// An amount next to a bound that it exceeds. The noun of the bound shows its scope:
///   the device   "memory on device (31.4/47.4 GiB) is less than desired (45.0 GiB)", "requires more system memory (12
///                GiB) than is available (7 GiB)", "uses too much shared data (0x10000 bytes, 0xc000 max)"
///   one piece    "Buffer size 640000000 is greater than the maximum buffer size (268435456)", "must not exceed 8
///   bytes" a part       "KV cache is full", "pool budget of 6144 MB reached", "16535 tokens > 8221 maximum"
std::optional<Found> excess_at(const std::vector<Word>& words, std::size_t i, std::string_view line) {
  const std::string_view word = words[i].text;
  const std::string_view next = i + 1 < words.size() ? words[i + 1].text : "";
  // "collisionStackSize buffer overflow detected, please increase its size"
  if (word.starts_with("overflow") && i > 0 && is_any(words[i - 1].text, "buffer|pool|heap|arena|cache") &&
      has_any(line, "increase |raise ") && has_any(line, "size|capacity|count"))
    return Found{{words[i - 1].begin, words[i].end}, Memory::pool};
  const bool is_more =
      begins_any(word, "exceed") || (is_any(word, "larger|greater|bigger|longer|more") && next == "than");
  const bool is_too = word == "too" && is_any(next, "much|large|big|long");
  const bool is_sign = line.substr(words[i].end, 3) == " > " && is_digit(next.empty() ? ' ' : next.front());
  const bool is_end = is_any(word, "full|reached|exhausted") ||
                      (is_any(word, "exceeded|exceeds|over") && is_any(next, "quota|budget|pool"));
  const bool is_less =
      (is_any(word, "less|smaller") && next == "than") || (word == "more" && has_word(words, i + 1, i + 8, "than")) ||
      (word == "but" && has_word(words, i + 1, i + 7, "only") && has_any(line, "free|available|alloc"));
  if (!is_more && !is_too && !is_sign && !is_end && !is_less) return std::nullopt;
  std::size_t amounts = 0;
  bool has_limit = false, has_memory = false, has_piece = false, is_what_is_free = false, has_part = false;
  for (std::size_t j = 0; j < words.size(); ++j) {
    const std::string_view each = words[j].text;
    if (is_amount(words, j)) ++amounts;
    has_limit = has_limit || begins_any(each, "limit|max") || is_any(each, "allowed|supported|int_max");
    is_what_is_free = is_what_is_free || begins_any(each, "free|avail|capacity|request|require|desired|budget");
    has_memory = has_memory || is_memory(each) || is_any(each, "pool|allocation|heap");
    has_piece = has_piece || is_any(each, kPieces) || has_any(each, "_buffer|_image|_texture") ||
                (each.starts_with("max") && has_any(each, "buffer|image|texture|alloc"));
    const std::size_t distance = std::max(i, j) - std::min(i, j);
    has_part = has_part || (distance <= 5 && is_any(each, kPools)) || is_any(each, "kv|kvcache");
  }
  has_memory = has_memory || (amounts > 1 && has_any(line, "byte size"));
  // The comparison is the statement: "error: the buffer of 4 GiB is greater than ..."
  const std::size_t colon = line.substr(0, words[i].begin).rfind(": ");
  const std::size_t from = colon == std::string_view::npos ? words.front().begin : colon + 2;
  const Range range{from, words[std::min(i + 1, words.size() - 1)].end};
  const bool is_kept = is_any(word, "exceed|exceeds|exceeded") && i > 0 && words[i - 1].text == "not";
  // Any library may say this about a buffer, unless it is a large one.
  const bool has_power = has_any(line, "2**3|2^3|int_max") && has_any(line, "tensor|ndarray|texture|gpu");
  const bool has_size = has_word(words, 0, words.size(), "size");
  const bool is_large = amounts > 1 || ((amounts > 0 || has_size) && is_of_device(line)) || has_power;
  if ((is_more || is_sign || (is_too && amounts > 1)) && has_piece && (has_limit || is_kept || has_power) && is_large &&
      !has_any(line, "pool"))
    return Found{range, Memory::piece};
  // "createBuffer failed, size is too large for the implementation": what could not be created, and no figure.
  const bool is_created = std::any_of(words.begin(), words.end(), [](const Word& each) {
    return each.text.starts_with("create") && ends_any(each.text, "buffer|texture|image|tensor|array");
  });
  if (is_too && next == "large" && i > 0 && words[i - 1].text == "size" && is_created && is_of_device(line) &&
      has_any(line, "fail|error"))
    return Found{range, Memory::piece};
  const bool is_of_cache = has_any(line, "kv cache|kv-cache|kvcache|kv size|kv_cache");
  const bool is_in_memory = amounts > 0 || is_of_cache || (has_memory && !has_any(line, "pool") && is_of_device(line));
  const auto is_number = [](const Word& each) { return is_digit(each.text.front()); };
  const bool is_over_cache = is_more && std::count_if(words.begin(), words.end(), is_number) > 1;
  if ((is_end && has_part && is_in_memory) || (is_of_cache && (is_too || is_sign || is_over_cache)))
    return Found{range, Memory::pool};
  if ((is_too && next == "much") || begins_any(word, "exceed")) {
    has_limit = has_limit || is_what_is_free;
    has_memory = has_memory || (is_too && i + 2 < words.size() && words[i + 2].text == "shared");
    if (!has_limit || !has_memory) return std::nullopt;
    const Memory of_limit = !has_word(words, i + 1, i + 5, "limit")                               ? Memory::excess
                            : has_word(words, i + 1, i + 3, "step|job|task|pod|container|cgroup") ? Memory::host
                                                                                                  : Memory::pool;
    return Found{{words[i].begin, words[is_too ? i + 1 : i].end}, of_limit};
  }
  // "requires more memory than is", "model request too large for system": what it is compared with is left out.
  const bool is_of_all = (is_less && has_memory &&
                          has_any(line, "requires more|needs more|requested more|request for more|asked for more") &&
                          has_any(line, "than is|than available|than the available")) ||
                         (is_too && has_any(line, "too large for this|too large for system|too large for the system") &&
                          has_any(line, "model|request|alloc"));
  if (is_of_all) return Found{{colon == std::string_view::npos ? words[i].begin : from, range.end}, Memory::excess};
  const bool compares = is_less || is_more || (is_sign && amounts > 1) ||
                        (is_too && next == "large" && (has_any(line, "for this") || (amounts > 1 && is_what_is_free)));
  if (!compares || line.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (!(has_memory || has_any(line, "buffer size|gib)|gb)") || (is_of_device(line) && has_any(line, " gib| gb"))) ||
      !(is_sign ||
        has_any(
            line,
            "available|requested|required|desired|free|total|maximum|allowed|is only|for this system|for this device")))
    return std::nullopt;
  return Found{{colon == std::string_view::npos ? words[i].begin : from, range.end}, Memory::excess};
}

/// "Attempting to allocate 196.00M. That was not possible."
std::optional<Range> impossible_at(const std::vector<Word>& words, std::size_t i) {
  if (words[i].text != "possible" || i == 0 || words[i - 1].text != "not") return std::nullopt;
  for (std::size_t j = i; j > 0 && i - j < 14; --j)
    if (words[j - 1].is_allocation || begins_any(words[j - 1].text, "reserv"))
      return Range{words[j > 3 ? j - 3 : 0].begin, words[i].end};
  return std::nullopt;
}

/// "Tried to allocate 20.00 MiB", "attempted to reserve 2 GiB": who tried did not succeed.
std::optional<Range> attempt_at(const std::vector<Word>& words, std::size_t i) {
  if (!is_any(words[i].text, "tried|attempted") || i + 3 >= words.size() || words[i + 1].text != "to")
    return std::nullopt;
  if (!words[i + 2].is_allocation && !begins_any(words[i + 2].text, "reserv|commit|obtain")) return std::nullopt;
  for (std::size_t j = i + 3; j < std::min(i + 9, words.size()); ++j) {
    if (is_digit(words[j].text.front())) return Range{words[i].begin, words[j].end};
    if (words[j].ends_clause) break;
  }
  return std::nullopt;
}

/// "trying to allocate an array of size -1208014592": a negative amount that an allocation asks for. A code is
/// negative, too: "allocation failed: -2147024882".
std::optional<Range> negative_request_at(const std::vector<Word>& words, std::size_t i) {
  constexpr std::size_t kNear = 7, kLeastDigits = 4;
  const std::string_view word = words[i].text;
  if (i == 0 || word.size() < 2 || word[0] != '-' || !is_digit(word[1]) || words[i].is_code) return std::nullopt;
  const std::size_t digits = std::min(word.find_first_not_of("0123456789", 1), word.size()) - 1;
  const bool is_whole = digits + 1 == word.size();
  const bool has_unit = is_whole ? i + 1 < words.size() && is_unit(words[i + 1].text) : is_unit(word.substr(1));
  if (!has_unit && (!is_whole || digits < kLeastDigits)) return std::nullopt;
  if (!is_any(words[i - 1].text, "size|sized|of|allocate|allocating|allocation|requested|bytes")) return std::nullopt;
  for (std::size_t j = i; j > 0 && i - j < kNear && !words[j - 1].ends_clause; --j)
    if (words[j - 1].is_allocation && !words[j - 1].text.ends_with("allocated"))
      return Range{words[j - 1].begin, words[i].end};
  return std::nullopt;
}

/// "Invalid buffer size: 20.02 GB"
std::optional<Found> invalid_at(const std::vector<Word>& words, std::size_t i) {
  if (words[i].text != "invalid" || i + 3 >= words.size() || words[i + 2].text != "size") return std::nullopt;
  if (!is_any(words[i + 1].text, kPieces) && !words[i + 1].is_allocation) return std::nullopt;
  for (std::size_t j = i + 3; j < std::min(i + 6, words.size()); ++j)
    if (is_amount(words, j)) return Found{{words[i].begin, words[j].end}, Memory::excess};
  return std::nullopt;
}

/// "Available KV cache memory: -0.59 GiB": less than nothing is left.
std::optional<Found> negative_at(const std::vector<Word>& words, std::size_t i) {
  const std::string_view word = words[i].text;
  if (word.size() < 2 || word[0] != '-' || !is_digit(word[1])) return std::nullopt;
  const bool has_unit = is_unit(word.substr(1)) || (i + 1 < words.size() && is_unit(words[i + 1].text)) ||
                        (i + 2 < words.size() && is_digit(words[i + 1].text.front()) && is_unit(words[i + 2].text));
  bool is_rest = false, is_stored = false;
  std::size_t from = i;
  while (from > 0 && i - from < 10 && !words[from - 1].ends_clause) {
    --from;
    is_stored = is_stored || is_memory(words[from].text) || is_any(words[from].text, kPools);
    is_rest = is_rest || begins_any(words[from].text, "avail|free|remain|rest|left");
    if (is_stored && is_rest) break;
  }
  if (!has_unit || !is_rest || !is_stored) return std::nullopt;
  return Found{{words[from].begin, words[i].end}, Memory::pool};
}

/// "Allocate: no space left", "Call to posix_fallocate failed : No space left on device": what is allocated is memory,
/// where it is no file of a disk.
std::optional<Found> space_at(const std::vector<Word>& words, std::size_t i, std::string_view line) {
  constexpr std::string_view kShared = "shm|fallocate|shared memory|</torch_";
  if (words[i].text != "no" || i + 2 >= words.size() || words[i + 1].text != "space" || words[i + 2].text != "left")
    return std::nullopt;
  const Range range{words[i].begin, words[i + 2].end};
  if (has_any(line, kShared)) return Found{range, Memory::shared};
  const bool allocates = std::any_of(words.begin(), words.end(), [](const Word& word) { return word.is_allocation; });
  return allocates ? std::optional(Found{range, Memory::host}) : std::nullopt;
}

/// "Exception during processing !!! Allocation on device": what an exception names is what failed.
std::optional<Range> exception_at(const std::vector<Word>& words, std::size_t i) {
  if (!is_any(words[i].text, "allocation|alloc") || i + 2 >= words.size() || words[i + 1].text != "on" ||
      !is_of_device(words[i + 2].text) || (i > 0 && !words[i - 1].ends_clause))
    return std::nullopt;
  for (std::size_t j = i; j > 0 && i - j < 6; --j)
    if (is_any(words[j - 1].text, "exception|error")) return Range{words[i].begin, words[i + 2].end};
  return std::nullopt;
}

/// What ends processes for memory: "earlyoom", "systemd-oomd", "OOMController", "OOM killer".
bool is_killer(const Word& word) {
  const std::size_t at = word.text.find("oom");
  return at != std::string_view::npos && !has_any(word.text, "oom_score|room|zoom|bloom|boom|loom") &&
         (at == 0 || word.text[at - 1] == '-' || has_any(word.text, "oomcontrol|oomd|earlyoom"));
}
bool has_killer(const std::vector<Word>& words) {
  return std::any_of(words.begin(), words.end(), is_killer);
}

/// The end by signal 9, as shells, launchers and schedulers report it: "exit code 137", "(exitcode: -9)", "signal
/// SIGKILL", "train.sh: line 3: 4711 Killed", and "Killed" alone.
std::optional<Found> killed_at(const std::vector<Word>& words, std::size_t i, std::string_view line) {
  const std::string_view word = words[i].text;
  const auto is_behind = [&words, i](std::string_view list, std::size_t most) {
    for (std::size_t j = i; j > 0 && i - j < most; --j)
      if (is_any(words[j - 1].text, list)) return true;
    return false;
  };
  const std::string_view last = i > 0 ? words[i - 1].text : "";
  // "Sending SIGKILL to cgroup {"controller": "runtime.OOMController""
  const bool is_action = word.starts_with("kill_") && has_any(word, "mem|swap");  // "kill_by_memory_size"
  if ((is_action || is_any(word, "sigkill|sigterm|killing|killed|victim|reaped")) && has_killer(words)) {
    // In a sentence with a condition, the act alone: the words before it show what kind of sentence it is.
    if (is_sentence(line) && has_any(line.substr(0, words[i].begin), " if | when "))
      return Found{{words[i].begin, words[i].end}};
    const std::size_t colon = line.substr(0, words[i].begin).rfind(": ");
    // Not the mark of a list.
    const std::size_t first = words.front().text == "-" && words.size() > 1 ? 1 : 0;
    return Found{{colon == std::string_view::npos ? words[first].begin : colon + 2, words[i].end}};
  }
  // "Killed process 18177 (palo_be), UID 0, total-vm:70347780kB", "killed due to memory used", "terminated after
  // reaching LSF memory usage limit"
  if (word == "killed" && has_any(line, "anon-rss")) return Found{{words[i].begin, words[i].end}, Memory::host};
  bool has_reason = false;
  if (is_any(word, "killed|terminated|evicted") && !words[i].ends_clause)
    for (std::size_t j = i + 1; j < std::min(i + 9, words.size()); ++j) {
      has_reason = has_reason || begins_any(words[j].text, "due|because|reach|exceed");
      if (has_reason && is_memory(words[j].text)) return Found{{words[i].begin, words[j].end}, Memory::host};
      if (words[j].ends_clause) break;
    }
  bool is_end = (word == "137" || word == "-9") && is_behind("code|status|exitcode", 2);
  is_end = is_end || (word == "137" && last == "code");
  is_end = is_end || (word == "sigkill" && is_behind("signal|signals|negsignal|9", 2) &&
                      has_any(line, "terminat|died|receiv|return code|exit|killed by|failed"));
  is_end = is_end || (word == "killed" && last == "signal");  // "is killed by signal: Killed"
  if (word == "bus" && last == "signal") return Found{{words[i - 1].begin, words[i].end}, Memory::shared};
  // A shell's line and process, in any language: "train.sh: line 3: 4711 Killed"
  const auto is_number = [](std::string_view each) {
    return !each.empty() && each.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const bool has_pid = is_number(last) && i > 1 && is_number(words[i - 2].text);
  is_end =
      is_end || (word == "killed" && (words.size() == 1 || has_pid || (i + 1 == words.size() && has_any(line, "***"))));
  if (!is_end) return std::nullopt;
  // "exited with code 137", "process 4711 exited with code 137"
  std::size_t from = i;
  while (from > 0 && i - from < 3 &&
         is_any(words[from - 1].text, "exit|exited|with|code|status|return|exitcode|signal|signals|9"))
    --from;
  return Found{{words[from].begin, words[i].end}, Memory::killed};
}

/// Chinese and Japanese do not separate words by blanks.
constexpr std::string_view kFixed =
    "too many resources requested|dst tensor is not initialized|unable to write to file "
    "</torch_|your gpu memory is full|bad allocation|paging file is too small|killed as a result "
    "of limit of|too many "
    "concurrent sessions|due to memory pressure|memory is full|显存不足|内存不足|显存不够|内存不够|記憶體不足|"
    "メモリ不足|无法分配|無法分配|页面文件太小|메모리 부족|메모리가 부족|显存耗尽";

constexpr std::string_view kNoThread =
    "thread creation failed|can't start new thread|unable to create native thread|unable to create new native thread|"
    "pthread_create failed";

std::optional<Range> text_in(std::string_view line, std::string_view texts) {
  std::optional<Range> out;
  any_part(texts, [line, &out](std::string_view each) {
    if (const std::size_t begin = line.find(each); begin != std::string_view::npos)
      out = Range{begin, begin + each.size()};
    return out.has_value();
  });
  return out;
}

/// Without words that are irrelevant to a failure: "does not have enough free memory" is "not enough memory".
void drop_fillers(std::vector<Word>& words) {
  constexpr std::string_view kFillers =
      "a|an|the|has|have|had|been|is|was|were|are|be|does|do|did|when|while|during|any|your|its|this|that|free";
  std::size_t kept = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_any(words[i].text, kFillers))
      words[kept++] = words[i];
    else if (kept > 0 && words[i].ends_clause)
      words[kept - 1].ends_clause = true;
  }
  words.resize(kept);
}

/// The words of `line` that matter, with what each can be.
std::vector<Word> marked_words(std::string_view line) {
  auto words = words_of(line);
  drop_fillers(words);
  for (Word& word : words) {
    word.is_code = is_code(word.text);
    if (is_digit(word.text.front())) continue;
    word.is_allocation = !word.is_code && is_allocation(word.text);
    word.is_storage = is_storage(word.text);
  }
  return words;
}

std::optional<Found> failure_in(std::string_view line) {
  const auto words = marked_words(line);
  if (const auto thread = text_in(line, kNoThread)) return Found{*thread, Memory::thread};
  std::optional<Found> code;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Words in quotation marks after a code explain it: "hit cudaErrorMemoryAllocation due to "out of memory"".
    const bool is_named = code && !code->memory;
    for (const auto rule :
         {lack_at, exhausted_at, failure_at, impossible_at, attempt_at, negative_request_at, exception_at})
      if (auto found = rule(words, i)) {
        // "killed by signal: Bus error. It is possible that workers are out of shared memory."
        if (code && code->memory == Memory::shared) return code;
        if (is_named && found->begin > 1 && line[found->begin - 2] == ' ' && is_quote_mark(line[found->begin - 1]))
          return code;
        // "vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY" is one.
        for (std::size_t j = i + 1; j < std::min(i + 3, words.size()); ++j)
          if (words[j].is_code) found->end = std::max(found->end, words[j].end);
        return Found{*found};
      }
    if (const auto found = excess_at(words, i, line)) return found;
    if (const auto found = space_at(words, i, line)) return found;
    for (const auto rule : {invalid_at, negative_at})
      if (const auto found = rule(words, i)) return found;
    // The name of a code says more than an end by signal 9: "exit code 137 (OOMKilled)".
    if (code && (code->memory != Memory::killed || !words[i].is_code)) continue;
    if (const auto killed = killed_at(words, i, line)) code = *killed;
    if (words[i].text == "oom-killer" && i > 0 && words[i - 1].text == "invoked")
      code = Found{{words[i].begin, words[i].end}};
    if (const auto found = code_at(words, i, line)) code = Found{{found->begin, found->end}};
  }
  if (code) return code;
  if (const auto over = excess_of(line)) return Found{*over, Memory::excess};
  const auto fixed = text_in(line, kFixed);
  return fixed ? std::optional(Found{*fixed}) : std::nullopt;
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

/// Words that name host memory, regardless of what else the line and its neighbours name.
constexpr std::string_view kOnHost =
    "[host]|bytes on host|page allocation failure|= -1 enomem|mach_vm_map|ulimit -v|bad allocation|cpuallocator|system "
    "out of memory|system is out of memory|add more ram|add ram|more system memory|-xms|-xmx|paging "
    "file is too small|ページング|页面文件太小|_nchwc|killed signal terminated program";
/// The maximum size of one piece, which is not a figure of free memory.
constexpr std::string_view kMostInOnePiece =
    "max alloc|max_alloc|maximum alloc|max mem alloc|max_mem_alloc|max size of memory object|max buffer "
    "size|maximum "
    "buffer size|maxbuffer|max single alloc|maximum single|maxstoragebuffer|maxmemoryallocation|of that heap";

/// Memory and registers of a processor on the chip, which a kernel or shader declares.
constexpr std::string_view kOnChip =
    "shared data|threadgroup memory|groupshared|workgroup memory|work-group| local memory|launch_out_of_resources| "
    "vmem| "
    "smem|registers|per-block shared|requested for launch|shared memory per block| l1 | l1_|sram|scratchpad| lds|group "
    "shared|circular buffer";
constexpr std::string_view kOfKernels = "ptxas|triton|kernel|shader|compute|out of resource|multiprocessor|per block";

/// Whether the amounts of `line` are such as only the memory on a chip has: none is 1 MiB or more.
bool has_amounts_of_chip(std::string_view line) {
  constexpr double kLeast = 1024, kMost = 1024 * 1024;
  double most = 0;
  for (const Word& word : words_of(line)) {
    std::size_t at = 0;
    const auto number = read_number(word.text, at);
    if (number && (at == word.text.size() || is_unit(word.text))) most = std::max(most, *number);
  }
  return most >= kLeast && most < kMost;
}

bool is_on_chip(std::string_view line, std::string_view lines) {
  if (has_any(line, kOnChip)) return true;
  if (has_any(line, "out_of_resources") && has_any(lines, "work_group_static|local memory|local_accessor|__shared__"))
    return true;
  return has_any(line, "shared memory") && !has_any(line, "/dev/shm|segment|shm_|(shm)|signal: bus error") &&
         (has_any(line, kOfKernels) || has_amounts_of_chip(line));
}

/// Whether `line` names shared memory that is not a GPU's: "GPU (Shared Memory)", "GPU and shared host memory".
bool is_shared_segment(std::string_view line) {
  const auto words = words_of(line);
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i].text == "shared" && words[i + 1].text == "memory")
      return !has_word(words, i - std::min<std::size_t>(i, 2), i, "gpu|gpus|vram|gpu's");
  return false;
}

/// Lines of languages, and of tables of states, that name no memory and always mean the host's.
bool is_of_language(std::string_view line) {
  line = trimmed(line, " \r");
  return line == "memoryerror" || (line.starts_with("memory allocation of ") && line.ends_with(" failed")) ||
         line.starts_with("out_of_memory|") || line.find("|out_of_memory") != std::string_view::npos ||
         line.find("out_of_me+") != std::string_view::npos;
}

/// Whether `line` names a program whose memory is a device's: the error of CuPy is a MemoryError, too.
bool names_device_program(std::string_view line) {
  const auto all = marks();
  return std::any_of(all.begin(), all.end(), [line](const ProgramMark& each) {
    return each.wording.role == Role::device && has_any(line, each.marks);
  });
}

Memory memory_of(std::string_view line, std::string_view next, std::string_view lines) {
  line = line.substr(0, line.find(" falling back"));
  constexpr std::string_view kPinned =
      "pinned|memlock|page-locked|pagelocked|host_bfc|mallochost|hostalloc|hostregister|for dma|dma_map|map_dma|pin "
      "pages|to pin |pin_user_pages";
  constexpr std::string_view kSessions = "encodesession|encode session|encoder session";
  if (has_any(line, "address space")) return Memory::address;
  if (has_any(line, "discarding|rejecting|excluding|ignoring") && has_any(line, "insufficient|not enough|too little"))
    return Memory::requirement;
  if (has_any(line, kOnHost) || (has_any(line, "oom") && has_any(line, "kill|victim|reaped|oom event")))
    return Memory::host;
  if (has_any(line,
              "killed out of|maxrss|cgroup|memory pressure|physical memory|memory budget|being killed|job memory|"
              "oomkilled|its memory request|0:125|state: out_of|jobstate=out_of|this system|for system|"
              "failcnt|anon-rss|memory usage limit|due to memory used") ||
      is_of_language(line))
    return Memory::host;
  if (has_any(line, kSessions)) return Memory::session;
  if (is_on_chip(line, lines)) return Memory::scratch;
  if (has_any(line, kMostInOnePiece)) return Memory::piece;
  if (has_any(line, kPinned)) return Memory::pinned;
  if (has_any(line, "/dev/shm|shmem|fallocate|signal: bus error|</torch_") || is_shared_segment(line))
    return Memory::shared;
  if (has_any(line,
              "nodes are available|pre-allocated|preallocated memory|pool size exceeded|out of pool|out_of_pool|pool "
              "exhausted|maximum pool"))
    return Memory::pool;
  const bool is_device = is_of_device(line);
  if (!is_device &&
      (has_any(line,
               "paging file|page file|页面文件|virtual memory|system memory|on host|host memory|"
               "cpu buffer|cpu_buffer|out_of_host|defaultcpu|cpu allocator|cpuallocator|memory on the node|webassembly|"
               "the node|goroutine|runtime: out of memory|(ram)|container|pod |job |system.outofmemory|java.lang.outof|"
               "java heap|javascript heap|direct buffer memory|system oom|earlyoom") ||
       (has_any(line, "bad_alloc") && !is_of_device(next))))
    return Memory::host;
  const auto words = words_of(line);
  if (!is_device && has_word(words, 0, words.size(),
                             "ram|malloc|mkl_malloc|calloc|realloc|posix_memalign|aligned_alloc|mmap|vector|vectors"))
    return Memory::host;
  if (is_device && (has_any(line, "device memory|gpu memory") || !has_any(next, kPinned))) return Memory::device;
  if (has_any(lines, kPinned)) return Memory::pinned;
  if (has_any(lines, kSessions)) return Memory::session;
  if (has_any(next, kOnHost) || has_any(lines, "mach_vm_map")) return Memory::host;
  if (is_of_device(lines)) return Memory::device;
  // The system's own message (ENOMEM).
  const bool is_host = has_any(line, "cannot allocate memory") ||
                       (has_any(line, "memoryerror") && !names_device_program(line)) ||
                       has_any(lines, "physical memory|main memory");
  return is_host ? Memory::host : Memory::any;
}

/// In a code span (`...`) the whole of it counts: "`call to cuMemAlloc returned error 2: Out of memory`".
void widen_to_span(std::string_view line, Range& found) {
  const std::string_view before = line.substr(0, found.begin);
  if (std::count(before.begin(), before.end(), '`') % 2 == 0) return;
  const std::size_t close = line.find('`', found.end);
  if (close == std::string_view::npos) return;
  found = {before.rfind('`') + 1, close};
}

/// Words of a program that overlap the statement belong to it: "terminate called after throwing an instance of
/// 'std::bad_alloc'". False: there are none.
bool widen_to_marks(std::string_view line, Range& found) {
  Range wide = found;
  for (const ProgramMark& each : marks())
    any_part(each.marks, [&](std::string_view mark) {
      for (std::size_t at = line.find(mark); at < found.end; at = line.find(mark, at + 1))
        if (at + mark.size() > found.begin) wide = {std::min(wide.begin, at), std::max(wide.end, at + mark.size())};
      return false;
    });
  const bool is_wider = wide.begin < found.begin || wide.end > found.end;
  found = wide;
  return is_wider;
}

/// Whether what reports the end of a container gives a reason other than memory for it.
bool names_other_reason(std::string_view lines) {
  const std::size_t reason = lines.find("reason: ");
  return has_any(lines, "\"oomkilled\": false|oomkilled=false|oomkilled:false") ||
         (reason != std::string_view::npos && has_any(lines.substr(reason), "exit code: 137") &&
          !has_any(lines, "oomkilled"));
}

/// Whether somebody other than the kernel may have sent signal 9: a time limit, a scheduler, a person, a supervisor.
bool names_sender(std::string_view lines) {
  return has_any(lines,
                 "time limit|timelimit|timeout|timed out|preempt|cancel|kill -9|kill -kill|liveness|watchdog|reason "
                 "[error]|reason: error|shutdown|shutting down|keyboardinterrupt|evict|stopped by");
}

/// The program that `words` name, where `memory` ran out.
const Wording& of_program(Memory memory, std::string_view words) {
  const Wording& general = kWordings[static_cast<std::size_t>(memory)];
  const auto programs = marks();
  const auto named = std::find_if(programs.begin(), programs.end(), [&](const ProgramMark& each) {
    return each.wording.role == general.role && has_any(words, each.marks);
  });
  if (named == programs.end()) return general;
  const bool is_whole = memory == Memory::device || memory == Memory::any || memory == Memory::host;
  if (is_whole || (memory == Memory::excess && named->wording.otherwise != Cause::unknown)) return named->wording;
  // A part of the memory keeps its name and its cause: what ran out decides, whoever needed it.
  static const std::vector<Wording> parts = [programs] {
    std::vector<Wording> out;
    for (const Wording& part : kWordings)
      for (const ProgramMark& each : programs)
        // Of a program's options, those of its pool are meant.
        out.push_back({part.name, each.wording.program, "any", part.role, part.otherwise,
                       part.setting.empty() || (part.name == "statement_pool" && !each.wording.setting.empty())
                           ? each.wording.setting
                           : part.setting,
                       ""});
    return out;
  }();
  return parts[static_cast<std::size_t>(memory) * programs.size() + static_cast<std::size_t>(named - programs.begin())];
}

std::string lower_line(std::string_view text, Range line) {
  return lower(text.substr(line.begin, line.end - line.begin));
}
/// The sentence at `at` of a line that a person wrote; of any other line all.
std::string_view sentence_of(std::string_view words, std::size_t at) {
  if (!is_sentence(words)) return words;
  const std::size_t last = words.substr(0, at).rfind(". ");
  const std::size_t begin = last == std::string_view::npos ? 0 : last + 2;
  return words.substr(begin, words.find(". ", at) - begin);
}
Range line_above(std::string_view text, Range line) {
  return line.begin == 0 ? Range{} : line_of(text, line.begin - 1, line.begin - 1);
}

}  // namespace

Range line_of(std::string_view text, std::size_t begin, std::size_t end) {
  Range line{begin, end};
  while (line.begin > 0 && text[line.begin - 1] != '\n' && begin - line.begin < kStatementBytes / 2) --line.begin;
  while (line.end < text.size() && text[line.end] != '\n' && line.end - end < kStatementBytes / 2) ++line.end;
  return line;
}

std::span<const std::string_view> statement_cues() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> out;
    any_part(kCues, [&out](std::string_view cue) { return out.emplace_back(cue).empty(); });
    return out;
  }();
  return all;
}

bool is_of_device(std::string_view words) {
  return has_any(words, kDevices);
}

bool has_statement(std::string_view line) {
  return failure_in(line).has_value();
}

bool has_other_reason(std::string_view text, const Statement& statement, bool is_known) {
  constexpr std::size_t kReasonBytes = 200;
  const Range line = line_of(text, statement.begin, statement.end);
  const std::string own = lower_line(text, line);
  const std::string below = lower(text.substr(line.end, kReasonBytes));
  Range before = line_above(text, line);
  if (before.begin + 2 > before.end) before = line_above(text, before);  // a blank line
  const std::string above = lower_line(text, before);
  if (!is_known && (has_any(own, kOtherReasons) || has_any(below, kOtherReasons) || has_any(above, kOtherReasons)))
    return true;
  // Whoever only guesses that memory is short, beside an error that says something else.
  if (!is_known && (own.find("\xe3\x80\x82") != std::string::npos || is_sentence(own))) {
    const std::string lines = lower(around(text, line));
    const bool is_other = (has_any(lines, "error: ") && has_any(lines, kOtherErrors)) || !other_code_in(lines).empty();
    if (is_other && !has_any(lines, kLacks)) return true;
  }
  return !has_any(own, kLacks) && !has_any(own, "pinned") &&
         (has_any(own, kOtherErrors) || has_any(above, kOtherErrors) || !other_code_in(own).empty());
}

std::optional<Statement> read_statement(std::string_view text, std::size_t at) {
  const Range line = line_of(text, at, at);
  const std::string words = lower_line(text, line);
  auto found = failure_in(words);
  if (!found) return std::nullopt;
  // What ended a container says why: "OOMKilled": false, "Reason: Error".
  if (found->memory == Memory::killed && names_other_reason(lower(around(text, line)))) return std::nullopt;
  if (!widen_to_marks(words, found->range)) widen_to_span(words, found->range);
  return Statement{line.begin + found->range.begin, line.begin + found->range.end};
}

const Wording& wording_of(std::string_view text, const Statement& statement) {
  const Range line = line_of(text, statement.begin, statement.end);
  const Range next = line.end + 1 < text.size() ? line_of(text, line.end + 1, line.end + 1) : Range{};
  const std::string words = lower_line(text, line);
  const auto found = failure_in(words);
  if ((!found || found->memory != Memory::killed) && has_other_reason(text, statement, false)) return other_reason();
  if (found && found->memory == Memory::killed && names_sender(lower(around(text, line))))
    return kWordings[static_cast<std::size_t>(Memory::ended)];
  if (found && (found->memory == Memory::killed || found->memory == Memory::thread))
    return kWordings[static_cast<std::size_t>(*found->memory)];
  // A line of several sentences may speak of another memory, too: that of the failure's own decides, if it names one.
  const std::string next_words = lower_line(text, next);
  const std::string lines = lower(around(text, line));
  Memory memory = memory_of(sentence_of(words, statement.begin - line.begin), next_words, lines);
  if (memory == Memory::device || memory == Memory::any) memory = memory_of(words, next_words, lines);
  const bool is_part = found && (found->memory == Memory::piece || found->memory == Memory::pool ||
                                 found->memory == Memory::host || found->memory == Memory::shared);
  const auto code = code_in(words);
  if (code && code->shortage == Shortage::piece)
    memory = Memory::piece;
  else if (found && found->memory && (memory == Memory::device || (memory == Memory::any && is_part)))
    memory = *found->memory;
  return of_program(memory, words);
}

bool asks_for_less_than_nothing(std::string_view line) {
  const auto words = marked_words(line);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (negative_request_at(words, i)) return true;
  return false;
}

bool is_on_host(std::string_view text, const Statement& statement) {
  return has_any(lower_line(text, line_of(text, statement.begin, statement.end)), kOnHost);
}

const Wording& other_reason() {
  return kWordings[static_cast<std::size_t>(Memory::other_reason)];
}

const Wording& any_statement() {
  return kWordings[static_cast<std::size_t>(Memory::any)];
}

bool is_template(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string line = lower_line(text, line_of(text, begin, end));
  if (has_any(line, "%zu|%lu|.* bytes|%llu|%d |%u |%s |{} bytes|{0}|<size>|<n>")) return true;
  const auto words = words_of(line);
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i].text.size() == 1 && !is_digit(words[i].text[0]) && words[i + 1].text == "bytes") return true;
  return false;
}

std::string_view went_on_words(std::string_view text, std::size_t begin, std::size_t end, bool is_statement) {
  constexpr std::string_view kWords =
      "falling back|fall back to|fallback to|retrying|will retry|skipping|trying again|attempting to free|"
      "is not a failure|continuing with|using unpinned|using a smaller|skipped|继续运行|continues without";
  constexpr std::string_view kFailures =
      "error|fail|abort|exception|traceback|terminat|killed|crash|fatal|exit|panic|unable|cannot|could not|please|try "
      "|?|out of";
  constexpr std::string_view kSuccesses = " ok ]|total time|finished|completed|resumed| again |presented|drawing again";
  constexpr std::size_t kLines = 6;
  const Range line = line_of(text, begin, end);
  const auto raw = [text](Range each) { return text.substr(each.begin, each.end - each.begin); };
  const std::string own = lower_line(text, line);
  // Memory that cannot be pinned is only slower, if the program just warns of it.
  const bool is_pin = own.find("pinned") != std::string::npos;
  if (is_pin && own.starts_with("warning")) return raw(line);
  bool may_succeed = is_statement || is_pin;
  Range each = line;
  for (std::size_t count = 0; count <= kLines; ++count) {
    const std::string words = lower_line(text, each);
    if (count <= 2 && has_any(words, kWords)) return raw(each);
    if (count > 0 && may_succeed) {
      if (has_any(words, kSuccesses) && !has_any(words, "error|fatal|abort|?")) return raw(each);
      may_succeed = !has_any(words, kFailures) || has_statement(words);
    }
    if (each.end + 1 >= text.size() || text[each.end] != '\n' || each.end - end > kStatementBytes) break;
    each = line_of(text, each.end + 1, each.end + 1);
  }
  return {};
}

}  // namespace vramtrack::explain
