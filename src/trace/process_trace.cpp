#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "core/order.hpp"
#include "core/printable.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::trace {
namespace {

using probe::Level;
using probe::Record;

/// A leak is judged by fewer stretches than this, each of whole fine stretches.
constexpr std::size_t kMostStretches = 48;
/// How finely a late rise is looked for: 4 of 96 stretches are the last 8 % of a loop that took and gave back before.
constexpr std::size_t kMostFineStretches = 192;
/// A floor takes 16 bytes a site and stretch: with more sites than this, no finer than a leak needs.
constexpr std::size_t kMostFineSites = 16'384;
constexpr std::size_t kMostEpochs = 96;
/// Several steps of a training of large models; 16 bytes each.
constexpr std::size_t kMostPassing = 1U << 15U;
/// Of a process that holds more blocks, the last ones are compared.
constexpr std::size_t kMostBirths = 1U << 20U;
constexpr std::size_t kMostFrames = 1024;
constexpr std::size_t kMostTextBytes = 64U << 10U;
constexpr std::size_t kMostMarks = 10'000;
constexpr std::size_t kMostReadings = 4096;
constexpr std::size_t kMostKept = 1U << 16U;
/// No memory is larger than this; sums of such sizes fit in 63 bits.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46U;
/// The parts of head that identify a call site: call, device and stack.
constexpr std::uint64_t kSiteKey = 0xffffffff00ffff00;

/// Info of each call by its number: info_of() searches.
const std::array<const probe::CallInfo*, 256>& calls() {
  static const auto table = [] {
    std::array<const probe::CallInfo*, 256> out{};
    for (const probe::CallInfo& info : probe::kCalls) out[static_cast<std::size_t>(info.call)] = &info;
    return out;
  }();
  return table;
}

void lower(Held& least, const Held& now) {
  least.bytes = std::min(least.bytes, now.bytes);
  least.blocks = std::min(least.blocks, now.blocks);
}

/// Appends the floor of stretch `index`; leading ones that are nothing are only counted.
void push_floor(std::vector<Floor>& floors, std::uint32_t& first, std::size_t index, const Held& low) {
  if (floors.empty()) {
    if (low.bytes <= 0 && low.blocks <= 0) return;
    first = static_cast<std::uint32_t>(index);
  }
  floors.push_back({low.bytes, low.blocks});
}

/// Pairs of neighbours become one. A pair that began before the first floor was nothing.
void join_pairs(std::vector<Floor>& floors, std::uint32_t& first) {
  if (floors.empty()) return;
  std::vector<Floor> joined;
  std::size_t at = first % 2;
  for (; at + 1 < floors.size(); at += 2)
    joined.push_back(
        {std::min(floors[at].bytes, floors[at + 1].bytes), std::min(floors[at].blocks, floors[at + 1].blocks)});
  first = (first + 1) / 2;
  floors = std::move(joined);
}

Floor floor_at(const std::vector<Floor>& floors, std::uint32_t first, std::size_t index) {
  return index < first || index - first >= floors.size() ? Floor{} : floors[index - first];
}

/// The program itself chose the memory for the block, and has to give both back: once nothing is in that memory, it is
/// not a framework's cache.
bool is_bound(probe::Call call) {
  return call == probe::Call::vk_bind_buffer || call == probe::Call::vk_bind_image;
}

/// "epoch 12" and "epoch 13" are one name.
std::string without_digits(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c < '0' || c > '9') out += c;
  return out;
}

}  // namespace

Held ProcessTrace::held_of(const Cell& cell) {
  if (cell.stands_for == 1) return {static_cast<std::int64_t>(cell.bytes), 1};
  return {std::llround(static_cast<double>(cell.bytes) * static_cast<double>(cell.stands_for)),
          std::llround(static_cast<double>(cell.stands_for))};
}

std::string ProcessTrace::command() const {
  return process_.command.empty() ? printable(text(command_text_)) : process_.command;
}

std::string_view ProcessTrace::text(std::uint32_t number) const {
  const auto known = texts_.find(number);
  return known == texts_.end() ? std::string_view{} : known->second;
}

const std::vector<RawFrame>& ProcessTrace::stack(std::uint32_t number) const {
  static const std::vector<RawFrame> none;
  const auto known = stacks_.find(number);
  return known == stacks_.end() ? none : known->second;
}

