#include "telemetry/unwinder.hpp"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "core/read_all.hpp"

namespace vramtrack::telemetry {
namespace {

constexpr std::size_t kMostFrames = 128;

bool read_process(std::uint32_t pid, std::uint64_t address, void* into, std::size_t bytes) {
  const iovec local{into, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

std::uint64_t hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// The next word of `line`, which is taken off it.
std::string_view word_of(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

}  // namespace

std::vector<MappedFile> executable_files(std::string_view maps) {
  std::vector<MappedFile> files;
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    // 7f10a000-7f10b000 r-xp 00001000 fd:01 1234   /usr/lib/libfoo.so
    const std::string_view range = word_of(line), rights = word_of(line), offset = word_of(line);
    word_of(line);  // device
    word_of(line);  // inode
    const std::size_t path = line.find('/');
    if (rights.size() < 3 || rights[2] != 'x' || path == std::string_view::npos) continue;
    const std::uint64_t begin = hexadecimal(range),
                        end = hexadecimal(range.substr(std::min(range.find('-') + 1, range.size())));
    if (end > begin) files.push_back({std::string(line.substr(path)), begin, end - begin, hexadecimal(offset)});
  }
  return files;
}

struct Unwinder::State {
  std::uint32_t pid = 0;
  std::string root;
  Dwfl* dwfl = nullptr;
  bool is_attached = false;
  const telemetry_stack_event* event = nullptr;
  bool is_at_entry = false;
  std::vector<std::uint64_t> frames;
  bool is_module_missing = false;
  std::uint64_t misses = 0;  ///< since the files were last other ones
  std::vector<MappedFile> files;

  ~State() { close(); }
  void close() {
    if (dwfl != nullptr) dwfl_end(dwfl);
    dwfl = nullptr;
    is_attached = false;
  }
  bool open();
  [[nodiscard]] std::vector<MappedFile> read_files() const {
    std::ifstream in(fmt::format("/proc/{}/maps", pid));
    const auto text = in ? read_all(in) : std::nullopt;
    return text ? executable_files(*text) : std::vector<MappedFile>{};
  }

  static int find_elf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, char** file, Elf** elf) {
    State* const self = current;
    if (name != nullptr && name[0] == '/' && self != nullptr) {
      const int descriptor = ::open((self->root + name).c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor >= 0) return *file = ::strdup(name), descriptor;
    }
    return dwfl_linux_proc_find_elf(module, user, name, base, file, elf);
  }
  /// Unwinding needs .eh_frame alone, which every file has: no search for separate debug information.
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

  static thread_local State* current;  ///< whose files find_elf() looks for
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
  files = read_files();
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
  state_->root = fmt::format("/proc/{}/root", pid);
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
    if ((misses & (misses - 1)) != 0 || state.read_files() == state.files) break;
    state.misses = 0;
    state.close();  // once more, with what was mapped since
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
