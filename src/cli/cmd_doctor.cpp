// doctor: what was found on this machine, what is missing, and what to do about it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/doctor_health.hpp"
#include "cli/shared_arguments.hpp"
#include "cli/telemetry_source.hpp"
#include "core/format.hpp"
#include "host/privilege.hpp"
#include "host/small_file.hpp"
#include "live/clock.hpp"
#include "report/tone.hpp"
#include "report/words.hpp"
#include "source/source.hpp"
#include "store/store.hpp"
#ifdef VRAMTRACK_HAS_TELEMETRY
#include "telemetry/rights.hpp"
#include "telemetry/tracer.hpp"
#endif

namespace vramtrack::cli {
namespace {

namespace fs = std::filesystem;

/// The status that a line of the report gives its subject.
enum class Health { ok, note, missing };

/// Collects the lines; those with `missing` determine the exit code.
class Checkup {
 public:
  explicit Checkup(const ReportStyle& style) : style_(style) {}

  void add(Health health, std::string_view subject, std::string_view text, std::string_view next = {}) {
    constexpr std::string_view kWords[] = {"ok", "note", "missing"};
    constexpr Tone kTones[] = {Tone::ok, Tone::notice, Tone::warning};
    const auto i = static_cast<std::size_t>(health);
    out_ += fmt::format("{}  {} {}\n", toned(fit(kWords[i], 7), kTones[i], style_), fit(subject, 14), printable(text));
    if (!next.empty()) out_ += fmt::format("{:25}do: {}\n", "", next);
    if (health == Health::missing) ++missing_;
  }
  void raw(std::string_view text) { out_ += text; }

  [[nodiscard]] const std::string& text() const { return out_; }
  [[nodiscard]] int missing() const { return missing_; }