const CodeObject* ProcessTrace::code(std::uint32_t number) const {
  const auto known = codes_.find(number);
  return known == codes_.end() ? nullptr : &known->second;
}

const MappedModule* ProcessTrace::module_at(std::uint64_t address) const {
  for (std::size_t i = modules_.size(); i-- > 0;)
    if (address >= modules_[i].begin && address - modules_[i].begin < modules_[i].length) return &modules_[i];
  return nullptr;
}

Status ProcessTrace::take(std::span<const probe::Slot> slots, const ChangeVisit& visit) {
  visit_ = visit ? &visit : nullptr;
  for (const probe::Slot& slot : slots) {
    const std::uint32_t number = probe::number_of(slot);
    switch (probe::record_of(slot)) {
      case Record::alloc:
        allocated(slot);
        break;
      case Record::free:
        freed(slot);
        break;
      case Record::frame:
        keep_frame(slot);
        break;
      case Record::text:
        keep_text(slot);
        break;
      case Record::code:
        codes_[number] = {static_cast<std::uint32_t>(slot.a), static_cast<std::uint32_t>(slot.address),
                          static_cast<std::uint32_t>(slot.address >> 32U)};
        break;
      case Record::module:
        modules_.push_back({std::string(text(number)), slot.address, slot.bytes, slot.a});
        break;
      case Record::process:
        command_text_ = static_cast<std::uint32_t>(slot.bytes);
        break;
      case Record::device:
        describe_device(slot);
        break;
      case Record::mark:
        mark(number, probe::time_us_of(slot));
        break;
      case Record::thread:
        threads_[static_cast<std::uint16_t>(slot.a)] = number;
        break;
      case Record::refused:
        ++refused_;
        lacked(slot);
        break;
      case Record::failed:
        ++failed_;
        lacked(slot);
        break;
      case Record::limit:
        limit_ = slot.bytes;
        break;
      case Record::label:
        label(slot);
        break;
      case Record::kept:
        kept(slot);
        break;
      case Record::end:
        begin_to_end(probe::time_us_of(slot));
        break;
      case Record::exit:
        exit_us_ = probe::time_us_of(slot);
        break;
      case Record::onward:
        goes_on_ = true;
        last_us_ = std::max(last_us_, probe::time_us_of(slot));
        forget_trail();
        break;
      case Record::totals:
        keep_totals(slot);
        break;
      case Record::lost:
        lost_ += std::min<std::uint64_t>(slot.a, std::uint64_t{1} << 48U);
        break;
      case Record::sampling:
        interval_ = std::min(slot.bytes, kMostBytes);
        most_interval_ = std::max(most_interval_, interval_);
        break;
      default:
        break;
    }
    if (!visited_) return visited_;
  }
  return {};
}

void ProcessTrace::keep_frame(const probe::Slot& slot) {
  const std::uint64_t index = slot.a & 0xffffffffU;
  if (index >= kMostFrames) return;
  auto& frames = stacks_[probe::number_of(slot)];
  if (frames.size() <= index) frames.resize(index + 1);
  const std::uint8_t flags = probe::flags_of(slot);
  frames[index] = {(flags & probe::kPythonFrame) != 0, (flags & probe::kEntryFrame) != 0,
                   static_cast<std::uint32_t>(slot.bytes), slot.address};
  is_python_ = is_python_ || frames[index].is_python;
}

/// One piece of a text; an empty text has one, too.
void ProcessTrace::keep_text(const probe::Slot& slot) {
  std::string& text = texts_[probe::number_of(slot)];
  const std::uint64_t offset = slot.a & 0xffffffffU;
  const std::size_t size = std::min<std::size_t>(slot.a >> 32U, kMostTextBytes);
  if (offset >= size) return;
  const std::size_t end = std::min(size, offset + probe::kTextBytes);
  if (text.size() < end) text.resize(end);
  const std::array<std::uint64_t, 2> piece = {slot.address, slot.bytes};
  std::memcpy(text.data() + offset, piece.data(), end - offset);
}

