#include "probe/unwind.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "probe/last_walk.hpp"
#include "probe/modules.hpp"
#include "probe/stacks_table.hpp"

namespace vramtrack::probe {
namespace {

/// The part of the calling thread's stack that may be read without checks.
struct OwnStack {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_known = false;
  bool is_whole = false;  ///< memory below `begin` does not belong to it
};
__attribute__((tls_model("initial-exec"))) thread_local OwnStack own_stack;
constexpr std::uint64_t kPageBytes = 4096;

/// Whether `address` is inside. The known part of a thread's stack grows with use, page by page down to its guard page.
bool reaches(OwnStack& own, std::uint64_t address) {
  if (address >= own.end) return false;
  char byte = 0;
  while (address < own.begin && !own.is_whole)
    if (const std::uint64_t page = (own.begin - 1) / kPageBytes * kPageBytes; read_memory(page, &byte, 1))
      own.begin = page;
    else
      own.is_whole = true;
  return address >= own.begin;
}

/// The C library puts a thread's descriptor at the upper end of the thread's stack. The main thread's stack is
/// "[stack]" or, in a child that another thread forked, that thread's; the maps show which. They are read once per
/// process, because each thread adds two lines to them.
void find_own_stack() {
  own_stack = {};
  own_stack.is_known = true;
  const bool is_main = thread_id() == static_cast<std::uint64_t>(getpid());
  const auto descriptor = static_cast<std::uint64_t>(pthread_self());
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (!is_main) {
    own_stack.begin = own_stack.end = descriptor;
    return;
  }
  own_stack.is_whole = true;
  Maps maps;
  Mapping mapping;
  std::uint64_t below = 0;
  while (maps.next(mapping)) {
    if (mapping.path == "[stack]") {
      // It grows downwards as it is used, at most to the next mapping.
      own_stack.begin = here >= mapping.begin && here < mapping.end ? below : mapping.begin;
      own_stack.end = mapping.end;
      if (here >= mapping.begin && here < mapping.end) return;
    }
    if (mapping.is_readable && descriptor >= mapping.begin && descriptor < mapping.end && here >= mapping.begin &&
        here < descriptor) {
      own_stack.begin = mapping.begin;
      own_stack.end = descriptor;
      return;
    }
    below = mapping.end;
  }
}

/// Reads words from stacks.
class StackReader {
 public:
  explicit StackReader(const OwnStack& own) : begin_(own.begin), end_(own.end) {}
  // Not instrumented: AddressSanitizer guards the words between variables, which are read here.
  __attribute__((no_sanitize_address, no_sanitize_thread)) bool read(std::uint64_t address, std::uint64_t& into) {
    if (address % 8 != 0) return false;
    if (address >= begin_ && address + 8 <= end_) {
      into = *reinterpret_cast<const volatile std::uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
      return true;
    }
    // This is another stack, such as a signal's or a fiber's. Read it in blocks, which may be unmapped.
    if (block_ == 0 || address - block_ >= sizeof words_) {
      block_ = address / sizeof words_ * sizeof words_;
      if (!read_memory(block_, words_, sizeof words_)) {
        block_ = 0;
        return false;
      }
    }
    into = words_[(address - block_) / 8];
    return true;
  }

