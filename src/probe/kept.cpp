#include "probe/kept.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "probe/modules.hpp"
#include "probe/real.hpp"
#include "probe/recorder.hpp"
#include "probe/ring.hpp"
#include "probe/self.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe {
namespace {

/// This many blocks more than at the last search, plus a share of the previous number, justify a new search.
constexpr std::int64_t kMoreBlocks = 16;
constexpr std::int64_t kMoreOneIn = 4;
constexpr std::uint64_t kCheckEveryUs = 250'000;
/// Before this time, a program loads its working set.
constexpr std::uint64_t kFirstUs = 1'000'000;
/// Searches may take this much time, and this fraction (one in kShareOneIn) of the time since.
constexpr std::uint64_t kFreeUs = 500'000;
constexpr std::uint64_t kShareOneIn = 33;
/// A program that survives failures may run out of memory at each step.
constexpr std::uint64_t kMemoryOutEveryUs = 10'000'000;
/// How long to wait for the main thread, and for the interpreter's lock.
constexpr std::uint64_t kMainThreadUs = 250'000;
constexpr std::uint64_t kLockUs = 10'000'000;
constexpr const char* kSwitchedOff = "it is switched off";
constexpr std::size_t kScriptBytes = std::size_t{1} << 17U;

// The called functions of CPython, all available since 3.3 and, but for PyUnicode_AsUTF8(), in the stable ABI.
struct Python {
  const char* (*version)();
  int (*is_initialized)();
  int (*is_finalizing)();  ///< may be null
  int (*add_pending_call)(int (*)(void*), void*);
  int (*take_lock)();
  void (*give_lock)(int);
  void* (*let_go)();
  void (*go_on)(void*);
  void* (*compile)(const char*, const char*, int);
  void* (*evaluate)(void*, void*, void*);
  void* (*builtins)();
  void* (*new_dict)();
  int (*set_item)(void*, const char*, void*);
  void* (*item)(void*, const char*);
  void* (*call)(void*, void*);
  void* (*new_function)(void*, void*, void*);
  const char* (*text)(void*);
  void (*hold)(void*);
  void (*drop)(void*);
  void (*clear_error)();
};
constexpr int kFileInput = 257;
constexpr int kNoArguments = 4, kOneArgument = 8;

/// PyMethodDef.
struct Method {
  const char* name;
  void* (*function)(void* self, void* argument);
  int flags;
  const char* text;
};

Python python{};
enum class State : int { unseen, usable, refused };
std::atomic<State> state{State::unseen};
std::atomic<const char*> refused_why{kSwitchedOff};  ///< with State::refused
std::uint32_t looked_modules = 0;

/// State of a requested search. `paused`: the main thread pauses until it is over; `taken`: it did not arrive in time.
enum class Claim : int { none, waiting, paused, taken, given_up };
std::atomic<Claim> claim{Claim::none};
std::atomic<bool> is_busy{false};  ///< one of our threads is running
std::atomic<bool> is_over{false};  ///< the interpreter is about to end: changed with its lock held

std::atomic<std::int64_t> blocks{0};
std::atomic<std::int64_t> looked_blocks{0};
std::atomic<std::uint64_t> next_us{0}, first_us{0}, asked_us{0}, memory_out_us{0}, requests_seen{0};
std::atomic<std::uint64_t> spent_us{0}, last_us{0};
std::atomic<bool> has_begun{false}, wants_search{false};

// Python's functions, available from the first search on.
void* look_function = nullptr;
char* script = nullptr;

void record_look_end(std::string_view why, std::uint64_t found, std::uint64_t took_us) {
  ring().put(head_of(Record::kept, Call::none, 0, kLookEnd, why.empty() ? 0 : record_text(why)),
             when(ring().now_us(), 0), found, took_us);
}

template <class Function>
bool find(const Module& module, const char* name, Function*& into) {
  into = reinterpret_cast<Function*>(find_symbol(module, name));  // NOLINT(performance-no-int-to-ptr)
  return into != nullptr;
}

bool find_python(const Module& module) {
  if (!find(module, "_Py_IsFinalizing", python.is_finalizing)) find(module, "Py_IsFinalizing", python.is_finalizing);
  return find(module, "Py_AddPendingCall", python.add_pending_call) && find(module, "Py_GetVersion", python.version) &&
         find(module, "Py_IsInitialized", python.is_initialized) &&
         find(module, "PyGILState_Ensure", python.take_lock) && find(module, "PyGILState_Release", python.give_lock) &&
         find(module, "PyEval_SaveThread", python.let_go) && find(module, "PyEval_RestoreThread", python.go_on) &&
         find(module, "Py_CompileString", python.compile) && find(module, "PyEval_EvalCode", python.evaluate) &&
         find(module, "PyEval_GetBuiltins", python.builtins) && find(module, "PyDict_New", python.new_dict) &&
         find(module, "PyDict_SetItemString", python.set_item) && find(module, "PyDict_GetItemString", python.item) &&
         find(module, "PyObject_CallObject", python.call) && find(module, "PyCFunction_NewEx", python.new_function) &&
         find(module, "PyUnicode_AsUTF8", python.text) && find(module, "Py_IncRef", python.hold) &&
         find(module, "Py_DecRef", python.drop) && find(module, "PyErr_Clear", python.clear_error);
}

bool contains(const char* text, std::string_view part) {
  return std::string_view(text).find(part) != std::string_view::npos;
}

/// The reason why a search cannot run in this process; nullptr if it can.
const char* unfit() {
  const char* version = python.version();
  if (version[0] != '3' || version[1] != '.') return "only Python 3 can be searched";
  int minor = 0;
  for (const char* c = version + 2; *c >= '0' && *c <= '9'; ++c) minor = minor * 10 + (*c - '0');
  if (minor < 8) return "Python is older than 3.8";
  if (contains(version, "free-threading"))
    return "Python runs without its lock (GIL), so objects would change during the search";
  return nullptr;
}

void refuse(const char* why) {
  refused_why.store(why, std::memory_order_relaxed);
  state.store(State::refused, std::memory_order_release);
  record_look_end(why, 0, 0);
}

/// Only one thread at a time calls this.
bool has_python() {
  const std::uint32_t count = modules().count();
  for (; state.load(std::memory_order_relaxed) == State::unseen && looked_modules < count; ++looked_modules) {
    const Module& module = modules()[looked_modules + 1];
    if ((!module.is_program && !module.has_python_name) || !find_python(module)) continue;
    if (const char* why = unfit())
      refuse(why);
    else
      state.store(State::usable, std::memory_order_release);
  }
  return state.load(std::memory_order_relaxed) == State::usable;
}

bool is_ending() {
  return python.is_initialized() == 0 || (python.is_finalizing != nullptr && python.is_finalizing() != 0);
}

std::uint64_t number_at(const char*& at) {
  std::uint64_t number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + static_cast<std::uint64_t>(*at - '0');
  return number;
}

/// Records a keeper, "FLAGS BYTES ADDRESS,ADDRESS WORDS", once per address.
void record_keeper(const char* at, const char* end) {
  const auto flags = static_cast<std::uint8_t>(number_at(at) << 1U);  // kLookEnd is not a flag of a keeper
  const std::uint64_t bytes = number_at(++at);
  const char* addresses = ++at;
  while (at < end && *at != ' ') ++at;
  if (at == end) return;
  const std::uint32_t words = record_text({at + 1, static_cast<std::size_t>(end - at - 1)});
  const std::uint64_t now = when(ring().now_us(), 0);
  for (const char* each = addresses; each < at; ++each) {
    const std::uint64_t address = number_at(each);
    ring().put(head_of(Record::kept, Call::none, 0, flags, words), now, address, bytes);
  }
}

/// answer(lines): the result of a search, in lines "K keeper", ended by "E OBJECTS MICROSECONDS REASON".
void* take_answer(void* /*self*/, void* argument) {
  const char* at = python.text(argument);
  if (at == nullptr) python.clear_error();
  while (at != nullptr && *at != '\0') {
    const char* end = at;
    while (*end != '\0' && *end != '\n') ++end;
    if (at[0] == 'K' && end - at > 4) {
      record_keeper(at + 2, end);
    } else if (at[0] == 'E') {
      at += 2;
      const std::uint64_t found = number_at(at);
      const std::uint64_t took_us = number_at(++at);
      record_look_end(
          *at == ' ' ? std::string_view(at + 1, static_cast<std::size_t>(end - at - 1)) : std::string_view(), found,
          took_us);
    }
    at = *end == '\0' ? end : end + 1;
  }
  python.hold(argument);
  return argument;
}

/// Runs the search. Called with the interpreter's lock.
void look() {
  const std::uint64_t begin = ring().now_us();
  looked_blocks.store(blocks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  void* done = python.call(look_function, nullptr);
  if (done != nullptr)
    python.drop(done);
  else
    python.clear_error();
  last_us.store(ring().now_us() - begin, std::memory_order_relaxed);
  spent_us.fetch_add(ring().now_us() - begin, std::memory_order_relaxed);
}

void sleep_some(long ns) {
  const timespec some{0, ns};
  nanosleep(&some, nullptr);
}

bool has_grown() {
  const std::int64_t before = looked_blocks.load(std::memory_order_relaxed);
  return blocks.load(std::memory_order_relaxed) >= before + kMoreBlocks + before / kMoreOneIn;
}

/// at_end(): called by Python's atexit, when the program has run to its end and all its variables still exist. A thread
/// that waits for the lock of an ending interpreter is terminated: inside a C++ function that must not throw, such as
/// PyTorch's, that ends the program. So this is the last search, and it waits for our thread, whatever that is doing.
void* take_end(void* self, void* /*argument*/) {
  record_end();  // the search takes time that must not count for the program
  is_over.store(true, std::memory_order_relaxed);
  Claim expected = Claim::waiting;
  claim.compare_exchange_strong(expected, Claim::given_up);
  if (is_busy.load(std::memory_order_acquire)) {
    const std::uint64_t begin = ring().now_us();
    void* thread = python.let_go();
    while (is_busy.load(std::memory_order_acquire) && ring().now_us() - begin < kLockUs) sleep_some(1'000'000);
    python.go_on(thread);
  }
  if (blocks.load(std::memory_order_relaxed) >= kMoreBlocks && look_function != nullptr) look();
  python.hold(self);
  return self;
}

// They live as long as this process, because Python refers to them.
Method answer_method{"answer", take_answer, kOneArgument, nullptr};
Method end_method{"at_end", take_end, kNoArguments, nullptr};

/// Compiles the search, once. Called with the interpreter's lock.
bool prepare() {
  if (look_function != nullptr) return true;
  void* names = python.new_dict();
  if (names == nullptr) return python.clear_error(), false;
  void* answer_function = python.new_function(&answer_method, names, nullptr);
  void* end = python.new_function(&end_method, names, nullptr);
  void* code = python.compile(script, "<vramtrack kept>", kFileInput);
  bool is_done = answer_function != nullptr && end != nullptr && code != nullptr &&
                 python.set_item(names, "__builtins__", python.builtins()) == 0 &&
                 python.set_item(names, "answer", answer_function) == 0 && python.set_item(names, "at_end", end) == 0;
  void* result = is_done ? python.evaluate(code, names, names) : nullptr;
  is_done = result != nullptr;
  if (is_done) look_function = python.item(names, "look");
  if (look_function != nullptr) python.hold(look_function);
  python.clear_error();
  for (void* each : {answer_function, end, code, result, names})
    if (each != nullptr) python.drop(each);
  if (look_function == nullptr) refuse("the search could not be loaded into the program");
  return look_function != nullptr;
}

/// Runs in the main thread between two bytecodes, and pauses there while the search thread runs, so that none of the
/// program's signal handlers run. An exception raised by such a handler would otherwise appear within the search.
int pending_call(void* /*argument*/) {
  Claim expected = Claim::waiting;
  if (!claim.compare_exchange_strong(expected, Claim::paused)) return 0;
  void* thread = python.let_go();
  while (claim.load(std::memory_order_acquire) == Claim::paused) sleep_some(200'000);
  python.go_on(thread);
  return 0;
}

bool read_script() {
  if (script != nullptr) return true;
  const char* folder = setting("VRAMTRACK_PROBE_DIR");
  if (folder == nullptr) return false;
  Line<4096> path;
  path.add(folder).add(kKeptScript);
  char* text = static_cast<char*>(reserve(kScriptBytes));
  if (text == nullptr) return false;
  if (const std::size_t size = read_file(path.c_str(), text, kScriptBytes); size == 0 || size == kScriptBytes) {
    give_back(text, kScriptBytes);
    return false;
  }
  script = text;
  return true;
}

void run_thread() {
  claim.store(Claim::waiting, std::memory_order_release);
  // Preparing the search does not require a pause. The call fails if its queue is full; then nothing runs.
  const bool waits = wants_search.load(std::memory_order_relaxed);
  if (waits) python.add_pending_call(pending_call, nullptr);
  const std::uint64_t begin = ring().now_us();
  while (waits && claim.load(std::memory_order_acquire) == Claim::waiting && ring().now_us() - begin < kMainThreadUs)
    sleep_some(1'000'000);
  if (is_ending()) return claim.store(Claim::none, std::memory_order_release);
  const int lock = python.take_lock();
  Claim now = Claim::waiting;
  if (!is_over.load(std::memory_order_relaxed) &&
      (claim.compare_exchange_strong(now, Claim::taken) || now == Claim::paused))
    if (prepare() && wants_search.load(std::memory_order_relaxed)) look();
  claim.store(Claim::none, std::memory_order_release);
  python.give_lock(lock);
}

extern "C" void* vramtrack_look(void* /*argument*/) {
  prctl(PR_SET_NAME, "vramtrack");
  run_thread();
  is_busy.store(false, std::memory_order_release);
  return nullptr;
}

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
/// It is in a separate library before glibc 2.34.
Real<Create> create_thread{"libpthread", "pthread_create"};

/// Starts a thread that blocks the program's signals.
bool start_thread() {
  std::uint64_t all = ~std::uint64_t{0}, before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  Create* create = create_thread.get();
  const bool is_started = create != nullptr && create(&thread, &attributes, vramtrack_look, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof all);
  return is_started;
}

void begin_look(std::uint64_t now_us, bool searches, bool is_requested = false) {
  if (is_over.load(std::memory_order_relaxed)) return;  // none of our threads waits for the lock from now on
  if (is_busy.exchange(true)) {
    if (searches) wants_search.store(true, std::memory_order_relaxed);  // the thread that prepares it goes on to search
    return;
  }
  asked_us.store(now_us, std::memory_order_relaxed);
  wants_search.store(searches, std::memory_order_relaxed);
  if (!has_python()) {
    if (state.load(std::memory_order_relaxed) == State::unseen && is_requested)
      record_look_end("no Python runs in this process", 0, 0);
  } else if (!read_script()) {
    refuse(kSwitchedOff);
  } else if (!is_ending()) {
    if (start_thread()) return;
    refuse("no thread could be started in the program");
  }
  is_busy.store(false, std::memory_order_release);
}

/// A thread that waits for the interpreter's lock continues to wait, and does nothing once it gets it.
void give_up_late_look(std::uint64_t now_us) {
  if (now_us < asked_us.load(std::memory_order_relaxed) + kLockUs) return;
  Claim expected = Claim::waiting;
  if (claim.compare_exchange_strong(expected, Claim::given_up))
    record_look_end("the interpreter's lock (GIL) was not free for 10 s", 0, 0);
}

bool can_afford(std::uint64_t now_us) {
  const std::uint64_t since_us = now_us - std::min(now_us, first_us.load(std::memory_order_relaxed));
  return spent_us.load(std::memory_order_relaxed) + last_us.load(std::memory_order_relaxed) <=
         kFreeUs + since_us / kShareOneIn;
}

void forget_looks() {
  state.store(State::unseen, std::memory_order_relaxed);
  looked_modules = 0;
  claim.store(Claim::none, std::memory_order_relaxed);
  is_busy.store(false, std::memory_order_relaxed);
  is_over.store(false, std::memory_order_relaxed);
  for (auto* each : {&next_us, &first_us, &asked_us, &memory_out_us, &requests_seen, &spent_us, &last_us})
    each->store(0, std::memory_order_relaxed);
  has_begun.store(false, std::memory_order_relaxed);
  blocks.store(0, std::memory_order_relaxed);
  looked_blocks.store(0, std::memory_order_relaxed);
}
VRAMTRACK_ON_FORK(forget_looks);

}  // namespace

void count_block(int by) {
  blocks.fetch_add(by, std::memory_order_relaxed);
}

void ask_look(std::uint64_t now_us) {
  const std::uint64_t before = memory_out_us.load(std::memory_order_relaxed);
  if (before != 0 && now_us < before + kMemoryOutEveryUs) return;
  memory_out_us.store(now_us, std::memory_order_relaxed);
  if (state.load(std::memory_order_acquire) != State::refused) begin_look(now_us, true);
}

void consider_look(std::uint64_t now_us, std::uint64_t requests) {
  const bool is_requested = requests != requests_seen.load(std::memory_order_relaxed);
  if (!is_requested && now_us < next_us.load(std::memory_order_relaxed)) {
    // Prepare Python early, because a short program is searched at its end.
    if (has_begun.load(std::memory_order_relaxed) || blocks.load(std::memory_order_relaxed) < kMoreBlocks) return;
  }
  next_us.store(now_us + kCheckEveryUs, std::memory_order_relaxed);
  if (is_requested) {
    requests_seen.store(requests, std::memory_order_relaxed);
    if (state.load(std::memory_order_acquire) == State::refused)
      return record_look_end(refused_why.load(std::memory_order_relaxed), 0, 0);
    return begin_look(now_us, true, true);
  }
  if (state.load(std::memory_order_acquire) == State::refused) return;
  if (is_busy.load(std::memory_order_acquire)) return give_up_late_look(now_us);
  if (first_us.load(std::memory_order_relaxed) == 0) first_us.store(std::max<std::uint64_t>(now_us, 1));
  if (blocks.load(std::memory_order_relaxed) >= kMoreBlocks && !has_begun.exchange(true)) {
    looked_blocks.store(blocks.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return begin_look(now_us, false);
  }
  if (now_us < first_us.load(std::memory_order_relaxed) + kFirstUs) return;
  if (has_begun.load(std::memory_order_relaxed) && has_grown() && can_afford(now_us)) begin_look(now_us, true);
}

}  // namespace vramtrack::probe