void ProcessTrace::describe_device(const probe::Slot& slot) {
  DeviceOfTrace& device = devices_[probe::device_of(slot)];
  device.uuid = printable(text(probe::number_of(slot)));
  device.name = printable(text(static_cast<std::uint32_t>(slot.bytes)));
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
  // What was given back right before, with nothing allocated since, is the exit already: locals end before the
  // interpreter does. So is most of all memory, as without an interpreter.
  const bool is_of_the_end = now_us - trail_begin_us_ <= now_us / 20;
  if (!is_of_the_end && 2 * trail_freed_ < trail_live_) forget_trail();
  end_us_ = now_us;
}

std::string device_words(int number, std::string_view name) {
  if (number >= probe::kFirstNumbered) return name.empty() ? "a device without a name" : std::string(name);
  return name.empty() ? fmt::format("device {}", number) : fmt::format("device {} ({})", number, name);
}

std::string_view ProcessTrace::thread_name(std::uint16_t thread) const {
  const auto known = threads_.find(thread);
  return known == threads_.end() ? std::string_view{} : text(known->second);
}

std::uint32_t ProcessTrace::site_of(const probe::Slot& slot) {
  const std::uint64_t key = slot.head & kSiteKey;
  if (key == last_key_) return last_site_;
  const auto hash = static_cast<std::uint32_t>(mixed(key * hash_seed()));
  std::uint32_t id = site_ids_.find(hash, [&](std::uint32_t known) {
    const CallSite& site = sites_[known];
    return probe::head_of(Record::none, site.call, site.device, 0, site.stack) == key;
  });
  if (id == IdTable::kNone) {
    id = static_cast<std::uint32_t>(sites_.size());
    const probe::CallInfo& info = *calls()[static_cast<std::size_t>(probe::call_of(slot))];
    CallSite site;
    site.stack = probe::number_of(slot);
    site.call = info.call;
    site.level = info.level;
    site.ledger = ledger_of(info.memory);
    site.device = static_cast<std::int8_t>(probe::device_of(slot));
    site.thread = probe::thread_of(slot);
    sites_.push_back(std::move(site));
    site_ids_.insert(hash, id);
  }
  last_key_ = key;
  return last_site_ = id;
}

void ProcessTrace::changed(CallSite& site, const Held& by, int sign) {
  site.live.bytes += sign * by.bytes;
  site.live.blocks += sign * by.blocks;
  live_[static_cast<std::size_t>(site.ledger)] += sign * by.bytes;
  if (sign < 0) {
    lower(site.low, site.live);
    lower(site.epoch, site.live);
  }
}

void ProcessTrace::now_backs(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + std::min(std::max<std::uint64_t>(bytes, 1), ~std::uint64_t{0} - address);
  if (address >= extent_begin_ && end <= extent_end_) return;
  if (!has_blocks_) {
    has_blocks_ = true;
    live_cells_[0].for_each([this](const Cell& cell) {
      if (sites_[cell.site].ledger == Ledger::device) extents_[cell.address].bytes = cell.bytes;
    });
  }
  auto at = extents_.upper_bound(address);
  if (at == extents_.begin()) return;
  --at;
  if (address - at->first >= at->second.bytes) return;
  extent_begin_ = extent_end_ = at->first;
  // Segments that grow are mapped piece by piece, and a block may lie in many pieces.
  for (; at != extents_.end() && at->first < end; ++at) {
    if (at->first == extent_end_) extent_end_ += at->second.bytes;
    Cell* const cell = live_cells_[0].find(at->first);
    if (cell == nullptr || cell->is_backing != 0) continue;
    // Its bytes are its blocks' from now on.
    cell->is_backing = 1;
    trail_unused_.erase(cell->address);
    const Held held = held_of(*cell);
    CallSite& site = sites_[cell->site];
    changed(site, held, -1);
    backing_bytes_ += held.bytes;
    if (visit_ != nullptr) remember((*visit_)(index_, site, at->first, last_us_, -held.bytes));
  }
}

