#include "telemetry/kernel_memory.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/errno_words.hpp"
#include "host/small_file.hpp"
#include "source/drm_clients.hpp"

// The BPF object, as the build compiled it (kernel.bpf.c).
extern "C" const unsigned char vramtrack_kernel_begin[];
extern "C" const unsigned char vramtrack_kernel_end[];
asm(".section .rodata\n"
    ".balign 8\n"
    ".hidden vramtrack_kernel_begin\n"
    ".hidden vramtrack_kernel_end\n"
    ".global vramtrack_kernel_begin\n"
    ".global vramtrack_kernel_end\n"
    "vramtrack_kernel_begin:\n"
    ".incbin \"" VRAMTRACK_KERNEL_OBJECT
    "\"\n"
    "vramtrack_kernel_end:\n"
    ".previous\n");

namespace vramtrack::telemetry {
namespace {

/// Empty if it cannot be read, for example because the process has ended. (An iterator over its buffer would throw.)
std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text, '\0');
  return text;
}

/// The number after `key` in the text.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const begin = text.data() + at + key.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

struct Field {
  kernel_u16 at = 0, width = 0;
};

/// "	field:u64 size;	offset:16;	size:8;	signed:0;"
std::optional<Field> field_of(std::string_view format, std::string_view name) {
  if (name.empty()) return Field{};
  while (!format.empty()) {
    const std::string_view line = next_line(format);
    const std::size_t end = line.find(';');
    const std::size_t begin = line.find("field:");
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    const std::string_view declared = line.substr(begin, end - begin);
    if (declared.substr(declared.find_last_of(" *") + 1) != name) continue;
    const auto at = number_after(line, "offset:"), width = number_after(line.substr(end), "size:");
    if (!at || !width || *at > 4096 || (*width != 4 && *width != 8)) return std::nullopt;
    return Field{static_cast<kernel_u16>(*at), static_cast<kernel_u16>(*width)};
  }
  return std::nullopt;
}

std::string tracing_folder(const std::string& named) {
  if (!named.empty()) return named;
  for (const char* const folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
    if (::access((std::string(folder) + "/events").c_str(), R_OK) == 0) return folder;
  return {};
}

/// The device numbers of the NVIDIA driver's device files, in the kernel's encoding.
std::vector<std::uint32_t> nvidia_devices(const std::string& dev) {
  std::vector<std::uint32_t> devices;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dev, error)) {
    if (!entry.path().filename().string().starts_with("nvidia")) continue;
    struct stat found {};
    if (::stat(entry.path().c_str(), &found) != 0 || !S_ISCHR(found.st_mode)) continue;
    devices.push_back(major(found.st_rdev) << 20U | minor(found.st_rdev));
  }
  return devices;
}

/// The bytes of device memory that the process holds according to its open DRM files; nullopt if it has none.
std::optional<std::uint64_t> drm_bytes(const std::string& proc, std::uint32_t pid) {
  std::error_code error;
  std::optional<std::uint64_t> sum;
  std::set<std::pair<std::string, std::uint64_t>> clients;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/{}/fdinfo", proc, pid), error)) {
    const auto client = drm::parse_fdinfo(read_text(entry.path()));
    if (!client || !client->vram_bytes || !clients.emplace(client->pci_address, client->id).second) continue;
    sum = sum.value_or(0) + *client->vram_bytes;
  }
  return sum;
}

Error refused(std::string_view what, int error) {
  return {
      fmt::format("{}: {}. Counting what the kernel's drivers give to programs needs Linux 5.15 or newer with BTF, "
                  "and root or CAP_BPF and CAP_PERFMON",
                  what, errno_words(error))};
}

}  // namespace

const std::vector<KernelEvent>& driver_events() {
  // amdgpu: AMDGPU_GEM_DOMAIN_VRAM. xe: XE_BO_FLAG_VRAM0 and VRAM1. i915 does not report where an object is placed.
  constexpr std::uint32_t kPageBytes = 4096, kAmdVram = 4, kXeVram = 0xc;
  static const std::vector<KernelEvent> kAll = {
      {"amdgpu", "amdgpu_bo_create", false, "", "pages", kPageBytes, "prefer", kAmdVram},
      {"xe", "xe_bo_create", false, "", "size", 1, "flags", kXeVram},
      {"i915", "i915_gem_object_create", false, "obj", "size", 1, "", 0},
      {"i915", "i915_gem_object_destroy", true, "obj", "", 1, "", 0},
  };
  return kAll;
}

std::optional<kernel_event> event_of(const KernelEvent& event, std::string_view format) {
  const auto handle = field_of(format, event.handle), bytes = field_of(format, event.bytes),
             kind = field_of(format, event.kind);
  if (!handle || !bytes || !kind) return std::nullopt;
  return kernel_event{event.is_end ? 1U : 0U, event.unit, handle->at,  handle->width, bytes->at,
                      bytes->width,           kind->at,   kind->width, event.kinds};
}

std::optional<std::uint64_t> id_of(std::string_view format) {
  return number_after(format, "\nID: ");
}

std::int64_t below_the_libraries(const KernelHeld& held, std::int64_t seen_bytes) {
  return std::max<std::int64_t>(0, held.bytes - std::max<std::int64_t>(0, seen_bytes));
}

struct KernelMemory::State {
  Options options;
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  int given = -1;
  std::vector<std::string> groups;
  bool reports_ends = false;  ///< of objects, so that the held bytes are known
  std::string by;
  std::map<std::uint32_t, std::uint64_t> first_drm_bytes;  ///< by pid

