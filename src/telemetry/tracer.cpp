#include "telemetry/tracer.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <vector>

#include "core/errno_words.hpp"
#include "probe/wire.hpp"
#include "telemetry/function_offsets.hpp"
#include "telemetry/rights.hpp"

// The BPF object, as compiled by the build (tracer.bpf.c).
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

/// telemetry_function, in a form that is easy to write by hand.
struct Where {
  telemetry_place address = 0, size = 0, rows = 0, shape = 0, format = 0;
  telemetry_shape kind_of_shape = TELEMETRY_NO_SHAPE;
  telemetry_place device = 0, of = 0, flags = 0, kind = 0;
  std::uint32_t mask = 0;
  probe::Call other_call = probe::Call::none;
};
struct Traced {
  std::string_view library;
  const char* name;
  probe::Call call;
  telemetry_act act;
  Where where;
};
constexpr telemetry_place NOWHERE = 0;
constexpr telemetry_place IN(int argument) {
  return static_cast<telemetry_place>(argument);
}
constexpr telemetry_place AT(int argument, int offset) {
  return static_cast<telemetry_place>(argument | TELEMETRY_AT | offset << 8);
}
constexpr telemetry_place AT_32(int argument, int offset) {
  return static_cast<telemetry_place>(argument | TELEMETRY_AT_32 | offset << 8);
}
constexpr Traced kTraced[] = {
#define VRAMTRACK_TRACED(library, name, call, act, ...) {library, name, probe::Call::call, act, {__VA_ARGS__}},
#include "telemetry/functions.def"
#undef VRAMTRACK_TRACED
};
static_assert(std::size(kTraced) <= TELEMETRY_MOST_FUNCTIONS);

telemetry_function function_of(const Traced& traced) {
  const Where& where = traced.where;
  telemetry_function function{};
  function.act = static_cast<telemetry_u8>(traced.act);
  function.call = static_cast<telemetry_u8>(traced.call);
  function.other_call = static_cast<telemetry_u8>(where.other_call);
  function.kind_of_shape = static_cast<telemetry_u8>(where.kind_of_shape);
  function.address = where.address;
  function.size = where.size;
  function.rows = where.rows;
  function.shape = where.shape;
  function.format = where.format;
  function.device = where.device;
  function.of = where.of;
  function.flags = where.flags;
  function.kind = where.kind;
  function.mask = where.mask;
  return function;
}

/// Whether a file with this name is the library ("libOpenCL.so"): with any version, and with the digest that tools that
/// repair Python wheels add to the name of a bundled library ("libOpenCL-3f4ac1b2.so.1.0.0").
bool is_file_of(std::string_view name, std::string_view library) {
  constexpr std::string_view kSuffix = ".so";
  library.remove_suffix(kSuffix.size());
  if (!name.starts_with(library)) return false;
  name.remove_prefix(library.size());
  if (name.starts_with('-')) name.remove_prefix(std::min(name.find_first_not_of("0123456789abcdef", 1), name.size()));
  return name.starts_with(kSuffix);
}

/// Whether the result is known only when the function returns.
bool is_known_at_return(telemetry_act act) {
  switch (act) {
    case TELEMETRY_ALLOCATE:
    case TELEMETRY_RETURN:
    case TELEMETRY_REGISTER:
    case TELEMETRY_FREE:
    case TELEMETRY_NEW_CONTEXT:
    case TELEMETRY_HEAPS:
    case TELEMETRY_NEW_DEVICE:
    case TELEMETRY_NEW_PART:
    case TELEMETRY_LOOK_UP:
    case TELEMETRY_MAP:
    case TELEMETRY_UNMAP:
    case TELEMETRY_RETAIN_MAPPED:
      return true;
    default:
      return false;
  }
}

/// Adds the known reasons, such as missing rights, to the message.
Error kernel_error(std::string_view what, int error) {
  const std::vector<std::string> known = hindrances(TracingRights::of_this_process());
  const std::string why = known.empty() ? "" : fmt::format(": {}", fmt::join(known, "; "));
  if (error == EPERM || error == EACCES)
    return {fmt::format(
        "{}: not permitted{}. Run it as root, or grant the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; "
        "a container needs hostPID besides",
        what, why)};
  return {
      fmt::format("{}: {}{}. Tracing running programs needs Linux 5.15 or newer with BPF, uprobes and BTF "
                  "(/sys/kernel/btf/vmlinux)",
                  what, errno_words(error), why)};
}