void ProcessTrace::backs_one_less(std::uint64_t address, std::uint64_t now_us) {
  auto at = extents_.upper_bound(address);
  if (at == extents_.begin()) return;
  --at;
  if (address - at->first >= at->second.bytes || at->second.bound == 0 || --at->second.bound > 0) return;
  // Of what a sample left out, some may lie in it still.
  if (most_interval_ > 0) return;
  Cell* const cell = live_cells_[0].find(at->first);
  if (cell == nullptr || cell->is_backing == 0) return;
  cell->is_backing = 0;
  extent_begin_ = 1, extent_end_ = 0;
  const Held held = held_of(*cell);
  CallSite& site = sites_[cell->site];
  backing_bytes_ -= held.bytes;
  changed(site, held, 1);
  see_peak(now_us);
  if (!trail_.empty()) trail_unused_.emplace(cell->address, cell->site);
  if (visit_ != nullptr) remember((*visit_)(index_, site, cell->address, now_us, held.bytes));
}

void ProcessTrace::see_peak(std::uint64_t now_us) {
  if (live_[0] <= peak_bytes_) return;
  peak_bytes_ = live_[0];
  peak_us_ = now_us;
}

void ProcessTrace::give_back(AddressTable<Cell>& table, Cell* cell, std::uint64_t now_us) {
  const Held held = held_of(*cell);
  CallSite& site = sites_[cell->site];
  const bool is_driver = &table == live_cells_.data();
  if (is_driver && site.ledger == Ledger::device) {
    driver_bytes_ -= held.bytes;
    if (has_blocks_) {
      extents_.erase(cell->address);
      if (cell->address >= extent_begin_ && cell->address < extent_end_) extent_begin_ = 1, extent_end_ = 0;
    }
  }
  if (cell->is_backing != 0 && is_driver) {
    backing_bytes_ -= held.bytes;
  } else {
    if (cell->is_backing != 0) backed_bytes_ -= held.bytes;
    if (trail_.empty()) {
      trail_begin_us_ = now_us;
      trail_live_ = live_[0] + live_[1];
      trail_backing_ = backing_bytes_;
      trail_backed_ = backed_bytes_ + (cell->is_backing != 0 ? held.bytes : 0);
      trail_freed_ = 0;
      trail_stretches_ = stretch_ends_us_.size();
      trail_blocks_ = live_cells_[0].size() + live_cells_[1].size();
    }
    changed(site, held, -1);
    // What became unused since then was not its site's when the trail began.
    if (cell->time_us <= trail_begin_us_ && !(is_driver && trail_unused_.erase(cell->address) > 0)) {
      const LiveTold::Told* const told = live_told_.find(cell->address);
      trail_.push_back({cell->site, cell->time_us, held, told == nullptr ? std::nullopt : std::optional(*told)});
      trail_freed_ += held.bytes;
    }
    live_told_.gave_back(cell->address);
    if (is_in_epoch_ && cell->time_us < epoch_begin_us_) ++site.returned;
    if (visit_ != nullptr) remember((*visit_)(index_, site, cell->address, now_us, -held.bytes));
  }
  const bool is_bound_block = !is_driver && cell->is_backing != 0 && is_bound(site.call);
  const std::uint64_t address = cell->address;
  table.erase(cell);
  if (is_bound_block) backs_one_less(address, now_us);
}

void ProcessTrace::allocated(const probe::Slot& slot) {
  const probe::CallInfo* const info = calls()[static_cast<std::size_t>(probe::call_of(slot))];
  if (info == nullptr) return;
  const std::uint64_t now_us = probe::time_us_of(slot);
  last_us_ = std::max(last_us_, now_us);
  if (!wanted_.empty()) take_moments(now_us);
  const std::uint64_t bytes = std::min(slot.bytes, kMostBytes);
  AddressTable<Cell>& table = live_cells_[static_cast<std::size_t>(info->level)];
  if (Cell* const old = table.find(slot.address)) {
    ++replaced_;  // its free was never seen
    give_back(table, old, now_us);
  }
  const std::uint32_t id = site_of(slot);
  Cell cell;
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
    cell.is_backing = slot.address >= extent_begin_ && slot.address < extent_end_ ? 1 : 0;
    if (cell.is_backing != 0 && is_bound(info->call)) ++std::prev(extents_.upper_bound(slot.address))->second.bound;
  }
  table.put(cell);
  const Held held = held_of(cell);
  CallSite& site = sites_[id];
  if (site.allocations++ == 0) site.first_us = now_us;
  site.last_us = now_us;
  if (passing_.size() < kMostPassing)
    passing_.push_back({now_us, id});
  else
    passing_[passing_next_++ % kMostPassing] = {now_us, id};
  changed(site, held, 1);
  if (cell.is_backing != 0) backed_bytes_ += held.bytes;
  if (info->level == Level::driver && site.ledger == Ledger::device) {
    driver_bytes_ += held.bytes;
    if (has_blocks_) extents_[slot.address] = {bytes, 0};
  }
  see_peak(now_us);
  // If allocations follow, it was not the exit, unless they are tiny and most memory is gone already.
  if (!is_ending_ && !trail_.empty() &&
      (2 * trail_freed_ < trail_live_ || 100 * held.bytes > trail_live_ || trail_.size() > 1000 + 2 * trail_blocks_))
    forget_trail();
  if (visit_ != nullptr) remember((*visit_)(index_, site, slot.address, now_us, held.bytes));
  count_event();
}