 private:
  const ReportStyle style_;
  std::string out_;
  int missing_ = 0;
};

void check_config(Checkup& checkup, const ConfigRequest& request, const Result<LayeredConfig>& layers) {
  const std::string path = config_path(request);
  std::error_code ec;
  if (!layers)
    checkup.add(Health::missing, "configuration", layers.error().message,
                "correct it; until then, every command fails with this error");
  else if (fs::exists(path, ec))
    checkup.add(Health::ok, "configuration", path);
  else
    checkup.add(Health::ok, "configuration",
                path + " does not exist: the defaults apply ('vramtrack config init' writes one)");
}

/// Returns whether this machine has NVIDIA's driver.
bool check_driver(Checkup& checkup, const SourcesConfig& config) {
  const std::string module = first_line(config.sys_root + "/module/nvidia/version");
  const std::string line = first_line(config.proc_root + "/driver/nvidia/version");
  if (!module.empty() || !line.empty())
    checkup.add(Health::ok, "nvidia driver", module.empty() ? line : "version " + module);
  std::error_code ec;
  for (const char* device : {"/dev/nvidiactl", "/dev/nvidia0"})
    if (fs::exists(device, ec) && ::access(device, R_OK | W_OK) != 0)
      checkup.add(Health::missing, device, "exists but cannot be opened",
                  "join its group (ls -l shows it), or pass the device to the container");
  return !module.empty() || !line.empty();
}

/// Opens every source and polls it once: devices and processes go into `catalog`. Returns how many sources work.
int check_sources(Checkup& checkup, const SourcesConfig& config, bool is_nvidia, Catalog& catalog, Batch& batch) {
  int working = 0;
  std::vector<std::pair<std::string_view, std::string>> absent;
  for (const SourceInfo* info : live_sources()) {
    const bool wanted = config.enabled.empty() ||
                        std::find(config.enabled.begin(), config.enabled.end(), info->name) != config.enabled.end();
    if (!wanted) {
      checkup.add(Health::note, info->name, "disabled by sources.enabled");
      continue;
    }
    auto source = info->make(config, catalog);
    if (!source) {
      absent.emplace_back(info->name, source.error().message);
      continue;
    }
    ++working;
    const auto polled = (*source)->poll(time_of_day(), batch);
    if (polled)
      checkup.add(Health::ok, info->name, info->help);
    else
      checkup.add(Health::note, info->name, polled.error().message);
    for (const std::string& warning : (*source)->notes().warnings) checkup.add(Health::note, info->name, warning);
  }
  // A machine has one kind of GPU, so it is normal that the other source finds none.
  for (const auto& [name, why] : absent)
    checkup.add(working > 0 || (is_nvidia && name != "nvml") ? Health::note : Health::missing, name, why);
  return working;
}

void list_devices(Checkup& checkup, const Catalog& catalog, const Batch& batch) {
  for (const DeviceInfo& device : catalog.devices()) {
    SeriesView s;
    s.key.device_id = device.id;
    s.device = device;
    std::string text =
        device.capacity_bytes ? format_bytes(static_cast<double>(*device.capacity_bytes)) : "capacity unknown";
    std::size_t processes = 0;
    for (const Sample& sample : batch.samples) {
      const SeriesKey& key = catalog.key(sample.series);
      if (key.device_id != device.id) continue;
      if (key.metric == Metric::device_used)
        text += fmt::format(", {} used", format_bytes(static_cast<double>(sample.bytes)));
      if (key.metric == Metric::process_used) ++processes;
    }
    checkup.add(
        Health::ok, "device",
        fmt::format("{}: {}, {} visible process{}", device_words(s), text, processes, processes == 1 ? "" : "es"));
  }
}

/// Whether this is a container with a process namespace of its own, which one started with --pid=host does not have.
bool is_contained(const SourcesConfig& config) {
  std::error_code ec;
  const std::string space = fs::read_symlink(config.proc_root + "/self/ns/pid", ec).string();
  constexpr std::string_view kFirst = "pid:[4026531836]";  // the kernel's constant PROC_PID_INIT_INO
  if (!ec) return space != kFirst;
  return fs::exists("/.dockerenv", ec) || fs::exists("/run/.containerenv", ec);
}

void check_visibility(Checkup& checkup, const SourcesConfig& config) {
  std::error_code ec;
  if (!fs::exists(config.proc_root + "/self/stat", ec)) {
    checkup.add(Health::missing, "processes", config.proc_root + " is not a procfs",
                "mount it, or set sources.proc-root");
    return;
  }
  std::ifstream mounts(config.proc_root + "/self/mounts");
  bool hidden = false;
  for (std::string line; std::getline(mounts, line);)
    hidden = hidden || (line.find(" proc ") != std::string::npos &&
                        (line.find("hidepid=1") != std::string::npos || line.find("hidepid=2") != std::string::npos ||
                         line.find("hidepid=invisible") != std::string::npos ||
                         line.find("hidepid=noaccess") != std::string::npos));
  const bool privileged = may_read_others();
  const bool contained = is_contained(config);
  const std::string_view outside = contained ? "; those outside this container are not visible" : "";
  if (hidden && !privileged)
    checkup.add(Health::note, "processes", fmt::format("procfs hides other users' processes (hidepid){}", outside),
                "run as root, or as a member of the group in its gid= option");
  else if (!privileged)
    checkup.add(Health::note, "processes",
                fmt::format("other users' processes are shown with user and command; their framework is guessed from "
                            "the command{}",
                            outside),
                "run as root (or with CAP_SYS_PTRACE) to recognise it by the libraries they have loaded");
  else if (contained)
    checkup.add(Health::note, "processes", "all processes of this container are visible; those outside it are not",
                "start it with --pid=host to see them");
  else
    checkup.add(Health::ok, "processes", "all processes of this system are visible");
}

/// Who holds the flock on `path`, from /proc/locks; trying to take the lock would get in a writer's way.
std::string holder_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  const std::string file = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, mode, pid, where;
    words >> number >> kind >> advisory >> mode >> pid >> where;
    if (where == file && mode == "WRITE") return pid;
  }
  return {};
}

void check_store(Checkup& checkup, const Config& config) {
  const std::string path = store_path(config.store);
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    fs::path folder = fs::path(path).parent_path();
    while (!folder.empty() && !fs::exists(folder, ec)) folder = folder.parent_path();
    if (::access(folder.c_str(), W_OK) == 0)
      checkup.add(Health::ok, "store", path + " does not exist yet: the first watch creates it");
    else
      checkup.add(Health::missing, "store",
                  fmt::format("{} cannot be created: {} is not writable", path, folder.string()),
                  "set store.path to a folder that you can write, or watch with --no-record");
    return;
  }
  auto reader = StoreReader::open(path);
  if (!reader) {
    checkup.add(Health::missing, "store", reader.error().message);
    return;
  }
  const double size = static_cast<double>(fs::file_size(path, ec));
  std::string text = fmt::format("{}, {}", path, format_bytes(size));
  if (const auto extent = (*reader)->raw_extent(); extent && *extent)
    text += fmt::format(", samples from {} to {}", format_moment((*extent)->first, false),
                        format_moment((*extent)->second, false));
  else
    text += ", no sample yet";
  const std::string pid = holder_of(path + ".lock");
  text += pid.empty() ? ", nothing is recording now" : fmt::format(", pid {} is recording", pid);
  checkup.add(Health::ok, "store", text);
  if (::access(path.c_str(), W_OK) != 0)
    checkup.add(Health::missing, "store", path + " is not writable", "set store.path, or watch with --no-record");
}