/// BPF_TRACE_UPROBE_MULTI of linux/bpf.h, which older headers lack, and the arguments of bpf(BPF_LINK_CREATE) for it.
constexpr auto kUprobeMulti = static_cast<bpf_attach_type>(48);
struct MultiLink {
  std::uint32_t program, target = 0, attach_type = kUprobeMulti, link_flags = 0;
  std::uint64_t path, offsets, reference_counts = 0, cookies;
  std::uint32_t count, flags, pid = 0, reserved = 0;
};

/// Attaches a program to all places with one link; -1 on failure, with the reason in errno.
int link_all(int program, const std::string& path, const std::vector<std::uint64_t>& offsets,
             const std::vector<std::uint64_t>& cookies, bool is_return) {
  const auto address = [](const auto* data) { return reinterpret_cast<std::uint64_t>(data); };
  const MultiLink link{.program = static_cast<std::uint32_t>(program),
                       .path = address(path.c_str()),
                       .offsets = address(offsets.data()),
                       .cookies = address(cookies.data()),
                       .count = static_cast<std::uint32_t>(offsets.size()),
                       .flags = is_return ? 1U : 0};
  constexpr long kLinkCreate = BPF_LINK_CREATE;
  return static_cast<int>(::syscall(SYS_bpf, kLinkCreate, &link, sizeof link));
}

/// A kernel that has such links checks the path first, and rejects a folder.
bool can_link_all(const bpf_object* object) {
  const int program = bpf_program__fd(bpf_object__find_program_by_name(object, "enter"));
  const int link = link_all(program, "/", {0}, {0}, false);
  if (link >= 0) ::close(link);
  return link < 0 && errno == EBADF;
}

int print_nothing(enum libbpf_print_level, const char*, va_list) {
  return 0;
}

}  // namespace

bool is_traced_library(std::string_view name) {
  for (const Traced& traced : kTraced)
    if (traced.act != TELEMETRY_LOADED && is_file_of(name, traced.library)) return true;
  return false;
}

bool is_loader(std::string_view name) {
  for (const Traced& traced : kTraced)
    if (traced.act == TELEMETRY_LOADED && is_file_of(name, traced.library)) return true;
  return false;
}

struct Tracer::State {
  Take take;
  bpf_object* object = nullptr;
  ring_buffer* ring = nullptr;
  bool is_multi = false;
  std::vector<bpf_link*> links;
  std::vector<int> multi_links;
  bpf_program *enter = nullptr, *leave = nullptr;
  int targets = -1, left_out = -1, lost = -1;