void ProcessTrace::freed(const probe::Slot& slot) {
  const probe::CallInfo* const info = calls()[static_cast<std::size_t>(probe::call_of(slot))];
  if (info == nullptr) return;
  const std::uint64_t now_us = probe::time_us_of(slot);
  last_us_ = std::max(last_us_, now_us);
  if (!wanted_.empty()) take_moments(now_us);
  AddressTable<Cell>& table = live_cells_[static_cast<std::size_t>(info->level)];
  if (Cell* const cell = table.find(slot.address)) {
    give_back(table, cell, now_us);
  } else {
    freed_of_before_.bytes += static_cast<std::int64_t>(std::min(slot.bytes, kMostBytes));
    ++freed_of_before_.blocks;
  }
  count_event();
}

void ProcessTrace::count_event() {
  ++events_;
  if (++open_events_ >= stretch_events_) close_stretch();
}

void ProcessTrace::close_stretch() {
  const std::size_t index = stretch_ends_us_.size();
  for (CallSite& site : sites_) {
    push_floor(site.stretches, site.first_stretch, index, site.low);
    site.low = site.live;
  }
  stretch_ends_us_.push_back(last_us_);
  open_events_ = 0;
  while (stretch_ends_us_.size() >= (sites_.size() > kMostFineSites ? kMostStretches : kMostFineStretches))
    join_stretches();
}

void ProcessTrace::join_stretches() {
  for (CallSite& site : sites_) join_pairs(site.stretches, site.first_stretch);
  std::vector<std::uint64_t> ends;
  for (std::size_t i = 1; i < stretch_ends_us_.size(); i += 2) ends.push_back(stretch_ends_us_[i]);
  stretch_ends_us_ = std::move(ends);
  stretch_events_ *= 2;
  trail_stretches_ /= 2;
}

void ProcessTrace::mark(std::uint32_t number, std::uint64_t time_us) {
  last_us_ = std::max(last_us_, time_us);
  std::string name = printable(text(number));
  const std::uint64_t count = ++mark_counts_[name];
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    if (!wanted_[i].time_us && wanted_[i].mark == name && wanted_[i].number == count) take_moment(i, name, time_us);
  if (marks_.size() < kMostMarks) marks_.push_back({name, time_us, live_[0], {}});
  if (is_in_epoch_ && ++open_marks_ < epoch_marks_) return;
  if (is_in_epoch_) close_epoch();
  is_in_epoch_ = true;
  open_marks_ = 0;
  epoch_begin_us_ = time_us;
  epoch_names_.push_back(without_digits(name));
  for (CallSite& site : sites_) site.epoch = site.live;
}

void ProcessTrace::close_epoch() {
  const std::size_t index = epoch_names_.size() - 1;
  for (CallSite& site : sites_) push_floor(site.epochs, site.first_epoch, index, site.epoch);
  if (epoch_names_.size() < kMostEpochs) return;
  for (CallSite& site : sites_) join_pairs(site.epochs, site.first_epoch);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < epoch_names_.size(); i += 2) names.push_back(epoch_names_[i]);
  epoch_names_ = std::move(names);
  epoch_marks_ *= 2;  // those to come are as long
}