/// No agent is required: if none is running, nothing is printed. Returns whether one answers.
bool check_agent(Checkup& checkup, const AgentConfig& config) {
  const auto socket = agent::find_agent(config);
  if (!socket) return false;
  const auto agent = agent::AgentClient(*socket).version();
  if (!agent)
    checkup.add(Health::note, "agent", agent.error().message, "restart it: systemctl restart vramtrack-agent");
  else
    checkup.add(Health::ok, "agent",
                fmt::format("{} answers on {} (pid {}, since {}{}): 'vramtrack top' shows what it sees", agent->version,
                            *socket, agent->pid, format_moment(agent->started, false),
                            agent->simulated.empty() ? "" : ", a simulation: " + agent->simulated));
  return agent.has_value();
}

/// Whether `vramtrack trace live` works for this user: loads its programs into the kernel and removes them at once.
void check_tracing(Checkup& checkup, bool is_wanted) {
#ifdef VRAMTRACK_HAS_TELEMETRY
  const auto tracer = telemetry::Tracer::open([](const telemetry_event&, std::size_t) {});
  const std::vector<std::string> limits = telemetry::limitations(telemetry::TracingRights::of_this_process());
  if (tracer && !limits.empty())
    checkup.add(Health::note, "tracing",
                fmt::format("programs that are already running can be traced, but {}", fmt::join(limits, "; ")),
                "run it as root, or grant the capability");
  else if (tracer)
    checkup.add(Health::ok, "tracing",
                is_wanted
                    ? "programs that are already running can be traced; watch and agent trace them (telemetry.enabled)"
                    : "programs that are already running can be traced ('vramtrack trace live', telemetry.enabled)");
  else
    checkup.add(is_wanted ? Health::missing : Health::note, "tracing", tracer.error().message);
#else
  checkup.add(is_wanted ? Health::missing : Health::note, "tracing",
              fmt::format("this build cannot trace programs that are already running: {}", why_no_telemetry()),
              is_wanted ? "set telemetry.enabled to false, or build it from source on this distribution" : "");
#endif
}

int doctor(const ConfigRequest& request, Console& console) {
  const LocalTimes local = console.local_times();
  Checkup checkup(console.style());
  utsname system{};
  ::uname(&system);
  checkup.raw(fmt::format("vramtrack {} on {} {} ({}), as {}\n\n", VRAMTRACK_VERSION, system.sysname, system.release,
                          system.machine, ::geteuid() == 0 ? "root" : fmt::format("uid {}", ::geteuid())));
  const Result<LayeredConfig> layers = load_config(request);
  const Config config = layers ? layers->config() : Config{};
  check_config(checkup, request, layers);
  Catalog catalog;
  Batch batch;
  const bool is_nvidia = check_driver(checkup, config.sources);
  const int working = check_sources(checkup, config.sources, is_nvidia, catalog, batch);
  list_devices(checkup, catalog, batch);
  check_visibility(checkup, config.sources);
  check_tracing(checkup, config.telemetry.enabled);
  check_store(checkup, config);
  const bool agent = check_agent(checkup, config.agent);
  if (working == 0 && agent)
    checkup.raw("\nNo GPU to watch here, but an agent answers: 'vramtrack top' shows what it sees.\n");
  else if (working == 0)
    checkup.raw(
        "\nNothing to watch here. 'vramtrack analyze FILE' reads logs from other machines, and 'vramtrack simulate' "
        "needs no GPU.\n");
  else if (checkup.missing() == 0)
    checkup.raw("\n'vramtrack watch' will work.\n");
  console.write(checkup.text());
  return checkup.missing() == 0 ? 0 : 1;
}

/// Does not use configured(): a wrong configuration is one of the things to report.
Runner declare(Arguments& arguments) {
  struct Options {
    ConfigRequest config;
    HealthOptions health;
  };
  const auto options = std::make_shared<Options>();
  add_health(arguments, options->health);
  add_config(arguments, options->config);
  return [options](Console& console) {
    if (options->health.is_asked_for) return doctor_health(options->health, options->config, console);
    if (options->health.first.empty()) return doctor(options->config, console);
    console.error(options->health.first + " needs --health");
    return 2;
  };
}

}  // namespace

const CommandInfo doctor_command{
    "doctor", "Check what works on this machine, what is missing, and how to fix it",
    "Examples:\n"
    "  vramtrack doctor\n"
    "  vramtrack doctor --health\n"
    "  vramtrack doctor --health --expect-empty --gpu 0,1 --format npd\n"
    "Exit: 0 watch will work, 1 something it needs is missing. With --health: 0 healthy, 1 unhealthy, 2 not known.",
    declare};

}  // namespace vramtrack::cli
