#include "probe/recorder.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "probe/devices.hpp"
#include "probe/kept.hpp"
#include "probe/labels.hpp"
#include "probe/loaded.hpp"
#include "probe/python_frames.hpp"
#include "probe/ring.hpp"
#include "probe/sampling.hpp"
#include "probe/self.hpp"
#include "probe/stacks.hpp"
#include "probe/unwind.hpp"

namespace vramtrack::probe {
namespace {

enum class State : int { untouched, opening, inert, open };
std::atomic<State> state{State::untouched};

Ring the_ring;
std::atomic<bool> has_recorded_end{false};
HoldingTable the_holdings;
std::atomic<std::uint32_t> threads{0};

struct ThisThread {
  int depth = 0;
  const Hook* outermost = nullptr;  ///< set while depth is not 0
  bool is_opening = false;
  std::uint32_t number = 0;  ///< 0: none yet; else one more than the number written
};
// A preloaded library has its thread-local variables in the static block: no allocation, no function call.
__attribute__((tls_model("initial-exec"))) thread_local ThisThread here;

void after_fork() {
  release_list_in_child();
  the_ring.forget();
  has_recorded_end.store(false, std::memory_order_relaxed);
  the_holdings.reset();
  forget_stacks();
  forget_labels();
  forget_sampling();
  forget_recorded_devices();
  forget_after_fork();
  here = {};
  threads.store(0, std::memory_order_relaxed);
  if (state.load(std::memory_order_relaxed) != State::inert) state.store(State::untouched, std::memory_order_relaxed);
}

std::size_t read_command(char* text, std::size_t bytes) {
  std::size_t size = read_file("/proc/self/cmdline", text, bytes);
  while (size > 0 && text[size - 1] == '\0') --size;
  std::replace(text, text + size, '\0', ' ');
  return size;
}

std::uint32_t record_command() {
  char text[1024];
  return record_text({text, read_command(text, sizeof text)});
}

std::uint64_t number_setting(const char* name) {
  std::uint64_t number = 0;
  for (const char* c = setting(name); c != nullptr && *c >= '0' && *c <= '9'; ++c)
    number = number * 10 + static_cast<std::uint64_t>(*c - '0');
  return number;
}

/// The limits that apply from the first allocation on, before the launcher has seen the ring.
void set_first_limits(RingHeader& header) {
  const std::uint64_t limit = number_setting("VRAMTRACK_PROBE_LIMIT_BYTES");
  const std::uint64_t soft_limit = number_setting("VRAMTRACK_PROBE_SOFT_LIMIT_BYTES");
  if (limit == 0 && soft_limit == 0) return;
  header.limit_bytes.store(limit, std::memory_order_relaxed);
  header.soft_limit_bytes.store(soft_limit, std::memory_order_relaxed);
  the_ring.put(head_of(Record::limit, Call::none, 0, 0, 0), 0, soft_limit, limit);
}

/// Informs the launcher that this process is not recorded, and why.
void report_unrecorded(const char* directory, int error, std::uint64_t limit_bytes) {
  Line<1024> target;
  target.add(static_cast<std::uint64_t>(error)).add(" ").add(limit_bytes).add(" ");
  char command[512];
  target.add({command, read_command(command, sizeof command)});
  Line<4096> path;
  path.add(directory).add("/").add(kUnrecorded).add(static_cast<std::uint64_t>(getpid())).add(".").add(start_ticks());
  [[maybe_unused]] const int made = symlink(target.c_str(), path.c_str());
}

bool open_ring() {
  const char* directory = setting("VRAMTRACK_PROBE_DIR");
  if (directory == nullptr || *directory == '\0') return false;
  if (!the_ring.create(directory)) {
    Line<512> line;
    const int error = errno;
    const bool is_too_large = error == EFBIG;
    const std::uint64_t limit_bytes = number_setting("VRAMTRACK_PROBE_LIMIT_BYTES");
    const bool is_limited = limit_bytes != 0 && the_ring.create_private();
    report_unrecorded(directory, error, is_limited ? limit_bytes : 0);
    line.add("cannot record: no ring could be created in ")
        .add(directory)
        .add(is_too_large ? " within this process's limit for files (ulimit -f)" : "")
        .add("; the program continues without it");
    warn(is_limited ? line.add(", within its limit").view() : line.view());
    if (is_limited) set_first_limits(the_ring.header());
    return is_limited;
  }
  RingHeader& header = the_ring.header();
  the_ring.put(head_of(Record::process, Call::none, 0, 0, 0), header.pid, header.start_ticks, record_command());
  set_first_limits(header);
  return true;
}

void record_exit();

/// Handlers run in reverse order, so this one runs before the destructors of everything loaded and created so far,
/// which may take longer than the program itself.
void watch_exit() {
  static bool is_watching = false;  // a forked child inherits the handler
  if (std::exchange(is_watching, true)) return;
  std::atexit(record_exit);
}

bool is_open() {
  State now = state.load(std::memory_order_acquire);
  if (now == State::open) return true;
  if (now == State::inert) return false;
  State expected = State::untouched;
  if (!state.compare_exchange_strong(expected, State::opening)) {
    if (here.is_opening) return false;
    // This takes some milliseconds once. Otherwise, threads that load a model simultaneously would hold unknown blocks.
    while ((now = state.load(std::memory_order_acquire)) == State::opening) sched_yield();
    return now == State::open;
  }
  here.is_opening = true;
  watch_forks();
  const bool opened = open_ring();
  if (opened) watch_exit();
  state.store(opened ? State::open : State::inert, std::memory_order_release);
  here.is_opening = false;
  return opened;
}

std::uint16_t thread_number() {
  if (here.number == 0) {
    const std::uint32_t number = std::min(threads.fetch_add(1, std::memory_order_relaxed), 0xffffU);
    here.number = number + 1;
    char name[17] = {};
    prctl(PR_GET_NAME, name);
    the_ring.put(head_of(Record::thread, Call::none, 0, 0, record_text({name, std::strlen(name)})), number, thread_id(),
                 0);
  }
  return static_cast<std::uint16_t>(here.number - 1);
}

std::uint64_t stamp() {
  return when(the_ring.now_us(), thread_number());
}

void record_exit() {
  if (state.load(std::memory_order_acquire) == State::open)
    the_ring.put(head_of(Record::exit, Call::none, 0, 0, 0), stamp(), 0, 0);
}

HeldBytes* held_of(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= kMostDevices) return nullptr;
  return &the_ring.header().held[static_cast<std::size_t>(device)];
}

bool counts(Memory memory) {
  return memory == Memory::device || memory == Memory::managed;
}

/// Adds to the device's held memory; returns the sum.
std::int64_t hold(Level level, int device, std::int64_t bytes) {
  HeldBytes* held = held_of(device);
  if (held == nullptr) return 0;
  return (level == Level::driver ? held->driver : held->block).fetch_add(bytes, std::memory_order_relaxed) + bytes;
}

/// Keeps the peak for the launcher, which polls and would miss it.
void note_soft_limit(int device, std::int64_t held_bytes) {
  RingHeader& header = the_ring.header();
  const std::uint64_t limit = header.soft_limit_bytes.load(std::memory_order_relaxed);
  if (limit == 0 || held_bytes <= 0 || static_cast<std::uint64_t>(held_bytes) <= limit) return;
  std::atomic<std::int64_t>& most = header.above_soft_limit[static_cast<std::size_t>(device)];
  std::int64_t known = most.load(std::memory_order_relaxed);
  if (known == 0) ask_look(the_ring.now_us());
  while (known < held_bytes && !most.compare_exchange_weak(known, held_bytes, std::memory_order_relaxed)) continue;
}

void hold(const CallInfo& info, int device, std::int64_t bytes) {
  if (!counts(info.memory)) return;
  const std::int64_t sum = hold(info.level, device, bytes);
  if (info.level == Level::driver && bytes >= 0 && held_of(device) != nullptr) note_soft_limit(device, sum);
}

/// Records an allocation that is already counted in the device's held memory.
void record(const CallInfo& info, int device, std::uint64_t address, std::uint64_t bytes, std::uint8_t flags) {
  Holding holding{address, bytes, 0, info.call, static_cast<std::int8_t>(device), info.level, true};
  std::uint64_t now_us = 0;
  holding.is_recorded = is_sampled(the_ring, bytes, now_us);
  if (holding.is_recorded) holding.stack = capture_stack();
  // Write the record before the holding can be found, so that the record of its free comes later.
  if (holding.is_recorded)
    the_ring.put(head_of(Record::alloc, info.call, device, flags, holding.stack), when(now_us, thread_number()),
                 address, bytes);
  const Holding before = the_holdings.put(holding);
  if (holding.is_recorded) {
    count_block(before.address == 0 || !before.is_recorded ? 1 : 0);
    consider_look(now_us, the_ring.header().kept_requests.load(std::memory_order_relaxed));
  }
  // The free of the previous holding was not recorded (it used a function that is not hooked).
  if (before.address != 0)
    if (const CallInfo* old = info_of(before.call)) hold(*old, before.device, -static_cast<std::int64_t>(before.bytes));
}

}  // namespace

