#include "trace/probe_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/printable.hpp"
#include "trace/hash.hpp"

namespace vramtrack::trace {

ProbeTrace::ProbeTrace() = default;
ProbeTrace::~ProbeTrace() = default;

Status ProbeTrace::read(ByteInput input) {
  of_file_.clear();
  auto info = read_probe_file(std::move(input), *this);
  if (!info) return fail(info.error());
  if (!info->loss.empty()) losses_.push_back(info->loss);
  if (!info->command.empty() && std::find(programs_.begin(), programs_.end(), info->command) == programs_.end())
    programs_.push_back(info->command);
  if (!std::exchange(has_info_, true)) info_ = std::move(*info);
  return {};
}

void ProbeTrace::finish() {
  const std::int64_t end_us = end_realtime_us();
  for (const auto& process : processes_)
    process->finish(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, end_us - process->process().begin_realtime_us)));
}

std::string ProbeTrace::program() const {
  if (!programs_.empty()) return fmt::format("{}", fmt::join(programs_, "; "));
  return processes_.empty() ? "" : processes_.front()->command();
}

std::int64_t ProbeTrace::end_realtime_us() const {
  std::int64_t end_us = end_ ? end_->realtime_us : 0;
  for (const auto& process : processes_)
    end_us = std::max(end_us, process->process().begin_realtime_us + static_cast<std::int64_t>(process->last_us()));
  return end_us;
}

double ProbeTrace::duration_s() const {
  // The file is created after the first process has started.
  std::int64_t begin_us = info_.begin_realtime_us;
  for (const auto& process : processes_)
    if (begin_us == 0 || process->process().begin_realtime_us < begin_us)
      begin_us = process->process().begin_realtime_us;
  return static_cast<double>(std::max<std::int64_t>(0, end_realtime_us() - begin_us)) * 1e-6;
}

std::string_view ProbeTrace::build_id(const std::string& path) const {
  const auto known = build_ids_.find(path);
  return known == build_ids_.end() ? std::string_view{} : known->second;
}

Status ProbeTrace::process(std::uint32_t, const ProbeProcess& process) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const ProbeProcess& known = processes_[i]->process();
    // An image after exec has its own ring, with the same pid and start.
    if (known.pid != process.pid || known.start_ticks != process.start_ticks ||
        known.begin_realtime_us != process.begin_realtime_us)
      continue;
    of_file_.push_back(i);
    return {};
  }
  of_file_.push_back(processes_.size());
  processes_.push_back(std::make_unique<ProcessTrace>(static_cast<std::uint32_t>(processes_.size()), process));
  processes_.back()->wants(wanted_);
  return {};
}

Status ProbeTrace::slots(std::uint32_t process, std::span<const probe::Slot> slots) {
  return processes_[of_file_[process]]->take(slots, visit_);
}

Status ProbeTrace::module(std::uint32_t, const ProbeModule& module) {
  build_ids_[module.path] = module.build_id;
  return {};
}

Status ProbeTrace::holder(const ProbeHolder& holder) {
  constexpr std::size_t kMostHolders = 4096;
  if (holders_.size() < kMostHolders) holders_.push_back(holder);
  return {};
}

Status ProbeTrace::reading(std::uint32_t process, const ProbeReading& reading) {
  if (process != kNoProbeProcess) processes_[of_file_[process]]->take(reading);
  return {};
}

Status ProbeTrace::end(std::uint32_t process, const ProbeEnd& end) {
  if (process == kNoProbeProcess)
    end_ = end;
  else
    processes_[of_file_[process]]->take(end);
  return {};
}

}  // namespace vramtrack::trace