void ProcessTrace::label(const probe::Slot& slot) {
  const auto category = parse_category(text(static_cast<std::uint32_t>(slot.bytes)));
  // A segment and its first block share an address: what was reported is about the block.
  const Cell* cell = live_cells_[static_cast<std::size_t>(Level::block)].find(slot.address);
  if (cell == nullptr) cell = live_cells_[static_cast<std::size_t>(Level::driver)].find(slot.address);
  if (!category || cell == nullptr) return;
  const Held held = held_of(*cell);
  live_told_.tell(slot.address, {cell->site, *category, probe::number_of(slot), held.bytes, held.blocks});
}

/// A look that is cut off by the end of the trace is none.
void ProcessTrace::kept(const probe::Slot& slot) {
  const std::uint32_t number = probe::number_of(slot);
  const std::uint8_t flags = probe::flags_of(slot);
  if ((flags & probe::kLookEnd) == 0) {
    const Cell* cell = live_cells_[static_cast<std::size_t>(Level::block)].find(slot.address);
    if (cell == nullptr) cell = live_cells_[static_cast<std::size_t>(Level::driver)].find(slot.address);
    if (cell == nullptr || open_look_.size() >= kMostKept) return;
    open_look_.push_back({number, cell->site, flags, slot.address, cell->time_us, held_of(*cell), slot.bytes});
    return;
  }
  last_look_ = {probe::time_us_of(slot), slot.address != 0 || slot.bytes != 0, std::string(printable(text(number)))};
  if (last_look_->was_made) end_look(last_look_->time_us - std::min(slot.bytes, last_look_->time_us));
  open_look_.clear();
}

void ProcessTrace::end_look(std::uint64_t begun_us) {
  site_looks_.assign(sites_.size(), {});
  for (std::size_t i = 0; i < sites_.size(); ++i) site_looks_[i].live_blocks = sites_[i].live.blocks;
  std::map<std::uint32_t, std::int64_t> named;  // bytes of the sample, by text
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<const KeptBlock*>>> by_site;
  for (const KeptBlock& block : open_look_) {
    if ((block.flags & probe::kUnheldBlock) != 0) {
      ++site_looks_[block.site].unheld;
    } else if ((block.flags & probe::kUnaskedBlock) != 0) {
      ++site_looks_[block.site].unasked;
    } else {
      named[block.text] += block.held.bytes;
      by_site[block.site][block.text].push_back(&block);
    }
  }
  for (auto& [site, by_text] : by_site) {
    std::vector<std::pair<FoundKeeper, std::set<std::uint64_t>>> found;
    for (auto& [number, blocks] : by_text) {
      auto& [keeper, addresses] = found.emplace_back();
      std::vector<std::uint64_t> births_us;
      for (const KeptBlock* block : blocks) {
        addresses.insert(block->address);
        births_us.push_back(block->time_us);
        keeper.stands_for.bytes += block->held.bytes;
        keeper.stands_for.blocks += block->held.blocks;
      }
      const double factor = static_cast<double>(std::min(blocks.front()->all_bytes, kMostBytes)) /
                            static_cast<double>(std::max<std::int64_t>(1, named[number]));
      for (std::int64_t* each : {&keeper.stands_for.bytes, &keeper.stands_for.blocks})
        *each = std::llround(std::min(static_cast<double>(*each) * factor, static_cast<double>(kMostBytes)));
      std::sort(births_us.begin(), births_us.end());
      keeper.first_us = births_us.front();
      keeper.middle_us = births_us[births_us.size() / 2];
      keeper.last_us = births_us.back();
      keeper.words = printable(text(number));
      keeper.is_rooted = (blocks.front()->flags & probe::kRootedKeeper) != 0;
      keeper.has_graphs = (blocks.front()->flags & probe::kGraphKeeper) != 0;
      keeper.blocks = addresses.size();
      keeper.looked_us = begun_us;
      keeper.live_blocks = sites_[site].live.blocks;
    }
    order(found, [](const auto& a, const auto& b) {
      return std::pair(a.first.is_rooted, a.first.blocks) > std::pair(b.first.is_rooted, b.first.blocks);
    });
    std::vector<FoundKeeper>& its = keepers_[site];
    // A circle may outlive the function whose variable led to it, until the garbage collector finds it.
    const auto is_known = [](const FoundKeeper& keeper) { return keeper.is_rooted && keeper.blocks > 1; };
    const bool is_rooted =
        std::any_of(found.begin(), found.end(), [](const auto& each) { return each.first.is_rooted; });
    if (!is_rooted && std::any_of(its.begin(), its.end(), is_known)) continue;
    its.clear();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto keeps_the_same = [&](const auto& other) {
        const auto in_both = std::count_if(found[i].second.begin(), found[i].second.end(),
                                           [&](std::uint64_t address) { return other.second.contains(address); });
        return 4 * static_cast<std::size_t>(in_both) > found[i].second.size();
      };
      if (std::none_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(i), keeps_the_same))
        its.push_back(found[i].first);
    }
  }
}

