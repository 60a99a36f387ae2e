#include "telemetry/unwinder.hpp"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace vramtrack::telemetry {
namespace {

constexpr std::size_t kMostFrames = 128;

bool read_process(std::uint32_t pid, std::uint64_t address, void* into, std::size_t bytes) {
  const iovec local{into, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

struct Unwinder::State {
  std::uint32_t pid = 0;
  Dwfl* dwfl = nullptr;
  bool is_attached = false;
  const telemetry_stack_event* event = nullptr;
  bool is_at_entry = false;
  std::vector<std::uint64_t> frames;
  bool is_module_missing = false;
  std::uint64_t misses = 0;  ///< since the list of files last changed
  std::vector<MappedFile> files;

  ~State() { close(); }
  void close() {
    if (dwfl != nullptr) dwfl_end(dwfl);
    dwfl = nullptr;
    is_attached = false;
  }
  bool open();
  static int find_elf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, char** file, Elf** elf) {
    State* const self = current;
    const auto is_named = [&](const MappedFile& each) { return name != nullptr && each.path == name; };
    const auto known = std::find_if(self->files.begin(), self->files.end(), is_named);
    if (known != self->files.end()) {
      const int descriptor = ::open(reach(self->pid, *known).c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor >= 0) return *file = ::strdup(name), descriptor;
    }
    return dwfl_linux_proc_find_elf(module, user, name, base, file, elf);
  }
  /// Unwinding needs only .eh_frame, which every file has, so separate debug information is not searched for.
  static int find_no_debug(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
  }
  static pid_t next_thread(Dwfl*, void* argument, void** thread_argument) {
    State* const self = static_cast<State*>(argument);
    if (*thread_argument != nullptr) return 0;
    *thread_argument = self;
    return static_cast<pid_t>(self->pid);
  }
  static bool get_thread(Dwfl*, pid_t, void* argument, void** thread_argument) {
    *thread_argument = argument;
    return true;
  }
  static bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    const State* const self = static_cast<const State*>(argument);
    const std::uint64_t begin = self->event->registers[7];
    if (address >= begin && address - begin + sizeof *result <= self->event->stack_bytes) {
      std::memcpy(result, self->event->stack + (address - begin), sizeof *result);
      return true;
    }
    return read_process(self->pid, address, result, sizeof *result);
  }
  static bool set_registers(Dwfl_Thread* thread, void* argument) {
    const State* const self = static_cast<const State*>(argument);
    return dwfl_thread_state_registers(thread, 0, TELEMETRY_REGISTERS,
                                       reinterpret_cast<const Dwarf_Word*>(self->event->registers));
  }
  static int on_frame(Dwfl_Frame* frame, void* argument) {
    State* const self = static_cast<State*>(argument);
    Dwarf_Addr counter = 0;
    if (!dwfl_frame_pc(frame, &counter, nullptr)) return DWARF_CB_ABORT;
    const bool is_first = self->frames.empty() && self->is_at_entry;
    if (is_first)
      self->is_at_entry = false;
    else
      self->frames.push_back(counter);
    if (dwfl_addrmodule(self->dwfl, counter) == nullptr) self->is_module_missing = true;
    return self->frames.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  static thread_local State* current;  ///< the state in which find_elf() searches for files
};
thread_local Unwinder::State* Unwinder::State::current = nullptr;

bool Unwinder::State::open() {
  static const Dwfl_Callbacks kFiles = {
      .find_elf = find_elf, .find_debuginfo = find_no_debug, .section_address = nullptr, .debuginfo_path = nullptr};
  static const Dwfl_Thread_Callbacks kThreads = {.next_thread = next_thread,
                                                 .get_thread = get_thread,
                                                 .memory_read = read_memory,
                                                 .set_initial_registers = set_registers,
                                                 .detach = nullptr,
                                                 .thread_detach = nullptr};
  close();
  files = files_of(pid);
  dwfl = dwfl_begin(&kFiles);
  if (dwfl == nullptr) return false;
  if (dwfl_linux_proc_report(dwfl, static_cast<pid_t>(pid)) != 0 || dwfl_report_end(dwfl, nullptr, nullptr) != 0 ||
      !dwfl_attach_state(dwfl, nullptr, static_cast<pid_t>(pid), &kThreads, this)) {
    close();
    return false;
  }
  is_attached = true;
  return true;
}

Unwinder::Unwinder(std::uint32_t pid) : state_(std::make_unique<State>()) {
  state_->pid = pid;
}
Unwinder::~Unwinder() = default;

const std::vector<std::uint64_t>& Unwinder::unwind(const telemetry_stack_event& event, bool is_at_entry) {
  State& state = *state_;
  State::current = &state;
  state.event = &event;
  for (int attempt = 0; attempt < 2; ++attempt) {
    state.frames.clear();
    state.is_at_entry = is_at_entry;
    state.is_module_missing = false;
    if (!state.is_attached && !state.open()) break;
    dwfl_getthread_frames(state.dwfl, static_cast<pid_t>(state.pid), State::on_frame, &state);
    if (!state.is_module_missing || attempt > 0) break;
    const std::uint64_t misses = ++state.misses;
    if ((misses & (misses - 1)) != 0 || files_of(state.pid) == state.files) break;
    state.misses = 0;
    state.close();  // repeat with the files mapped since then
  }
  if (state.frames.empty() && !is_at_entry) state.frames.push_back(event.registers[16]);
  State::current = nullptr;
  state.event = nullptr;
  return state.frames;
}

const std::vector<MappedFile>& Unwinder::files() const {
  return state_->files;
}

}  // namespace vramtrack::telemetry
