#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::trace {
namespace {

using probe::Level;
using probe::Record;

/// If a process holds more blocks, only the last ones are compared.
constexpr std::size_t kMostBirths = 1U << 20U;
constexpr std::size_t kMostReadings = 4096;

/// Whether the program itself chose the memory for the block, and has to free both: once that memory is empty, it is
/// not a framework's cache.
bool is_bound(probe::Call call) {
  return call == probe::Call::vk_bind_buffer || call == probe::Call::vk_bind_image;
}

}  // namespace

std::string device_words(int number, std::string_view name) {
  if (number >= probe::kFirstNumbered) return name.empty() ? "a device without a name" : std::string(name);
  return name.empty() ? fmt::format("device {}", number) : fmt::format("device {} ({})", number, name);
}

std::string ProcessTrace::command() const {
  return process_.command.empty() ? printable(names_.command()) : process_.command;
}

Status ProcessTrace::take(std::span<const probe::Slot> slots, const ChangeVisit& visit) {
  visit_ = visit ? &visit : nullptr;
  for (const probe::Slot& slot : slots) {
    take(slot);
    if (!visited_) return visited_;
  }
  return {};
}

void ProcessTrace::take(const probe::Slot& slot) {
  switch (probe::record_of(slot)) {
    case Record::alloc:
      return allocated(slot);
    case Record::free:
      return freed(slot);
    case Record::device:
      return describe_device(slot);
    case Record::totals:
      return keep_totals(slot);
    case Record::mark:
      return mark(slot);
    case Record::refused:
    case Record::failed:
      return fail_to_allocate(slot);
    case Record::limit:
      return failures_.set_limit(slot.bytes);
    case Record::label:
      return label(slot);
    case Record::kept:
      return look(slot);
    case Record::end:
      return begin_to_end(probe::time_us_of(slot));
    case Record::exit:
      exit_us_ = probe::time_us_of(slot);
      return;
    case Record::onward:
      return go_on(probe::time_us_of(slot));
    case Record::lost:
      lost_ += std::min<std::uint64_t>(slot.a, std::uint64_t{1} << 48U);
      return;
    case Record::sampling:
      interval_ = std::min(slot.bytes, kMostBytes);
      most_interval_ = std::max(most_interval_, interval_);
      return;
    default:
      names_.take(slot);
  }
}

void ProcessTrace::describe_device(const probe::Slot& slot) {
  DeviceOfTrace& device = devices_[probe::device_of(slot)];
  device.uuid = printable(names_.text(probe::number_of(slot)));
  device.name = printable(names_.text(static_cast<std::uint32_t>(slot.bytes)));
  device.total_bytes = slot.address;
}

void ProcessTrace::keep_totals(const probe::Slot& slot) {
  DeviceOfTrace& device = devices_[probe::device_of(slot)];
  device.allocated_bytes = slot.address;
  device.reserved_bytes = slot.bytes;
  device.has_totals = true;
}

void ProcessTrace::begin_to_end(std::uint64_t now_us) {
  if (std::exchange(is_ending_, true)) return;
  // Memory freed right before, with no allocation since, already belongs to the exit: locals are freed before the
  // interpreter ends. So does a release of most memory, as in a program without an interpreter.
  const bool is_of_the_end = now_us - trail_.before().place.time_us <= now_us / 20;
  if (!is_of_the_end && !trail_.is_most()) trail_.forget();
  end_us_ = now_us;
}

void ProcessTrace::go_on(std::uint64_t now_us) {
  goes_on_ = true;
  last_us_ = std::max(last_us_, now_us);
  trail_.forget();
}

void ProcessTrace::changed(CallSite& site, const Held& by, int sign) {
  site.live.bytes += sign * by.bytes;
  site.live.blocks += sign * by.blocks;
  live_.by_space[static_cast<std::size_t>(site.space)] += sign * by.bytes;
  if (sign < 0) lower_floors(site);
}