Ring& ring() {
  return the_ring;
}
HoldingTable& holdings() {
  return the_holdings;
}

void watch_forks() {
  static std::atomic<bool> is_registered{false};
  if (!is_registered.load(std::memory_order_relaxed) && !is_registered.exchange(true))
    pthread_atfork(hold_list_before_fork, release_list_in_parent, after_fork);
}

bool is_recording() {
  return is_open() && the_ring.header().recording.load(std::memory_order_relaxed) != 0;
}

Hook::Hook(Call call) : call_(call), saved_errno_(errno) {
  if (here.depth > 0 && is_gone(here.outermost)) here.depth = 0;
  if (here.depth == 0) here.outermost = this;
  depth_before_ = here.depth++;
  mark_ = mark_of(this);
  passes_ = depth_before_ > 0 || !is_recording();
}
Hook::~Hook() {
  here.depth = depth_before_;  // including inner hooks that an exception left
  errno = saved_errno_;
}

std::uint64_t Hook::mark_of(const Hook* hook) {
  return reinterpret_cast<std::uint64_t>(hook) ^ 0x9e3779b97f4a7c15U;
}

/// Whether a C++ exception left the outermost hook: the probe has no destructors for that (they need the C++ library).
/// Hooks within it are below it on the thread's stack, which is reused as soon as it is unwound.
__attribute__((no_sanitize_address, no_sanitize_thread)) bool Hook::is_gone(const Hook* outermost) const {
  const auto there = reinterpret_cast<std::uint64_t>(outermost);
  const auto mine = reinterpret_cast<std::uint64_t>(this);
  if (!lies_in_own_stack(there) || !lies_in_own_stack(mine)) return false;
  return mine >= there || static_cast<const volatile std::uint64_t&>(outermost->mark_) != mark_of(outermost);
}