  explicit State(Take taker) : take(std::move(taker)) {}
  ~State() {
    for (const int link : multi_links) ::close(link);
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

Result<Tracer> Tracer::open(Take take, std::uint64_t blocks_per_s) {
  libbpf_set_print(print_nothing);
  // It would load, but report pids that differ from those in this namespace.
  if (!TracingRights::of_this_process().is_first_pid_namespace)
    return fail(kernel_error("cannot trace programs from within this container", EPERM));
  auto state = std::make_unique<State>(std::move(take));
  const auto bytes = static_cast<std::size_t>(vramtrack_tracer_end - vramtrack_tracer_begin);
  // One link for all functions of a library, from Linux 6.6 on: it is faster and does not need CAP_SYS_ADMIN.
  int error = 0;
  for (const bool is_multi : {true, false}) {
    if (state->object != nullptr) bpf_object__close(state->object);
    state->object = bpf_object__open_mem(vramtrack_tracer_begin, bytes, nullptr);
    if (state->object == nullptr) return fail(kernel_error("cannot read the tracer's BPF programs", errno));
    for (const char* const name : {"enter", "leave"})
      if (is_multi)
        bpf_program__set_expected_attach_type(bpf_object__find_program_by_name(state->object, name), kUprobeMulti);
    state->is_multi = is_multi;
    error = bpf_object__load(state->object);
    if (error == 0 && is_multi && !can_link_all(state->object)) continue;
    break;
  }
  if (error != 0) return fail(kernel_error("cannot load the tracer into the kernel", -error));
  const auto program = [&](const char* name) { return bpf_object__find_program_by_name(state->object, name); };
  const auto map = [&](const char* name) { return bpf_object__find_map_fd_by_name(state->object, name); };
  state->enter = program("enter");
  state->leave = program("leave");
  state->targets = map("targets");
  state->left_out = map("left_out");
  state->lost = map("lost");
  const int functions = map("functions"), names = map("names");
  for (std::uint32_t i = 0; i < std::size(kTraced); ++i) {
    const telemetry_function function = function_of(kTraced[i]);
    char name[TELEMETRY_NAME_BYTES] = {};
    std::strncpy(name, kTraced[i].name, sizeof name - 1);
    if (bpf_map_update_elem(functions, &i, &function, BPF_ANY) != 0 ||
        bpf_map_update_elem(names, name, &i, BPF_ANY) != 0)
      return fail(kernel_error("cannot name the functions to the tracer", errno));
  }
  if (const std::uint32_t only = 0; bpf_map_update_elem(map("budget"), &only, &blocks_per_s, BPF_ANY) != 0)
    return fail(kernel_error("cannot set the tracer's budget", errno));
  for (const char* const name : {"forked", "executed", "ended"}) {
    bpf_link* const link = bpf_program__attach(program(name));
    if (link == nullptr) return fail(kernel_error("cannot follow processes", errno));
    state->links.push_back(link);
  }
  state->ring = ring_buffer__new(map("events"), State::on_event, state.get(), nullptr);
  if (state->ring == nullptr || ring_buffer__add(state->ring, map("news"), State::on_event, state.get()) != 0)
    return fail(kernel_error("cannot map the ring of events", errno));
  return Tracer(std::move(state));
}

/// Probes functions at their offsets in the file, returns first: a call whose start is not seen is left out.
Status Tracer::probe(const std::string& path, const std::vector<Place>& places) {
  for (const bool is_return : {true, false}) {
    std::vector<std::uint64_t> offsets, cookies;
    for (const Place& place : places) {
      if (is_return && !is_known_at_return(kTraced[place.function].act)) continue;
      offsets.push_back(place.offset);
      cookies.push_back(place.function);
    }
    if (offsets.empty()) continue;
    const bpf_program* const program = is_return ? state_->leave : state_->enter;
    if (state_->is_multi) {
      const int link = link_all(bpf_program__fd(program), path, offsets, cookies, is_return);
      if (link < 0) return fail(kernel_error("cannot probe " + path, errno));
      state_->multi_links.push_back(link);
      continue;
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      LIBBPF_OPTS(bpf_uprobe_opts, options);
      options.bpf_cookie = cookies[i];
      options.retprobe = is_return;
      bpf_link* const link = bpf_program__attach_uprobe_opts(program, -1, path.c_str(), offsets[i], &options);
      if (link == nullptr)
        return fail(kernel_error(fmt::format("cannot probe {} of {}", kTraced[cookies[i]].name, path), errno));
      state_->links.push_back(link);
    }
  }
  return {};
}

Result<std::size_t> Tracer::attach(std::string_view name, const std::string& path) {
  std::set<std::string_view> wanted;
  for (const Traced& traced : kTraced)
    if (is_file_of(name, traced.library)) wanted.insert(traced.name);
  const auto offsets = function_offsets(path, wanted);
  if (!offsets) return fail(offsets.error());
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < std::size(kTraced); ++i)
    if (const auto at = offsets->find(kTraced[i].name); is_file_of(name, kTraced[i].library) && at != offsets->end())
      places.push_back({i, at->second});
  if (const Status done = probe(path, places); !done) return fail(done.error());
  return places.size();
}

Status Tracer::attach_found(std::uint64_t function, const std::string& path, std::uint64_t offset) {
  if (function >= std::size(kTraced) || offset == 0) return {};
  return probe(path, {{static_cast<std::uint32_t>(function), offset}});
}

Status Tracer::add_target(std::uint32_t pid, const telemetry_python& python) {
  if (bpf_map_update_elem(state_->targets, &pid, &python, BPF_ANY) != 0)
    return fail(fmt::format("cannot trace process {}: {}", pid, errno_words(errno)));
  return {};
}

void Tracer::leave_out(std::uint32_t pid) {
  const std::uint8_t yes = 1;
  bpf_map_update_elem(state_->left_out, &pid, &yes, BPF_ANY);
  bpf_map_delete_elem(state_->targets, &pid);
}

Status Tracer::poll(int timeout_ms) {
  int result = ring_buffer__poll(state_->ring, timeout_ms);
  if (result >= 0) result = ring_buffer__consume(state_->ring);  // including events that did not wake the reader
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

std::string lost_words(std::uint64_t events) {
  return fmt::format(
      "{} allocations or frees came too fast, or too many in one call, and were lost: figures are too small or too "
      "large "
      "by them",
      events);
}

}  // namespace vramtrack::telemetry