void ProcessTrace::now_backs(std::uint64_t address, std::uint64_t bytes) {
  if (!extents_.are_kept()) {
    extents_.keep();
    live_cells_[0].for_each([this](const LiveCell& cell) {
      if (sites_[cell.site].space == MemorySpace::device) extents_.put(cell.address, cell.bytes);
    });
  }
  extents_.find(address, bytes, [this](std::uint64_t segment) {
    LiveCell* const cell = live_cells_[0].find(segment);
    if (cell == nullptr || cell->is_backing != 0) return;
    // From now on, its bytes count as those of its blocks.
    cell->is_backing = 1;
    trail_.erase_unused(segment);
    const Held held = cell->held();
    CallSite& site = sites_[cell->site];
    changed(site, held, -1);
    live_.backing_bytes += held.bytes;
    visit(site, segment, last_us_, -held.bytes);
  });
}

void ProcessTrace::backs_one_less(std::uint64_t address, std::uint64_t now_us) {
  const auto segment = extents_.unbind(address);
  // Blocks that were not sampled may still be in it.
  if (!segment || most_interval_ > 0) return;
  LiveCell* const cell = live_cells_[0].find(*segment);
  if (cell == nullptr || cell->is_backing == 0) return;
  cell->is_backing = 0;
  extents_.forget_found();
  const Held held = cell->held();
  CallSite& site = sites_[cell->site];
  live_.backing_bytes -= held.bytes;
  changed(site, held, 1);
  see_peak(now_us);
  trail_.add_unused(*cell);
  visit(site, cell->address, now_us, held.bytes);
}

void ProcessTrace::see_peak(std::uint64_t now_us) {
  if (live_.of(MemorySpace::device) <= live_.peak_bytes) return;
  live_.peak_bytes = live_.of(MemorySpace::device);
  live_.peak_us = now_us;
}

void ProcessTrace::give_back(AddressTable<LiveCell>& table, LiveCell* cell, std::uint64_t now_us) {
  const Held held = cell->held();
  CallSite& site = sites_[cell->site];
  const bool is_driver = &table == live_cells_.data();
  if (is_driver && site.space == MemorySpace::device) {
    live_.driver_bytes -= held.bytes;
    extents_.erase(cell->address);
  }
  if (cell->is_backing != 0 && is_driver) {
    live_.backing_bytes -= held.bytes;
  } else {
    if (trail_.empty())
      trail_.begin({floors_.place(now_us), live_.of(MemorySpace::device) + live_.of(MemorySpace::host),
                    live_.backing_bytes, live_.backed_bytes, live_cells_[0].size() + live_cells_[1].size()});
    if (cell->is_backing != 0) live_.backed_bytes -= held.bytes;
    changed(site, held, -1);
    // A segment that has become unused since then did not count for its site when the trail began.
    if (cell->time_us <= trail_.before().place.time_us && !(is_driver && trail_.erase_unused(cell->address))) {
      const LiveReports::BlockReport* const reported = live_reports_.find(cell->address);
      trail_.add({cell->site, cell->time_us, held, reported == nullptr ? std::nullopt : std::optional(*reported)});
    }
    live_reports_.gave_back(cell->address);
    if (floors_.is_of_earlier_epoch(cell->time_us)) ++site.returned;
    visit(site, cell->address, now_us, -held.bytes);
  }
  const bool is_bound_block = !is_driver && cell->is_backing != 0 && is_bound(site.call);
  const std::uint64_t address = cell->address;
  table.erase(cell);
  if (is_bound_block) backs_one_less(address, now_us);
}

void ProcessTrace::begin_event(std::uint64_t now_us) {
  last_us_ = std::max(last_us_, now_us);
  moments_.pass(now_us, sites_.all(), live_.of(MemorySpace::device));
}

void ProcessTrace::end_event() {
  ++events_;
  floors_.count_event(sites_.all(), last_us_);
}

