#include "run/run_lifetimes.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "trace/call_category.hpp"

namespace vramtrack::run {

using probe::Record;
using probe::Slot;

namespace {

bool names(Record record) {
  return record == Record::frame || record == Record::text || record == Record::code || record == Record::module ||
         record == Record::process;
}

/// Whether PyTorch's allocators made the call: they report each block, which is part of what they took.
bool is_of_allocator(const trace::ProcessTrace& process, std::uint32_t stack) {
  const auto& frames = process.names().stack(stack);
  return std::any_of(frames.begin(), frames.end(), [&](const trace::RawFrame& frame) {
    const trace::MappedModule* const module = frame.is_python ? nullptr : process.names().module_at(frame.address);
    return module != nullptr &&
           std::string_view(module->path).substr(module->path.rfind('/') + 1).starts_with("libc10");
  });
}

/// Lines that begin to rise within this time count as simultaneous.
constexpr double kOneOnset_s = 5;

/// The first block of an allocation has the same address as the driver's memory that contains it.
std::uint64_t key_of(const Slot& slot) {
  return slot.address ^ (probe::call_of(slot) == probe::Call::torch_block ? 1ULL << 63U : 0);
}

}  // namespace

struct RunLifetimes::Process {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  double begin_s = 0, now_s = 0;
  std::uint32_t index = 0;  ///< index in texts_
  std::uint64_t sampled_bytes = 0;
  bool is_over = false;  ///< it has ended, or its records were lost
  trace::LifetimesAccount account;
  trace::RecentGrowth recent;
  std::vector<double> reported_s;                              ///< beginnings of the reported rises
  std::unordered_map<std::uint64_t, trace::SiteNumber> parts;  ///< by stack and call
};

RunLifetimes::RunLifetimes(std::unique_ptr<trace::NativeNames> native)
    : native_(std::move(native)), names_(texts_, symbols_, native_.get(), {}) {}
RunLifetimes::~RunLifetimes() = default;

trace::SiteNumber RunLifetimes::part_of(Process& process, std::uint32_t stack, probe::Call call) {
  const auto [known, is_new] = process.parts.try_emplace(
      static_cast<std::uint64_t>(stack) << 8U | static_cast<std::uint64_t>(call), trace::SiteNumber{});
  if (!is_new) return known->second;
  const trace::ProcessTrace& texts = *texts_.processes()[process.index];
  const trace::StackId id = names_.stack(texts, stack);
  const trace::SiteLine line = names_.line(id);
  std::string words = line.is_known ? trace::frame_words(symbols_, line.frame) : "(no stack recorded)";
  const auto [number, is_new_line] = numbers_.try_emplace(words, static_cast<trace::SiteNumber>(sites_.size()));
  if (is_new_line) {
    const auto frames = symbols_.stack(id);
    const auto depth = std::count_if(frames.begin(), frames.end(), [this](auto frame) { return names_.is_own(frame); });
    sites_.push_back({std::move(words), static_cast<std::size_t>(depth)});
  }
  const Part part{number->second, trace::category_of(probe::info_of(call), stack_categories_.of(id))};
  const auto [position, is_new_part] =
      part_numbers_.try_emplace({part.site, part.category}, static_cast<trace::SiteNumber>(parts_.size()));
  if (is_new_part) parts_.push_back(part);
  return known->second = position->second;
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
    const bool is_counted = call != nullptr && trace::space_of(call->memory) == trace::MemorySpace::device &&
                            (call->level == probe::Level::driver || call->call == probe::Call::torch_block);
    if (record == Record::alloc || record == Record::free)
      process->now_s = std::max(process->now_s, process->begin_s + static_cast<double>(probe::time_us_of(slot)) * 1e-6);
    switch (record) {
      case Record::alloc: {
        const std::uint32_t stack = probe::number_of(slot);
        if (!is_counted ||
            (call->level == probe::Level::driver && is_of_allocator(*texts_.processes()[process->index], stack)))
          break;
        const std::uint64_t bytes = std::max(slot.bytes, process->sampled_bytes);
        const trace::SiteNumber part = part_of(*process, stack, call->call);
        process->account.allocate(key_of(slot), bytes, parts_[part].site, process->now_s);
        process->recent.allocate(key_of(slot), bytes, part, process->now_s - process->begin_s);
        break;
      }
      case Record::free:
        if (!is_counted) break;
        process->account.free(key_of(slot), process->now_s);
        process->recent.free(key_of(slot), process->now_s - process->begin_s);
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

std::vector<trace::ProcessLifetimes> RunLifetimes::report(double now_s) {
  std::vector<trace::ProcessLifetimes> reports;
  for (const auto& [index, process] : processes_) {
    if (process->is_over) continue;
    if (auto sites = process->account.report(now_s, [this](trace::SiteNumber site) { return sites_[site].words; }))
      reports.push_back({process->pid, process->start_ticks, std::move(*sites)});
  }
  return reports;
}

std::vector<ProcessCategories> RunLifetimes::categories() const {
  std::vector<ProcessCategories> out;
  for (const auto& [index, process] : processes_) {
    if (process->is_over) continue;
    std::map<trace::Category, std::int64_t> bytes;
    for (trace::SiteNumber part = 0; part < parts_.size(); ++part)
      bytes[parts_[part].category] += process->recent.live_bytes(part);
    ProcessCategories& sums = out.emplace_back();
    sums.pid = process->pid;
    for (const auto& [category, held] : bytes)
      if (held > 0) sums.bytes.emplace_back(category, held);
  }
  return out;
}

std::vector<LateRise> RunLifetimes::late_rises(double now_s) {
  std::vector<LateRise> out;
  for (const auto& [index, process] : processes_) {
    if (process->is_over) continue;
    std::vector<trace::RecentRise> rises = process->recent.rises(now_s - process->begin_s);
    // A rise that began together with one already reported belongs to that one.
    std::erase_if(rises, [&process = *process](const trace::RecentRise& rise) {
      return std::any_of(process.reported_s.begin(), process.reported_s.end(),
                         [&](double reported_s) { return std::abs(rise.since_s - reported_s) <= kOneOnset_s; });
    });
    std::sort(rises.begin(), rises.end(), [](const auto& a, const auto& b) { return a.since_s < b.since_s; });
    for (auto begin = rises.begin(); begin != rises.end();) {
      const auto end = std::find_if(begin, rises.end(),
                                    [&](const auto& rise) { return rise.since_s - begin->since_s > kOneOnset_s; });
      process->reported_s.push_back(begin->since_s);
      LateRise& group = out.emplace_back();
      group.pid = process->pid;
      group.since_s = begin->since_s;
      group.lasts_s = now_s - process->begin_s - begin->since_s;
      // As in the report of a whole run: the last line of a step, if it is nearer to the loop than another line, else
      // the one that gained the most.
      const auto site_of = [&](const trace::RecentRise& rise) -> const Site& { return sites_[parts_[rise.site].site]; };
      const trace::RecentRise result =
          *std::max_element(begin, end, [](const auto& a, const auto& b) { return a.first_s < b.first_s; });
      std::sort(begin, end, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
      const bool is_nearer =
          std::any_of(begin, end, [&](const auto& rise) { return site_of(rise).depth > site_of(result).depth; });
      group.line = site_of(is_nearer ? result : *begin).words;
      for (auto rise = begin; rise != end; ++rise) {
        group.bytes += rise->bytes;
        group.blocks += rise->blocks;
        group.bytes_per_s += rise->bytes_per_s;
        const std::string& words = site_of(*rise).words;
        if (words != group.line && std::find(group.others.begin(), group.others.end(), words) == group.others.end())
          group.others.push_back(words);
      }
      begin = end;
    }
  }
  return out;
}

}  // namespace vramtrack::run