void ProcessTrace::lacked(const probe::Slot& slot) {
  const probe::CallInfo* info = probe::info_of(probe::call_of(slot));
  if (info == nullptr) return;
  std::optional<MemoryFailure>& failure = info->level == probe::Level::block ? block_failure_ : driver_failure_;
  if (failure) return;
  failure.emplace();
  failure->time_us = probe::time_us_of(slot);
  failure->asked_bytes = slot.bytes;
  failure->figure_bytes = slot.address;
  failure->is_refused = probe::record_of(slot) == Record::refused;
  // A framework's error follows the refusal that led to it.
  if (info->level == probe::Level::block && driver_failure_ && driver_failure_->is_refused) {
    failure->is_refused = true;
    failure->figure_bytes = driver_failure_->figure_bytes;
  }
  failure->limit_bytes = limit_;
  failure->device = probe::device_of(slot);
  failure->call = info->call;
  failure->stack = probe::number_of(slot);
  failure->live_bytes = live_[0];
  failure->backing_bytes = backing_bytes_;
  failure->cached_bytes = cached_bytes();
  for (const CallSite& site : sites_) failure->sites.push_back(site.live);
}

void ProcessTrace::take_moments(std::uint64_t now_us) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const auto& time_us = wanted_[i].time_us;
    if (time_us && *time_us <= now_us && !moments_[i])
      take_moment(i, fmt::format("{:.3f}s", static_cast<double>(*time_us) * 1e-6), *time_us);
  }
}

void ProcessTrace::take_moment(std::size_t index, std::string name, std::uint64_t time_us) {
  TraceMark& moment = moments_[index].emplace(TraceMark{std::move(name), time_us, live_[0], {}});
  for (const CallSite& site : sites_) moment.sites.push_back(site.live);
}

void ProcessTrace::take(const ProbeReading& reading) {
  if (!reading.process_bytes || readings_.size() >= kMostReadings) return;
  readings_.push_back({reading.realtime_us, *reading.process_bytes, driver_bytes_});
}

void ProcessTrace::finish(std::uint64_t end_us) {
  take_moments(end_us);
  at_exit_.reserve(sites_.size());
  for (const CallSite& site : sites_) at_exit_.push_back(goes_on_ ? Held{} : site.live);
  shown_us_ = last_us_;
  fine_in_stretch_ = 1;
  while (stretch_ends_us_.size() / fine_in_stretch_ >= kMostStretches) fine_in_stretch_ *= 2;
  fine_stretches_ = stretch_ends_us_.size();
  has_exit_ = !trail_.empty() && (is_ending_ || 2 * trail_freed_ >= trail_live_);
  for (CallSite& site : sites_) site.oldest_us = ~std::uint64_t{0};
  const auto see = [this](std::uint32_t id, std::uint64_t time_us) {
    sites_[id].oldest_us = std::min(sites_[id].oldest_us, time_us);
  };
  for (const auto& table : live_cells_) table.for_each([&](const Cell& cell) { see(cell.site, cell.time_us); });
  live_told_.for_each([this](const LiveTold::Told& told) { told_.push_back(told); });
  if (has_exit_) {
    shown_us_ = trail_begin_us_;
    backing_bytes_ = trail_backing_;
    backed_bytes_ = trail_backed_;
    fine_stretches_ = std::min(fine_stretches_, trail_stretches_);
    for (const Returned& returned : trail_) {
      changed(sites_[returned.site], returned.held, 1);
      see(returned.site, returned.time_us);
      if (returned.told) told_.push_back(*returned.told);
    }
    for (const auto& [address, place] : trail_unused_)
      if (const Cell* const cell = live_cells_[0].find(address)) changed(sites_[place], held_of(*cell), -1);
    // The last epoch ended with it.
    if (is_in_epoch_ && trail_begin_us_ >= epoch_begin_us_)
      for (CallSite& site : sites_) site.epoch = site.live;
  }
  see_blocks();
  trail_ = {};
  trail_unused_ = {};
  if (is_in_epoch_) close_epoch();
  // The most frequent name defines the epochs.
  std::map<std::string, std::size_t> counts;
  for (const std::string& name : epoch_names_) ++counts[name];
  std::size_t most = 0;
  for (const auto& [name, count] : counts)
    if (count > most) {
      most = count;
      epoch_name_ = name;
    }
  if (most < kLeastEpochs) return;
  for (std::size_t i = 0; i < epoch_names_.size(); ++i) {
    if (epoch_names_[i] == epoch_name_) epoch_bounds_.emplace_back(i, i + 1);
    if (!epoch_bounds_.empty()) epoch_bounds_.back().second = i + 1;
  }
}