void ProcessTrace::allocated(const probe::Slot& slot) {
  const probe::CallInfo* const info = call_info(probe::call_of(slot));
  if (info == nullptr) return;
  const std::uint64_t now_us = probe::time_us_of(slot);
  begin_event(now_us);
  const std::uint64_t bytes = std::min(slot.bytes, kMostBytes);
  AddressTable<LiveCell>& table = live_cells_[static_cast<std::size_t>(info->level)];
  if (LiveCell* const old = table.find(slot.address)) {
    ++replaced_;  // its free was not recorded
    give_back(table, old, now_us);
  }
  const std::uint32_t id = sites_.number_of(slot);
  LiveCell cell;
  cell.address = slot.address;
  cell.bytes = bytes;
  cell.time_us = now_us & 0xffff'ffff'ffffU;
  cell.is_in_use = 1;
  cell.site = id;
  if (bytes < interval_)
    cell.stands_for =
        static_cast<float>(static_cast<double>(interval_) / static_cast<double>(std::max<std::uint64_t>(1, bytes)));
  if (info->level == Level::block) {
    has_framework_ = has_framework_ || info->call == probe::Call::torch_block;
    now_backs(slot.address, bytes);
    cell.is_backing = extents_.was_found(slot.address) ? 1 : 0;
    if (cell.is_backing != 0 && is_bound(info->call)) extents_.bind(slot.address);
  }
  table.put(cell);
  const Held held = cell.held();
  CallSite& site = sites_[id];
  if (site.allocations++ == 0) site.first_us = now_us;
  site.last_us = now_us;
  last_allocations_.add(now_us, id);
  changed(site, held, 1);
  if (cell.is_backing != 0) live_.backed_bytes += held.bytes;
  if (info->level == Level::driver && site.space == MemorySpace::device) {
    live_.driver_bytes += held.bytes;
    extents_.put(slot.address, bytes);
  }
  see_peak(now_us);
  if (!is_ending_ && trail_.is_refuted_by(held.bytes)) trail_.forget();
  visit(site, slot.address, now_us, held.bytes);
  end_event();
}

void ProcessTrace::freed(const probe::Slot& slot) {
  const probe::CallInfo* const info = call_info(probe::call_of(slot));
  if (info == nullptr) return;
  const std::uint64_t now_us = probe::time_us_of(slot);
  begin_event(now_us);
  AddressTable<LiveCell>& table = live_cells_[static_cast<std::size_t>(info->level)];
  if (LiveCell* const cell = table.find(slot.address)) {
    give_back(table, cell, now_us);
  } else {
    freed_of_before_.bytes += static_cast<std::int64_t>(std::min(slot.bytes, kMostBytes));
    ++freed_of_before_.blocks;
  }
  end_event();
}

void ProcessTrace::mark(const probe::Slot& slot) {
  const std::uint64_t time_us = probe::time_us_of(slot);
  last_us_ = std::max(last_us_, time_us);
  const std::string name = printable(names_.text(probe::number_of(slot)));
  moments_.mark(name, time_us, sites_.all(), live_.of(MemorySpace::device));
  floors_.mark(sites_.all(), name, time_us);
}

/// A segment and its first block share an address; reports are about the block.
LiveCell* ProcessTrace::named_block(std::uint64_t address) {
  LiveCell* const cell = live_cells_[static_cast<std::size_t>(Level::block)].find(address);
  return cell != nullptr ? cell : live_cells_[static_cast<std::size_t>(Level::driver)].find(address);
}

void ProcessTrace::label(const probe::Slot& slot) {
  const auto category = parse_category(names_.text(static_cast<std::uint32_t>(slot.bytes)));
  const LiveCell* const cell = named_block(slot.address);
  if (!category || cell == nullptr) return;
  const Held held = cell->held();
  live_reports_.take(slot.address, {cell->site, *category, probe::number_of(slot), held.bytes, held.blocks});
}

void ProcessTrace::look(const probe::Slot& slot) {
  if ((probe::flags_of(slot) & probe::kLookEnd) == 0)
    looks_.take(slot, named_block(slot.address));
  else
    looks_.end(slot, sites_.all(), names_);
}