  ~State() {
    for (bpf_link* const link : links) bpf_link__destroy(link);
    if (object != nullptr) bpf_object__close(object);
  }
  Status load();
  Status count(const KernelEvent& event, std::uint32_t index, const std::string& format);
  Status count_ioctls(const std::vector<std::uint32_t>& devices);
  [[nodiscard]] int map(const char* name) const { return bpf_object__find_map_fd_by_name(object, name); }
};

Status KernelMemory::State::load() {
  const auto bytes = static_cast<std::size_t>(vramtrack_kernel_end - vramtrack_kernel_begin);
  object = bpf_object__open_mem(vramtrack_kernel_begin, bytes, nullptr);
  if (object == nullptr) return fail(refused("cannot read the BPF programs that count below the libraries", errno));
  if (const int error = bpf_object__load(object); error != 0)
    return fail(refused("cannot load the BPF programs that count below the libraries", -error));
  given = map("given");
  return {};
}

Status KernelMemory::State::count(const KernelEvent& event, std::uint32_t index, const std::string& format) {
  const auto where = event_of(event, format);
  const auto id = id_of(format);
  if (!where || !id) return {};  // an unsupported version of the driver
  if (bpf_map_update_elem(map("events"), &index, &*where, BPF_ANY) != 0)
    return fail(refused("cannot name a tracepoint", errno));
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = *id;
  const auto opened = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
  const std::string name = fmt::format("cannot count the tracepoint {}:{}", event.group, event.name);
  if (opened < 0) return fail(refused(name, errno));
  LIBBPF_OPTS(bpf_perf_event_opts, with);
  with.bpf_cookie = index;
  const bpf_program* const program = bpf_object__find_program_by_name(object, "object_event");
  bpf_link* const link = bpf_program__attach_perf_event_opts(program, opened, &with);
  if (link == nullptr) {
    const int error = errno;
    ::close(opened);
    return fail(refused(name, error));
  }
  links.push_back(link);
  if (std::find(groups.begin(), groups.end(), event.group) == groups.end()) groups.push_back(event.group);
  if (event.is_end) reports_ends = true, by = event.group;
  return {};
}

Status KernelMemory::State::count_ioctls(const std::vector<std::uint32_t>& devices) {
  for (const std::uint32_t device : devices) {
    const std::uint8_t yes = 1;
    if (bpf_map_update_elem(map("devices"), &device, &yes, BPF_ANY) != 0)
      return fail(refused("cannot name NVIDIA's device files", errno));
  }
  bpf_link* const link = bpf_program__attach(bpf_object__find_program_by_name(object, "ioctl_returned"));
  if (link == nullptr) return fail(refused("cannot count the ioctls of NVIDIA's driver", errno));
  links.push_back(link);
  reports_ends = true;
  by = "NVIDIA's ioctls";
  return {};
}

KernelMemory::KernelMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelMemory::KernelMemory(KernelMemory&&) noexcept = default;
KernelMemory& KernelMemory::operator=(KernelMemory&&) noexcept = default;
KernelMemory::~KernelMemory() = default;

Result<KernelMemory> KernelMemory::open(Options options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  const Options& wanted = state->options;
  std::vector<std::pair<const KernelEvent*, std::string>> present;
  if (const std::string tracing = tracing_folder(wanted.tracing); !tracing.empty())
    for (const KernelEvent& event : wanted.events)
      if (std::string text = read_text(fmt::format("{}/events/{}/{}/format", tracing, event.group, event.name));
          !text.empty() && present.size() < KERNEL_MOST_EVENTS)
        present.emplace_back(&event, std::move(text));
  std::vector<std::uint32_t> devices;
  if (wanted.nvidia_ioctls && (devices = nvidia_devices(wanted.dev)).empty())
    return fail(
        fmt::format("the NVIDIA driver has no device file here (such as {}/nvidiactl), so its ioctls cannot be "
                    "counted",
                    wanted.dev));
  if (present.empty() && devices.empty()) return KernelMemory(std::move(state));
  if (Status loaded = state->load(); !loaded) return fail(loaded.error());
  std::uint32_t index = 0;
  for (const auto& [event, format] : present)
    if (Status done = state->count(*event, index++, format); !done) return fail(done.error());
  if (!devices.empty())
    if (Status done = state->count_ioctls(devices); !done) return fail(done.error());
  return KernelMemory(std::move(state));
}

kernel_given KernelMemory::given(std::uint32_t pid) const {
  kernel_given given{};
  if (state_->given >= 0) bpf_map_lookup_elem(state_->given, &pid, &given);
  return given;
}

std::optional<KernelHeld> KernelMemory::held(std::uint32_t pid) {
  // DRM reports everything that the process holds, regardless of where it came from.
  if (const auto bytes = drm_bytes(state_->options.proc, pid)) {
    const std::uint64_t first = state_->first_drm_bytes.try_emplace(pid, *bytes).first->second;
    return KernelHeld{static_cast<std::int64_t>(*bytes) - static_cast<std::int64_t>(first), "DRM fdinfo"};
  }
  if (!state_->reports_ends) return std::nullopt;
  return KernelHeld{given(pid).held_bytes, state_->by};
}

const std::vector<std::string>& KernelMemory::groups() const {
  return state_->groups;
}

}  // namespace vramtrack::telemetry
