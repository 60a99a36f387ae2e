#include "health/gather.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>

#include "core/byte_input.hpp"
#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/format.hpp"
#include "host/holders.hpp"
#include "host/small_file.hpp"
#include "live/clock.hpp"
#include "live/sources.hpp"

namespace vramtrack {
namespace {

constexpr const char* kKmsg = "/dev/kmsg";
constexpr std::size_t kRecordBytes = 8192;       // CONSOLE_EXT_LOG_MAX: no record is longer
constexpr std::size_t kMostRecords = 1'000'000;  // more than any kernel's buffer has
constexpr std::size_t kMostFileBytes = 64U << 20U;

/// The uptime by the clock of the kernel log, which does not continue while the machine sleeps.
double uptime_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Each read returns one record; EAGAIN is the end, EPIPE a record that has been overwritten meanwhile.
void read_records(const std::string& path, double oldest_s, double newest_s, DriverLogReader& reader,
                  HealthFacts::Log& out) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    out.error = fmt::format("{} cannot be opened: {}", path, errno_words(errno));
    return;
  }
  std::array<char, kRecordBytes> record{};
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t got = ::read(file.get(), record.data(), record.size());
    if (got > 0) {
      reader.kmsg_record(std::string_view(record.data(), static_cast<std::size_t>(got)), oldest_s, newest_s);
    } else if (got == 0 || errno == EAGAIN) {
      return;
    } else if (errno != EPIPE && errno != EINTR) {
      out.error = fmt::format("{} cannot be read: {}", path, errno_words(errno));
      return;
    }
  }
}

void read_lines(const std::string& path, DriverLogReader& reader, HealthFacts::Log& out) {
  ByteInputOptions options;
  options.contents = "kernel logs";
  options.most_ratio = 1000;
  auto input = ByteInput::open(path, options);
  if (!input) {
    out.error = input.error().message;
    return;
  }
  std::string rest;
  std::array<std::uint8_t, 1U << 16U> part{};
  for (std::size_t total = 0; total < kMostFileBytes;) {
    const auto got = input->read(part);
    if (!got) {
      out.error = got.error().message;
      return;
    }
    if (*got == 0) {
      reader.line(rest);
      return;
    }
    total += *got;
    rest.append(reinterpret_cast<const char*>(part.data()), *got);
    const std::size_t end = rest.rfind('\n');
    if (end == std::string::npos) continue;
    reader.lines(std::string_view(rest).substr(0, end + 1));
    rest.erase(0, end + 1);
  }
  out.error = fmt::format("{} has more than 64 MiB; pass only the last few days", path);
}

bool is_device(const std::string& path) {
  struct stat info {};
  return path != "-" && ::stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
}

std::string module_version(const SourcesConfig& config) {
  constexpr std::size_t kMost = 4096;
  const auto proc = read_text_file(config.proc_root + "/driver/nvidia/version", kMost);
  std::string version = module_version_of(proc.value_or(std::string()));
  if (!version.empty()) return version;
  const auto sys = read_text_file(config.sys_root + "/module/nvidia/version", kMost);
  return module_version_of(sys.value_or(std::string()));
}

bool is_asked_for(const HealthRequest& request, const DeviceInfo& device) {
  return request.gpus.empty() ||
         (device.index && std::find(request.gpus.begin(), request.gpus.end(), *device.index) != request.gpus.end());
}

void poll_sources(const SourcesConfig& config, const HealthRequest& request, HealthFacts& out) {
  Catalog catalog;
  Batch batch;
  std::vector<LiveSource> sources = open_live_sources(config, catalog, out.absent);
  if (!sources.empty()) out.absent.clear();
  for (LiveSource& source : sources) poll_live(source, out.now, batch, [](const std::string&) {});
  for (const DeviceInfo& info : catalog.devices()) {
    if (!info.parent_id.empty()) continue;
    if (!is_asked_for(request, info)) {
      out.others.push_back(info);
      continue;
    }
    HealthFacts::Device device{info, {}, {}};
    for (const DeviceReading& reading : batch.readings)
      if (reading.device_id == info.id && reading.health) device.health = reading.health;
    for (const Event& event : batch.events)
      if (event.device_id == info.id && event.kind == Event::Kind::device_lost)
        device.lost = event.text.empty() ? "the driver gives no reason" : event.text;
    out.devices.push_back(std::move(device));
  }
  if (!request.expects_empty) return;
  const std::set<std::uint32_t> listed = listed_pids(batch, catalog);
  HoldersFound found = find_holders(config.proc_root, listed);
  // Querying the driver opens its files here, too.
  const auto self = static_cast<std::uint32_t>(::getpid());
  if (!listed.contains(self)) std::erase_if(found.holders, [self](const Holder& h) { return h.info.pid == self; });
  out.ledger = make_ledger(batch, catalog, found, config.proc_root, config.sys_root);
  std::erase_if(out.ledger->devices, [&](const DeviceLedger& one) {
    return std::none_of(out.devices.begin(), out.devices.end(), [&](const HealthFacts::Device& device) {
      return device.info.id == one.device.id || device.info.id == one.device.parent_id;
    });
  });
}

}  // namespace

HealthFacts::Log read_kernel_log(const std::string& path, double since_s, double until_s) {
  HealthFacts::Log out;
  out.is_named = !path.empty();
  out.name = path.empty() ? kKmsg : path == "-" ? "standard input" : path;
  DriverLogReader reader;
  if (path.empty() || is_device(path)) {
    out.uptime_s = uptime_s();
    const double covered_s = std::min(since_s, out.uptime_s);
    out.span_words =
        fmt::format("{} of the last {}", path.empty() ? "the kernel log" : path, format_duration(covered_s));
    if (until_s > 0) out.span_words += fmt::format(" without the last {}", format_duration(until_s));
    const double newest_s = until_s > 0 ? out.uptime_s - until_s : std::numeric_limits<double>::infinity();
    read_records(out.name, out.uptime_s - covered_s, newest_s, reader, out);
  } else {
    out.span_words = out.name;
    read_lines(path, reader, out);
  }
  out.events = reader.events();
  out.dropped = reader.dropped();
  return out;
}

HealthFacts gather_health(const SourcesConfig& config, const HealthRequest& request) {
  HealthFacts facts;
  facts.now = time_of_day();
  facts.wanted = request.gpus;
  const bool wants_nvml =
      config.enabled.empty() || std::find(config.enabled.begin(), config.enabled.end(), "nvml") != config.enabled.end();
  if (wants_nvml) {
    facts.nvml = check_nvml(config);
    facts.module_version = module_version(config);
    std::erase_if(facts.nvml->silent, [&](const NvmlCheck::Silent& silent) {
      DeviceInfo device;
      device.index = static_cast<int>(silent.index);
      return !is_asked_for(request, device);
    });
  }
  poll_sources(config, request, facts);
  facts.log.is_wanted = request.reads_log && (wants_nvml || !request.log_path.empty());
  if (facts.log.is_wanted) facts.log = read_kernel_log(request.log_path, request.since_s, request.until_s);
  return facts;
}

}  // namespace vramtrack