bool Hook::may_take(int device, std::uint64_t bytes) {
  if (passes_) return true;
  const CallInfo& info = *info_of(call_);
  device_ = device;
  asked_bytes_ = bytes;
  if (!counts(info.memory)) return true;
  const auto sum = static_cast<std::uint64_t>(hold(info.level, device, static_cast<std::int64_t>(bytes)));
  reserved_bytes_ = bytes;
  const std::uint64_t limit = limit_bytes();
  if (limit == 0 || (sum <= limit && bytes <= limit)) return true;
  hold(info.level, device, -static_cast<std::int64_t>(bytes));
  reserved_bytes_ = 0;
  the_ring.put(head_of(Record::refused, call_, device, 0, capture_stack()), stamp(), sum - bytes, bytes);
  ask_look(the_ring.now_us());
  return false;
}

void Hook::took(std::uint64_t address, std::uint64_t bytes, std::uint8_t flags) {
  saved_errno_ = errno;
  if (passes_ || address == 0) return;
  const CallInfo& info = *info_of(call_);
  hold(info, device_, static_cast<std::int64_t>(bytes - reserved_bytes_));
  reserved_bytes_ = 0;
  record(info, device_, address, bytes, flags);
}

void Hook::took_unasked(int device, std::uint64_t address, std::uint64_t bytes, std::uint8_t flags) {
  device_ = device;
  took(address, bytes, flags);
}

