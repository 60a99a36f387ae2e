#include "telemetry/tracer.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "core/errno_words.hpp"
#include "probe/wire.hpp"

// The BPF object, as the build compiled it (tracer.bpf.c).
extern "C" const unsigned char vramtrack_tracer_begin[];
extern "C" const unsigned char vramtrack_tracer_end[];
asm(".section .rodata\n"
    ".balign 8\n"
    ".hidden vramtrack_tracer_begin\n"
    ".hidden vramtrack_tracer_end\n"
    ".global vramtrack_tracer_begin\n"
    ".global vramtrack_tracer_end\n"
    "vramtrack_tracer_begin:\n"
    ".incbin \"" VRAMTRACK_TRACER_OBJECT
    "\"\n"
    "vramtrack_tracer_end:\n"
    ".previous\n");

namespace vramtrack::telemetry {
namespace {

struct Traced {
  std::string_view library;
  const char* name;
  probe::Call call;
  telemetry_act act;
};
constexpr Traced kTraced[] = {
#define VRAMTRACK_TRACED(library, name, call, act) {library, name, probe::Call::call, act},
#include "telemetry/functions.def"
#undef VRAMTRACK_TRACED
};
static_assert(std::size(kTraced) <= TELEMETRY_MOST_FUNCTIONS);

Error kernel_error(std::string_view what, int error) {
  if (error == EPERM || error == EACCES)
    return {fmt::format(
        "{}: not permitted. Run it as root, or grant the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; "
        "a container needs hostPID besides",
        what)};
  return {
      fmt::format("{}: {}. Tracing running programs needs Linux 5.15 or newer with BPF, uprobes and BTF "
                  "(/sys/kernel/btf/vmlinux)",
                  what, errno_words(error))};
}

int print_nothing(enum libbpf_print_level, const char*, va_list) {
  return 0;
}

}  // namespace

bool is_traced_library(std::string_view name) {
  for (const Traced& traced : kTraced)
    if (name.starts_with(traced.library)) return true;
  return false;
}

struct Tracer::State {
  Take take;
  bpf_object* object = nullptr;
  ring_buffer* ring = nullptr;
  std::vector<bpf_link*> links;
  bpf_program *enter = nullptr, *leave = nullptr;
  int targets = -1, lost = -1;

  explicit State(Take taker) : take(std::move(taker)) {}
  ~State() {
    for (bpf_link* const link : links) bpf_link__destroy(link);
    if (ring != nullptr) ring_buffer__free(ring);
    if (object != nullptr) bpf_object__close(object);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static int on_event(void* self, void* data, std::size_t bytes) {
    if (bytes >= sizeof(telemetry_event))
      static_cast<State*>(self)->take(*static_cast<const telemetry_event*>(data), bytes);
    return 0;
  }
};

Tracer::Tracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

Result<Tracer> Tracer::open(Take take) {
  libbpf_set_print(print_nothing);
  auto state = std::make_unique<State>(std::move(take));
  const auto bytes = static_cast<std::size_t>(vramtrack_tracer_end - vramtrack_tracer_begin);
  state->object = bpf_object__open_mem(vramtrack_tracer_begin, bytes, nullptr);
  if (state->object == nullptr) return fail(kernel_error("cannot read the tracer's BPF programs", errno));
  if (const int error = bpf_object__load(state->object); error != 0)
    return fail(kernel_error("cannot load the tracer into the kernel", -error));
  const auto program = [&](const char* name) { return bpf_object__find_program_by_name(state->object, name); };
  const auto map = [&](const char* name) { return bpf_object__find_map_fd_by_name(state->object, name); };
  state->enter = program("enter");
  state->leave = program("leave");
  state->targets = map("targets");
  state->lost = map("lost");
  const int functions = map("functions");
  for (std::uint32_t i = 0; i < std::size(kTraced); ++i) {
    const telemetry_function function = {static_cast<telemetry_u8>(kTraced[i].act),
                                         static_cast<telemetry_u8>(kTraced[i].call), 0};
    if (bpf_map_update_elem(functions, &i, &function, BPF_ANY) != 0)
      return fail(kernel_error("cannot name the functions to the tracer", errno));
  }
  for (const char* const name : {"forked", "executed", "ended"}) {
    bpf_link* const link = bpf_program__attach(program(name));
    if (link == nullptr) return fail(kernel_error("cannot follow processes", errno));
    state->links.push_back(link);
  }
  state->ring = ring_buffer__new(map("events"), State::on_event, state.get(), nullptr);
  if (state->ring == nullptr) return fail(kernel_error("cannot map the ring of events", errno));
  return Tracer(std::move(state));
}

Result<std::size_t> Tracer::attach(std::string_view name, const std::string& path) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < std::size(kTraced); ++i) {
    if (!name.starts_with(kTraced[i].library)) continue;
    const bool returns = kTraced[i].act <= TELEMETRY_REGISTER;
    for (const bool is_return : {false, true}) {
      if (is_return && !returns) continue;
      LIBBPF_OPTS(bpf_uprobe_opts, options);
      options.func_name = kTraced[i].name;
      options.bpf_cookie = i;
      options.retprobe = is_return;
      bpf_link* const link =
          bpf_program__attach_uprobe_opts(is_return ? state_->leave : state_->enter, -1, path.c_str(), 0, &options);
      if (link == nullptr) {
        if (errno == ENOENT) break;  // this version of the library does not have it
        return fail(kernel_error(fmt::format("cannot probe {} of {}", kTraced[i].name, path), errno));
      }
      state_->links.push_back(link);
      if (!is_return) ++count;
    }
  }
  return count;
}

Status Tracer::add_target(std::uint32_t pid, const telemetry_python& python) {
  if (bpf_map_update_elem(state_->targets, &pid, &python, BPF_ANY) != 0)
    return fail(fmt::format("cannot trace process {}: {}", pid, errno_words(errno)));
  return {};
}

void Tracer::remove_target(std::uint32_t pid) {
  bpf_map_delete_elem(state_->targets, &pid);
}

Status Tracer::poll(int timeout_ms) {
  const int result = ring_buffer__poll(state_->ring, timeout_ms);
  if (result < 0 && result != -EINTR) return fail(kernel_error("cannot read the tracer's events", -result));
  return {};
}

void Tracer::wait(int timeout_ms) const {
  pollfd ring{ring_buffer__epoll_fd(state_->ring), POLLIN, 0};
  ::poll(&ring, 1, timeout_ms);
}

std::uint64_t Tracer::lost() const {
  const int cpus = libbpf_num_possible_cpus();
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(std::max(cpus, 1)));
  const std::uint32_t key = 0;
  if (bpf_map_lookup_elem(state_->lost, &key, counts.data()) != 0) return 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

}  // namespace vramtrack::telemetry