void ProcessTrace::see_blocks() {
  if (passing_next_ > 0) std::rotate(passing_.begin(), passing_.begin() + passing_next_ % kMostPassing, passing_.end());
  // The records of threads may be a little out of order.
  std::stable_sort(passing_.begin(), passing_.end(),
                   [](const Passing& a, const Passing& b) { return a.time_us < b.time_us; });
  std::vector<Passing> births;
  for (std::size_t level = 0; level < live_cells_.size(); ++level)
    live_cells_[level].for_each([&](const Cell& cell) {
      const bool is_segment = level == static_cast<std::size_t>(Level::driver) && cell.is_backing != 0;
      if (!is_segment) births.push_back({cell.time_us, cell.site});
    });
  if (has_exit_)
    for (const Returned& returned : trail_) births.push_back({returned.time_us, returned.site});
  const auto is_later = [](const Passing& a, const Passing& b) { return a.time_us > b.time_us; };
  if (births.size() > kMostBirths) {
    std::nth_element(births.begin(), births.begin() + kMostBirths, births.end(), is_later);
    births.resize(kMostBirths);
  }
  blocks_.resize(sites_.size());
  for (const Passing& birth : births) blocks_[birth.site].births_us.push_back(birth.time_us);
  for (SiteBlocks& each : blocks_) std::sort(each.births_us.begin(), each.births_us.end());
  if (has_exit_)
    for (std::size_t i = 0; i < trail_.size(); ++i)
      blocks_[trail_[i].site].deaths.push_back(static_cast<std::uint32_t>(i));
}

std::vector<Floor> ProcessTrace::fine_stretches(const CallSite& site) const {
  std::vector<Floor> out;
  for (std::size_t i = 0; i < fine_stretches_; ++i) out.push_back(floor_at(site.stretches, site.first_stretch, i));
  return out;
}

std::vector<Floor> ProcessTrace::stretches(const CallSite& site) const {
  const std::vector<Floor> fine = fine_stretches(site);
  const std::size_t count = stretch_count();
  return joined_floors(std::span(fine).first(count * fine_in_stretch_), count);
}

double ProcessTrace::judged_s() const {
  const std::size_t count = stretch_count();
  if (count < 2) return 0;
  const std::size_t parts = std::min(kRunParts, count);
  const std::size_t first = count * (parts / 6 + 1) / parts - 1;
  const auto end_us = [this](std::size_t stretch) { return stretch_ends_us_[(stretch + 1) * fine_in_stretch_ - 1]; };
  return static_cast<double>(end_us(count - 1) - end_us(first)) * 1e-6;
}

std::vector<Floor> ProcessTrace::epochs(const CallSite& site) const {
  std::vector<Floor> out;
  for (const auto& [from, to] : epoch_bounds_) {
    Floor least = floor_at(site.epochs, site.first_epoch, from);
    for (std::size_t i = from; i < to; ++i) {
      const Floor floor = floor_at(site.epochs, site.first_epoch, i);
      least = {std::min(least.bytes, floor.bytes), std::min(least.blocks, floor.blocks)};
    }
    out.push_back(least);
  }
  if (out.size() > kMostStretches) out = joined_floors(out, kMostStretches / 2);
  return out;
}

std::int64_t ProcessTrace::cached_bytes() const {
  return std::max<std::int64_t>(0, backing_bytes_ - backed_bytes_);
}

}  // namespace vramtrack::trace