void ProcessTrace::fail_to_allocate(const probe::Slot& slot) {
  MemoryFailure* const failure = failures_.take(slot);
  if (failure == nullptr) return;
  failure->live_bytes = live_.of(MemorySpace::device);
  failure->backing_bytes = live_.backing_bytes;
  failure->cached_bytes = cached_bytes();
  failure->sites = held_by(sites_.all());
}

void ProcessTrace::take(const ProbeReading& reading) {
  if (!reading.process_bytes || readings_.size() >= kMostReadings) return;
  readings_.push_back({reading.realtime_us, *reading.process_bytes, live_.driver_bytes});
}

void ProcessTrace::finish(std::uint64_t end_us) {
  moments_.pass(end_us, sites_.all(), live_.of(MemorySpace::device));
  at_exit_ = goes_on_ ? std::vector<Held>(sites().size()) : held_by(sites());
  shown_us_ = last_us_;
  for (CallSite& site : sites_.all()) site.oldest_us = ~std::uint64_t{0};
  for (const auto& table : live_cells_)
    table.for_each([&](const LiveCell& cell) {
      CallSite& site = sites_[cell.site];
      site.oldest_us = std::min<std::uint64_t>(site.oldest_us, cell.time_us);
    });
  live_reports_.for_each([this](const LiveReports::BlockReport& reported) { reported_.push_back(reported); });
  has_exit_ = !trail_.empty() && (is_ending_ || trail_.is_most());
  if (has_exit_) return_exit();
  floors_.finish(sites_.all(), has_exit_ ? std::optional(trail_.before().place) : std::nullopt);
  see_blocks();
  trail_ = {};
}

/// Restores the state of the moment before the exit.
void ProcessTrace::return_exit() {
  shown_us_ = trail_.before().place.time_us;
  live_.backing_bytes = trail_.before().backing_bytes;
  live_.backed_bytes = trail_.before().backed_bytes;
  for (const ExitTrail::Returned& returned : trail_.returned()) {
    CallSite& site = sites_[returned.site];
    changed(site, returned.held, 1);
    site.oldest_us = std::min(site.oldest_us, returned.time_us);
    if (returned.reported) reported_.push_back(*returned.reported);
  }
  for (const auto& [address, site] : trail_.unused())
    if (const LiveCell* const cell = live_cells_[0].find(address)) changed(sites_[site], cell->held(), -1);
}

void ProcessTrace::see_blocks() {
  last_allocations_.finish();
  std::vector<Passing> births;
  for (std::size_t level = 0; level < live_cells_.size(); ++level)
    live_cells_[level].for_each([&](const LiveCell& cell) {
      const bool is_segment = level == static_cast<std::size_t>(Level::driver) && cell.is_backing != 0;
      if (!is_segment) births.push_back({cell.time_us, cell.site});
    });
  if (has_exit_)
    for (const ExitTrail::Returned& returned : trail_.returned()) births.push_back({returned.time_us, returned.site});
  const auto is_later = [](const Passing& a, const Passing& b) { return a.time_us > b.time_us; };
  if (births.size() > kMostBirths) {
    std::nth_element(births.begin(), births.begin() + kMostBirths, births.end(), is_later);
    births.resize(kMostBirths);
  }
  blocks_.resize(sites().size());
  for (const Passing& birth : births) blocks_[birth.site].births_us.push_back(birth.time_us);
  for (SiteBlocks& each : blocks_) std::sort(each.births_us.begin(), each.births_us.end());
  if (has_exit_)
    for (std::size_t i = 0; i < trail_.returned().size(); ++i)
      blocks_[trail_.returned()[i].site].deaths.push_back(static_cast<std::uint32_t>(i));
}

std::int64_t ProcessTrace::cached_bytes() const {
  return std::max<std::int64_t>(0, live_.backing_bytes - live_.backed_bytes);
}

}  // namespace vramtrack::trace
