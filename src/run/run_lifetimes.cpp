#include "run/run_lifetimes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace vramtrack::run {

using probe::Record;
using probe::Slot;

namespace {

bool names(Record record) {
  return record == Record::frame || record == Record::text || record == Record::code || record == Record::module ||
         record == Record::process;
}

/// PyTorch's allocators tell of each block, which lies in what they took.
bool is_of_allocator(const trace::ProcessTrace& process, std::uint32_t stack) {
  const auto& frames = process.stack(stack);
  return std::any_of(frames.begin(), frames.end(), [&](const trace::RawFrame& frame) {
    const trace::MappedModule* const module = frame.is_python ? nullptr : process.module_at(frame.address);
    return module != nullptr &&
           std::string_view(module->path).substr(module->path.rfind('/') + 1).starts_with("libc10");
  });
}

/// The first block of an allocator lies where the driver's memory begins that it is part of.
std::uint64_t key_of(const Slot& slot) {
  return slot.address ^ (probe::call_of(slot) == probe::Call::torch_block ? 1ULL << 63U : 0);
}

}  // namespace

struct RunLifetimes::Process {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  double begin_s = 0, now_s = 0;
  std::uint32_t index = 0;  ///< in texts_
  std::uint64_t sampled_bytes = 0;
  bool is_over = false;  ///< or its records were lost
  trace::LifetimesAccount account;
  std::unordered_map<std::uint32_t, trace::SiteNumber> stacks;
};

RunLifetimes::RunLifetimes(std::unique_ptr<trace::NativeNames> native)
    : native_(std::move(native)), names_(texts_, symbols_, native_.get(), {}) {}
RunLifetimes::~RunLifetimes() = default;

trace::SiteNumber RunLifetimes::site_of(Process& process, std::uint32_t stack) {
  const auto [known, is_new] = process.stacks.try_emplace(stack, 0);
  if (!is_new) return known->second;
  const trace::ProcessTrace& texts = *texts_.processes()[process.index];
  const trace::SiteLine line = names_.line(names_.stack(texts, stack));
  std::string words = line.is_known ? trace::frame_words(symbols_, line.frame) : "(no stack recorded)";
  const auto [number, is_new_line] = numbers_.try_emplace(words, static_cast<trace::SiteNumber>(sites_.size()));
  if (is_new_line) sites_.push_back(std::move(words));
  return known->second = number->second;
}

void RunLifetimes::take(const ProbedProcess& probed, std::span<const Slot> records) {
  std::unique_ptr<Process>& process = processes_[probed.index];
  if (!process) {
    process = std::make_unique<Process>();
    process->pid = probed.pid;
    process->start_ticks = probed.start_ticks;
    process->begin_s = static_cast<double>(probed.begin_realtime_us) * 1e-6;
    process->index = static_cast<std::uint32_t>(texts_.processes().size());
    if (!texts_.process(process->index, {probed.pid, probed.start_ticks, probed.begin_realtime_us, {}}))
      process->is_over = true;
  }
  for (const Slot& slot : records) {
    if (process->is_over) return;
    const Record record = probe::record_of(slot);
    if (names(record)) {
      if (!texts_.slots(process->index, {&slot, 1})) process->is_over = true;
      continue;
    }
    const probe::CallInfo* const call = probe::info_of(probe::call_of(slot));
    const bool is_counted = call != nullptr && trace::ledger_of(call->memory) == trace::Ledger::device &&
                            (call->level == probe::Level::driver || call->call == probe::Call::torch_block);
    if (record == Record::alloc || record == Record::free)
      process->now_s = std::max(process->now_s, process->begin_s + static_cast<double>(probe::time_us_of(slot)) * 1e-6);
    switch (record) {
      case Record::alloc: {
        const std::uint32_t stack = probe::number_of(slot);
        if (!is_counted ||
            (call->level == probe::Level::driver && is_of_allocator(*texts_.processes()[process->index], stack)))
          break;
        process->account.allocate(key_of(slot), std::max(slot.bytes, process->sampled_bytes), site_of(*process, stack),
                                  process->now_s);
        break;
      }
      case Record::free:
        if (is_counted) process->account.free(key_of(slot), process->now_s);
        break;
      case Record::sampling:
        process->sampled_bytes = slot.bytes;
        break;
      case Record::lost:
      case Record::end:
      case Record::exit:
        process->is_over = true;
        break;
      default:
        break;
    }
  }
}

std::vector<trace::ToldProcess> RunLifetimes::tell(double now_s) {
  std::vector<trace::ToldProcess> told;
  for (const auto& [index, process] : processes_) {
    if (process->is_over) continue;
    if (auto sites = process->account.tell(now_s, [this](trace::SiteNumber site) { return sites_[site]; }))
      told.push_back({process->pid, process->start_ticks, std::move(*sites)});
  }
  return told;
}

}  // namespace vramtrack::run
