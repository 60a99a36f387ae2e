#include "probe/stacks.hpp"

#include <atomic>
#include <cstddef>

#include "probe/modules.hpp"
#include "probe/python_frames.hpp"
#include "probe/ring.hpp"
#include "probe/stacks_table.hpp"
#include "probe/unwind.hpp"

namespace vramtrack::probe {
namespace {

// Numbers by the addresses in a stack, which are cheap to collect: a known stack is found without reading names.
Recent<17> recent;
// Numbers by the written form, which is the same for a function that was compiled twice.
Numbers<18> stacks;
std::atomic<std::uint64_t> refused{0};
/// The module of the probe; its frames are left out. 0: not known yet, or none (tests that link the probe).
std::atomic<std::uint32_t> own_module{0};

/// The probe's own frames: the hook, what it calls, capture_stack()'s caller.
constexpr std::size_t kMostOwnFrames = 8;

struct Stack {
  std::size_t native = 0;
  std::size_t python = 0;
  const NativeFrame* native_frames = found;  ///< the frames after the probe's own
  NativeFrame found[kMostNativeFrames + kMostOwnFrames];
  PythonFrame python_frames[kMostPythonFrames];
};

/// Hashes the stack in four parts, which a processor computes in parallel.
std::uint64_t hash_of(const Stack& stack) {
  Hash parts[4];
  for (std::size_t i = 0; i < stack.native; ++i)
    parts[i % 4].add(stack.native_frames[i].address ^ std::uint64_t{stack.native_frames[i].module} << 48U);
  for (std::size_t i = 0; i < stack.python; ++i)
    parts[i % 4].add(stack.python_frames[i].key ^ static_cast<std::uint64_t>(stack.python_frames[i].at) << 32U);
  Hash hash;
  hash.add(stack.native << 32U | stack.python);
  for (const Hash& part : parts) hash.add(part.value());
  return hash.value();
}

bool are_modules_same(const Stack& stack) {
  std::uint32_t last = 0, before = 0;
  for (std::size_t i = 0; i < stack.native; ++i) {
    const std::uint32_t module = stack.native_frames[i].module;
    if (module == last || module == before) continue;
    if (!modules().is_same(module)) return false;
    before = last;
    last = module;
  }
  return true;
}

void write(const Stack& stack, const std::uint32_t* codes, const std::uint32_t* lines, std::uint32_t number) {
  const std::uint64_t count = std::uint64_t{stack.native + stack.python} << 32U;
  for (std::size_t i = 0; i < stack.native; ++i) {
    modules().record(stack.native_frames[i].module);
    ring().put(head_of(Record::frame, Call::none, 0, 0, number), i | count, stack.native_frames[i].address, 0);
  }
  for (std::size_t i = 0; i < stack.python; ++i) {
    const std::uint8_t flags = kPythonFrame | (stack.python_frames[i].is_entry ? kEntryFrame : 0);
    ring().put(head_of(Record::frame, Call::none, 0, flags, number), (stack.native + i) | count, codes[i], lines[i]);
  }
}

/// The number of a stack that is new in exactly this form.
__attribute__((noinline)) std::uint32_t number_of(const Stack& stack) {
  std::uint32_t codes[kMostPythonFrames];
  std::uint32_t lines[kMostPythonFrames];
  Hash hash;
  for (std::size_t i = 0; i < stack.native; ++i)
    hash.add(stack.native_frames[i].address ^ std::uint64_t{stack.native_frames[i].module} << 48U);
  for (std::size_t i = 0; i < stack.python; ++i) {
    const PythonFrame& frame = stack.python_frames[i];
    codes[i] = record_code(frame);
    lines[i] = line_of(frame);
    if (codes[i] == 0) return 0;
    hash.add(std::uint64_t{codes[i]} << 32U | lines[i]);
    hash.add(frame.is_entry ? 1 : 0);
  }
  bool is_new = false;
  const std::uint32_t number = stacks.number(hash.value(), kMostStacks, is_new);
  if (!is_new) return number;
  write(stack, codes, lines, number);
  // Any thread that finds it unwritten up to here writes the same records, too, so nobody waits.
  stacks.is_written(number);
  return number;
}

void take(Stack& stack, const Registers& caller, bool with_native) {
  stack.native = 0;
  if (!with_native) {
    stack.python = python_frames(stack.python_frames, kMostPythonFrames);
    if (stack.python != 0) return;
  }
  // Call this first: it finds the modules, including a Python that was loaded since.
  stack.native = unwind(caller, stack.found, kMostNativeFrames + kMostOwnFrames);
  stack.python = python_frames(stack.python_frames, kMostPythonFrames);
#if defined(VRAMTRACK_PROBE_LIBRARY)
  std::uint32_t own = own_module.load(std::memory_order_relaxed);
  if (own == 0 && stack.native > 0) {
    own = modules().find(reinterpret_cast<std::uint64_t>(&capture_stack));
    own_module.store(own, std::memory_order_relaxed);
  }
  std::size_t inner = 0;
  while (inner < stack.native && stack.found[inner].module == own) ++inner;
  stack.native_frames = stack.found + inner;
  stack.native -= inner;
#endif
  if (stack.native > kMostNativeFrames) stack.native = kMostNativeFrames;
}

}  // namespace

__attribute__((noinline)) std::uint32_t capture_stack(bool with_native) {
  const Registers caller = VRAMTRACK_CALLER_REGISTERS();
  Stack stack;
  std::uint64_t hash = 0;
  static std::atomic<std::uint32_t> captures{0};
  // A module that was replaced at the same addresses is detected with a new stack, and by an occasional check.
  const bool looks = captures.fetch_add(1, std::memory_order_relaxed) % 4096 == 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    take(stack, caller, with_native);
    if (stack.native + stack.python == 0) return 0;
    hash = hash_of(stack);
    std::uint32_t number = 0;
    if (!looks && recent.find(hash, number)) return number;
    if (!are_modules_same(stack)) continue;
    number = number_of(stack);
    if (number != 0)
      recent.put(hash, number);
    else
      refused.fetch_add(1, std::memory_order_relaxed);
    return number;
  }
  return 0;
}

std::uint64_t stacks_without_room() {
  return refused.load(std::memory_order_relaxed);
}

void forget_stacks() {
  modules().forget();
  forget_rules();
  forget_python();
  recent.forget();
  stacks.forget();
  own_module.store(0, std::memory_order_relaxed);
  refused.store(0, std::memory_order_relaxed);
}

}  // namespace vramtrack::probe