 private:
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t block_ = 0;
  std::uint64_t words_[64];
};

#if defined(__x86_64__)

// A rule and its module in 64 bits: cfa 4, fp 2, cfa_offset / 8 signed 24, fp_offset / 8 signed 20, module 14.
static_assert(Modules::kMost <= 1U << 14U);
std::uint64_t packed(const Rule& rule, std::uint32_t module) {
  return static_cast<std::uint64_t>(rule.cfa) | static_cast<std::uint64_t>(rule.fp) << 4U |
         (static_cast<std::uint64_t>(rule.cfa_offset / 8) & 0xff'ffffU) << 6U |
         (static_cast<std::uint64_t>(rule.fp_offset / 8) & 0xf'ffffU) << 30U | std::uint64_t{module} << 50U;
}
std::int64_t signed_bits(std::uint64_t value, unsigned from, unsigned bits) {
  return static_cast<std::int64_t>(value << (64 - from - bits)) >> (64 - bits);
}

/// Rules by address: 65536 of them in 1 MiB; later ones replace earlier ones. A reader that collides with a writer
/// misses, because the key is stored combined with the value.
class Rules {
 public:
  static constexpr std::size_t kCells = 1U << 16U;
  bool find(std::uint64_t key, std::uint64_t& value) const {
    const Cell* cells = cells_.load(std::memory_order_acquire);
    if (cells == nullptr) return false;
    const std::size_t at = slot(key);
    for (const std::size_t i : {at, at ^ 1U}) {
      value = cells[i].value.load(std::memory_order_relaxed);
      if ((cells[i].check.load(std::memory_order_relaxed) ^ value) == key) return true;
    }
    return false;
  }
  void put(std::uint64_t key, std::uint64_t value) {
    Cell* cells = cells_.load(std::memory_order_acquire);
    if (cells == nullptr) {
      auto* made = static_cast<Cell*>(reserve(kCells * sizeof(Cell)));
      if (made == nullptr) return;
      if (cells_.compare_exchange_strong(cells, made))
        cells = made;
      else
        give_back(made, kCells * sizeof(Cell));
    }
    std::size_t at = slot(key);
    if (cells[at].check.load(std::memory_order_relaxed) != 0 &&
        cells[at ^ 1U].check.load(std::memory_order_relaxed) == 0)
      at ^= 1U;
    cells[at].value.store(value, std::memory_order_relaxed);
    cells[at].check.store(key ^ value, std::memory_order_relaxed);
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> value;
    std::atomic<std::uint64_t> check;
  };
  static std::size_t slot(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15U) >> 48U; }
  std::atomic<Cell*> cells_{nullptr};
};
static_assert(Rules::kCells == 1U << 16U, "slot() yields 16 bits");
Rules rules;

/// mov $15, %rax; syscall: the return address of a signal handler.
bool is_signal_return(std::uint64_t pc) {
  static constexpr unsigned char kCode[9] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  unsigned char code[sizeof kCode];
  return read_memory(pc, code, sizeof code) && std::memcmp(code, kCode, sizeof kCode) == 0;
}

/// Finds and caches a rule; 0: `pc` is in no module, and the next call tries again.
__attribute__((noinline)) std::uint64_t learn(std::uint64_t key, std::uint64_t pc, bool is_exact) {
  // Verify that it is still the same module before trusting its table; if not, read the maps again.
  std::uint32_t module = modules().find(is_exact ? pc : pc - 1);
  if (module != 0 && !modules().is_same(module)) module = modules().find(is_exact ? pc : pc - 1);
  if (module == 0) return 0;
  Rule rule{Cfa::frame_pointer, SavedFp::kept, 0, 0};
  if (const std::uint64_t table = modules()[module].table) rule = find_rule(read_memory, table, is_exact ? pc : pc - 1);
  if (rule.cfa == Cfa::frame_pointer && is_signal_return(pc)) rule.cfa = Cfa::signal;
  const std::uint64_t value = packed(rule, module);
  rules.put(key, value);
  return value;
}

// The kernel's frame of a signal has struct ucontext (asm/ucontext.h), with registers from 40 on (asm/sigcontext.h).
constexpr std::uint64_t kSignalFp = 40 + 10 * 8;
constexpr std::uint64_t kSignalSp = 40 + 15 * 8;
constexpr std::uint64_t kSignalPc = 40 + 16 * 8;

/// For all threads, 200 KB in total; two threads that collide in a cell have no last walk that time. (Not a
/// thread-local variable: a library that is loaded later gets little space for those.)
std::atomic<LastWalk*> last_walks{nullptr};
constexpr std::size_t kWalks = 64;

/// The last walk of the calling thread, locked; null: none at the moment.
LastWalk* last_walk() {
  LastWalk* const walks = taken_once(last_walks, kWalks);
  if (walks == nullptr) return nullptr;
  const auto thread = static_cast<std::uint64_t>(pthread_self());
  LastWalk* const own = &walks[(thread * 0x9e3779b97f4a7c15U) >> 58U];
  return own->lock() ? own : nullptr;
}
static_assert(kWalks == 1U << 6U, "last_walk() picks by 6 bits");

/// A walk in progress.
class Walk {
 public:
  Walk(LastWalk* last, StackReader& stack, NativeFrame* into, std::size_t most)
      : last_(last), stack_(stack), into_(into), most_(most) {}
  std::size_t run(Registers at);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  void follow(Registers& at);
  /// Steps to the caller; false if there is none or it is unknown.
  bool step(Registers& at, std::uint64_t rule, Step& step);

  LastWalk* last_;
  StackReader& stack_;
  NativeFrame* into_;
  std::size_t most_;
  std::size_t count_ = 0;
  bool is_exact_ = false;
  std::size_t searched_ = 0;  ///< the steps of the last walk before this one are further inward
  std::size_t tail_ = kNone;  ///< from this step on, the last walk is valid
  std::size_t fresh_count_ = 0;
  bool is_fresh_whole_ = true;
  Step fresh_[LastWalk::kMost];
};

void Walk::follow(Registers& at) {
  const std::size_t from = searched_;
  const std::size_t to = last_->follow(from, into_, count_, most_, stack_);
  if (to + 1 == last_->count()) {
    tail_ = from;
  } else {
    const std::size_t kept = std::min(to - from, LastWalk::kMost - fresh_count_);
    std::memcpy(fresh_ + fresh_count_, &(*last_)[from], kept * sizeof(Step));
    fresh_count_ += kept;
    if (kept < to - from) is_fresh_whole_ = false;
    searched_ = to + 1;
  }
  const Step& step = (*last_)[to];
  at = {step.pc, step.sp, step.fp};
}

bool Walk::step(Registers& at, std::uint64_t rule, Step& step) {
  const std::int64_t offset = signed_bits(rule, 6, 24) * 8;
  std::uint64_t cfa = 0;
  bool is_computed = true;  // from registers only
  switch (static_cast<Cfa>(rule & 0xfU)) {
    case Cfa::at_sp:
      cfa = at.sp + static_cast<std::uint64_t>(offset);
      break;
    case Cfa::at_fp:
      cfa = at.fp + static_cast<std::uint64_t>(offset);
      break;
    case Cfa::in_sp:
      is_computed = false;
      if (!stack_.read(at.sp + static_cast<std::uint64_t>(offset), cfa)) return false;
      break;
    case Cfa::in_fp:
      is_computed = false;
      if (!stack_.read(at.fp + static_cast<std::uint64_t>(offset), cfa)) return false;
      break;
    case Cfa::frame_pointer: {
      std::uint64_t saved = 0;
      if (at.fp < at.sp || !stack_.read(at.fp + 8, at.pc) || !stack_.read(at.fp, saved)) return false;
      step.pc_from = at.fp + 8;
      step.fp_from = at.fp;
      at.sp = at.fp + 16;
      at.fp = saved;
      return true;
    }
    case Cfa::signal: {
      const std::uint64_t context = at.sp;
      if (!stack_.read(context + kSignalPc, at.pc) || !stack_.read(context + kSignalFp, at.fp) ||
          !stack_.read(context + kSignalSp, at.sp))
        return false;
      is_exact_ = true;
      return true;
    }
    case Cfa::end:
    default:
      return false;
  }
  if (cfa <= at.sp || !stack_.read(cfa - 8, at.pc)) return false;
  const auto saved = static_cast<SavedFp>(rule >> 4U & 3U);
  if (saved == SavedFp::at_cfa || saved == SavedFp::at_fp) {
    step.fp_from = (saved == SavedFp::at_cfa ? cfa : at.fp) + static_cast<std::uint64_t>(signed_bits(rule, 30, 20) * 8);
    if (!stack_.read(step.fp_from, at.fp)) {
      at.fp = 0;
      is_computed = false;
    }
  } else if (saved == SavedFp::unknown) {
    at.fp = 0;
  }
  if (is_computed) step.pc_from = cfa - 8;
  at.sp = cfa;
  return true;
}

std::size_t Walk::run(Registers at) {
  const std::uint64_t epoch = std::uint64_t{modules().epoch()} << 48U;
  if (last_ != nullptr) last_->begin(epoch);
  while (count_ < most_ && at.pc != 0) {
    if (last_ != nullptr && tail_ == kNone && !is_exact_ && last_->find(at, searched_)) {
      follow(at);
      if (count_ == most_) break;
    }
    // Addresses in user space have 47 bits.
    const std::uint64_t key = at.pc ^ epoch ^ std::uint64_t{is_exact_} << 47U;
    std::uint64_t rule = 0;
    if (!rules.find(key, rule)) rule = learn(key, at.pc, is_exact_);
    if (rule == 0) break;
    const auto module = static_cast<std::uint32_t>(rule >> 50U);
    into_[count_++] = {at.pc, module};
    // No frame has the pc 0: an interrupted frame has a different rule from a calling one, so it must not match.
    Step now{is_exact_ ? 0 : at.pc, at.sp, at.fp, 0, 0, module};
    is_exact_ = false;
    const bool goes_on = step(at, rule, now);
    if (tail_ == kNone) {
      if (fresh_count_ < LastWalk::kMost)
        fresh_[fresh_count_++] = now;
      else
        is_fresh_whole_ = false;
    }
    if (!goes_on) break;
  }
  // With a gap before it, the tail would not connect to the previous frames.
  if (last_ != nullptr)
    last_->replace(fresh_, fresh_count_, tail_ == kNone || !is_fresh_whole_ ? last_->count() : tail_);
  return count_;
}

std::size_t unwind_from(Registers at, NativeFrame* into, std::size_t most, StackReader& stack) {
  LastWalk* const last = last_walk();
  const std::size_t count = Walk(last, stack, into, most).run(at);
  if (last != nullptr) last->unlock();
  return count;
}

void forget_walks() {
  LastWalk* const walks = last_walks.load(std::memory_order_acquire);
  for (std::size_t i = 0; walks != nullptr && i < kWalks; ++i) walks[i].forget();
}

#else

std::size_t unwind_from(Registers at, NativeFrame* into, std::size_t most, StackReader& stack) {
  std::size_t count = 0;
  while (count < most && at.pc != 0) {
    const std::uint32_t module = modules().find(at.pc - 1);
    if (module == 0) break;
    into[count++] = {at.pc, module};
    std::uint64_t fp = 0;
    if (at.fp < at.sp - 16 || !stack.read(at.fp + 8, at.pc) || !stack.read(at.fp, fp)) break;
    if (fp != 0 && fp <= at.fp) break;
    at.sp = at.fp + 16;
    at.fp = fp;
  }
  return count;
}

void forget_walks() {}

#endif

}  // namespace

std::size_t unwind(Registers from, NativeFrame* into, std::size_t most) {
  if (!own_stack.is_known) find_own_stack();
  reaches(own_stack, from.sp);
  StackReader stack(own_stack);
  return unwind_from(from, into, most, stack);
}

bool lies_in_own_stack(std::uint64_t address) {
  if (!own_stack.is_known) find_own_stack();
  return reaches(own_stack, address);
}

void forget_rules() {
  own_stack.is_known = false;
  forget_walks();
}

}  // namespace vramtrack::probe