void Hook::failed(bool is_out_of_memory, std::uint64_t device_free_bytes) {
  saved_errno_ = errno;
  if (passes_) return;
  hold(*info_of(call_), device_, -static_cast<std::int64_t>(reserved_bytes_));
  reserved_bytes_ = 0;
  if (is_out_of_memory)
    the_ring.put(head_of(Record::failed, call_, device_, 0, capture_stack()), stamp(), device_free_bytes, asked_bytes_);
  if (is_out_of_memory) ask_look(the_ring.now_us());
}

void took_block(Call call, int device, std::uint64_t address, std::uint64_t bytes) {
  if (address == 0) return;
  const Hook hook(call);
  if (hook.passes()) return;
  const CallInfo& info = *info_of(call);
  hold(info, device, static_cast<std::int64_t>(bytes));
  record(info, device, address, bytes, 0);
}

void lacked_block(Call call, int device, std::uint64_t bytes) {
  const Hook hook(call);
  if (hook.passes()) return;
  the_ring.put(head_of(Record::failed, call, device, 0, capture_stack()), stamp(), 0, bytes);
}

void record_end() {
  if (!has_recorded_end.exchange(true)) the_ring.put(head_of(Record::end, Call::none, 0, 0, 0), stamp(), 0, 0);
}

/// Call before the first free of an interpreter that shuts down.
void record_shutdown() {
  if (!has_recorded_end.load(std::memory_order_relaxed) && python_shuts_down()) record_end();
}

void wrote_free(const Holding& holding) {
  record_shutdown();
  if (const CallInfo* info = info_of(holding.call))
    hold(*info, holding.device, -static_cast<std::int64_t>(holding.bytes));
  if (holding.is_recorded) count_block(-1);
  if (holding.is_recorded)
    the_ring.put(head_of(Record::free, holding.call, holding.device, 0, holding.stack), stamp(), holding.address,
                 holding.bytes);
}

Holding gave_back(Level level, std::uint64_t address) {
  if (!is_recording()) return {};
  const Holding holding = the_holdings.take(level, address);
  if (holding.address != 0) wrote_free(holding);
  return holding;
}

void holds_still(const Holding& holding) {
  if (holding.address == 0 || !is_recording()) return;
  if (const CallInfo* info = info_of(holding.call))
    hold(*info, holding.device, static_cast<std::int64_t>(holding.bytes));
  if (holding.is_recorded)
    the_ring.put(head_of(Record::alloc, holding.call, holding.device, 0, holding.stack), stamp(), holding.address,
                 holding.bytes);
  if (holding.is_recorded) count_block(1);
  the_holdings.put(holding);
}

void renamed(Level level, std::uint64_t from, std::uint64_t to) {
  Holding holding = gave_back(level, from);
  if (holding.address == 0) return;
  holding.address = to;
  holds_still(holding);
}

void record_totals(Call call, int device, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes) {
  if (!is_recording()) return;
  the_ring.put(head_of(Record::totals, call, device, 0, 0), stamp(), allocated_bytes, reserved_bytes);
}

void record_device(int device, std::string_view uuid, std::string_view name, std::uint64_t total_bytes) {
  note_ordinal(device, uuid);
  if (!is_recording()) return;
  the_ring.put(head_of(Record::device, Call::none, device, 0, record_text(uuid)), stamp(), total_bytes,
               record_text(name));
}

void record_mark(std::string_view name) {
  if (!is_recording()) return;
  the_ring.put(head_of(Record::mark, Call::none, 0, 0, record_text(name)), stamp(), 0, 0);
}

void write_label(std::uint64_t address, std::uint32_t category, std::uint32_t name) {
  the_ring.put(head_of(Record::label, Call::none, 0, 0, name), stamp(), address, category);
}

std::uint64_t limit_bytes() {
  return is_open() ? the_ring.header().limit_bytes.load(std::memory_order_relaxed) : 0;
}

std::uint64_t held_bytes(int device) {
  if (!is_open()) return 0;
  const HeldBytes* held = held_of(device);
  return held == nullptr
             ? 0
             : static_cast<std::uint64_t>(std::max<std::int64_t>(0, held->driver.load(std::memory_order_relaxed)));
}

}  // namespace vramtrack::probe
