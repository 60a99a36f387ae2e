#include "run/collector.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/errno_words.hpp"
#include "host/small_file.hpp"

namespace vramtrack::run {
namespace {

/// At most this many records at a time, because other rings fill meanwhile.
constexpr std::size_t kMostAtOnce = 1U << 16U;

}  // namespace

Collector::Collector(std::string folder, Take take, Warn warn)
    : folder_(std::move(folder)), take_(std::move(take)), warn_(std::move(warn)) {}

void Collector::send_limits(const RingFile& ring) const {
  ring.header().limit_bytes.store(limits_.limit_bytes, std::memory_order_relaxed);
  const std::uint64_t before =
      ring.header().soft_limit_bytes.exchange(limits_.soft_limit_bytes, std::memory_order_relaxed);
  if (before == limits_.soft_limit_bytes) return;
  for (auto& most : ring.header().above_soft_limit) most.store(0, std::memory_order_relaxed);
}

void Collector::set_limits(const Limits& limits) {
  if (limits.soft_limit_bytes != limits_.soft_limit_bytes) ended_above_.clear();
  limits_ = limits;
  for (const auto& [name, each] : open_) send_limits(each.ring);
}

void Collector::ask_kept() {
  for (const auto& [name, each] : open_) each.ring.header().kept_requests.fetch_add(1, std::memory_order_relaxed);
}

void Collector::make_spares() const {
  rlimit limit{};
  const std::uint64_t slots =
      probe::ring_slots(::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY);
  for (std::uint64_t i = 0; slots != 0 && i < probe::kSpareRings; ++i) {
    const std::string path = fmt::format("{}{}{}", folder_, probe::kSpareRing, i);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) continue;  // it exists already
    if (::ftruncate(file, static_cast<off_t>(probe::ring_bytes(slots))) != 0) ::unlink(path.c_str());
    ::close(file);
  }
}

void Collector::note_unrecorded(const std::string& name) {
  if (!reported_unrecorded_.insert(name).second) return;
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(std::filesystem::path(folder_) / name, error).string();
  std::istringstream words(target);
  int reason = 0;
  UnrecordedProcess process;
  words >> reason >> process.limit_bytes;
  std::getline(words >> std::ws, process.command);
  std::string_view numbers = std::string_view(name).substr(std::string_view(probe::kUnrecorded).size());
  process.pid = static_cast<std::uint32_t>(parse_unsigned(numbers.substr(0, numbers.find('.'))).value_or(0));
  process.start_ticks = parse_unsigned(numbers.substr(std::min(numbers.find('.') + 1, numbers.size()))).value_or(0);
  process.why = reason == EFBIG ? "its limit for files (ulimit -f) is too small" : errno_words(reason);
  unrecorded_.push_back(std::move(process));
}

void Collector::find_new() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(probe::kUnrecorded)) note_unrecorded(name);
    if (!name.starts_with("ring.") || open_.contains(name)) continue;
    auto ring = RingFile::open(entry.path().string());
    if (!ring) {
      bool& is_second = refused_[name];
      if (std::exchange(is_second, true) && !std::exchange(refused_["told." + name], true)) warn_(ring.error().message);
      continue;
    }
    const ProbedProcess process{processes_.size(), ring->pid(), ring->start_ticks(), ring->begin_realtime_us()};
    send_limits(*ring);
    processes_.push_back(process);
    open_.emplace(name, Open{process.index, std::move(*ring)});
  }
}

std::size_t Collector::look(bool is_over) {
  std::size_t total = 0;
  for (auto at = open_.begin(); at != open_.end();) {
    Open& each = at->second;
    const ProbedProcess process = processes_[each.index];
    // Check this before reading the ring, so that everything written until then is taken.
    const bool is_last = is_over || each.ring.is_abandoned();
    do {
      records_.clear();
      each.ring.take(records_, kMostAtOnce, is_last);
      if (!records_.empty()) take_(process, records_);
      total += records_.size();
    } while (records_.size() >= kMostAtOnce);
    if (!is_last) {
      ++at;
      continue;
    }
    note_above(each);
    std::error_code ignored;
    std::filesystem::remove(std::filesystem::path(folder_) / at->first, ignored);
    at = open_.erase(at);
  }
  return total;
}

bool Collector::is_running(std::size_t process) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& each) { return each.second.index == process; });
}

std::vector<std::uint32_t> Collector::alive() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [name, each] : open_)
    if (!each.ring.is_abandoned()) pids.push_back(processes_[each.index].pid);
  return pids;
}

std::int64_t Collector::held_bytes(std::size_t process, std::size_t device) const {
  if (device >= probe::kMostDevices) return 0;
  for (const auto& [name, each] : open_)
    if (each.index == process) return each.ring.header().held[device].driver.load(std::memory_order_relaxed);
  return 0;
}

std::int64_t Collector::above_soft_limit_bytes(std::size_t process, std::size_t device) const {
  if (const auto ended = ended_above_.find({process, device}); ended != ended_above_.end()) return ended->second;
  for (const auto& [name, each] : open_) {
    if (each.index != process) continue;
    // Add memory that was held when the limit was set, which no probe records.
    const std::int64_t held = each.ring.header().held[device].driver.load(std::memory_order_relaxed);
    const bool is_above = limits_.soft_limit_bytes > 0 && held > static_cast<std::int64_t>(limits_.soft_limit_bytes);
    return std::max(each.ring.header().above_soft_limit[device].load(std::memory_order_relaxed), is_above ? held : 0);
  }
  return 0;
}

void Collector::note_above(const Open& ended) {
  for (std::size_t device = 0; device < probe::kMostDevices; ++device)
    if (const auto most = ended.ring.header().above_soft_limit[device].load(std::memory_order_relaxed); most > 0)
      ended_above_[{ended.index, device}] = most;
}

}  // namespace vramtrack::run
