#include "trace/snapshot_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "trace/pickle_machine.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::uint32_t kMostDevices = 4096;  ///< far more than a machine has; each costs some 100 bytes

constexpr std::array<std::string_view, 20> kRoleNames = {"value",
                                                         "snapshot",
                                                         "list of segments",
                                                         "segment",
                                                         "list of blocks",
                                                         "block",
                                                         "history",
                                                         "history item",
                                                         "list of frames",
                                                         "frame",
                                                         "traceback of the forward pass",
                                                         "list of traces",
                                                         "trace",
                                                         "trace entry",
                                                         "settings",
                                                         "list of annotations",
                                                         "annotation",
                                                         "note of an oom",
                                                         "list of categories",
                                                         "category of a block"};

}  // namespace

// One list for enum and table (clang-format does not converge on it).
// clang-format off
#define VRAMTRACK_SNAPSHOT_WORDS(X) \
  X(segments) X(device_traces) X(host_segments) X(host_traces) X(allocator_settings) X(external_annotations) \
  X(device) X(address) X(total_size) X(allocated_size) X(active_size) X(requested_size) X(stream) \
  X(segment_type) X(segment_pool_id) X(is_expandable) X(frames) X(blocks) X(size) X(state) X(history) X(addr) \
  X(real_size) X(action) X(device_free) X(time_us) X(name) X(filename) X(line) X(stage) \
  X(PYTORCH_CUDA_ALLOC_CONF) X(max_split_size) X(garbage_collection_threshold) X(expandable_segments) X(large) \
  X(small) X(active_allocated) X(active_pending_free) X(active_awaiting_free) X(inactive) X(alloc) \
  X(free_requested) X(free_completed) X(segment_alloc) X(segment_free) X(segment_map) X(segment_unmap) \
  X(snapshot) X(oom) X(annotate) X(user_defined) X(END) X(START) X(user_metadata) X(internal_metadata) X(compile_context) \
  X(pool_id) X(vramtrack_oom) X(asked_bytes) X(device_free_bytes) X(device_total_bytes) X(allowed_bytes) \
  X(vramtrack_categories) X(category) X(forward_frames)
// clang-format on

enum SnapshotSchema::Word : std::uint8_t {
  kNoWord,
#define X(word) k_##word,
  VRAMTRACK_SNAPSHOT_WORDS(X)
#undef X
};

namespace {

constexpr std::string_view kWords[] = {
#define X(word) #word,
    VRAMTRACK_SNAPSHOT_WORDS(X)
#undef X
};
static_assert(std::size(kWords) < 96);

// The index of each dict's fields in Slot::fields.
namespace segment {
enum : std::uint8_t { device, address, total, stream, type, pool, expandable, frames, blocks };
}
namespace block {
enum : std::uint8_t { address, size, requested, state, frames, history, forward };
}
namespace event {
enum : std::uint8_t {
  action,
  address,
  device_free,
  size,
  stream,
  time_us,
  frames,
  metadata,
  internal,
  compile,
  pool,
  forward
};
}
namespace item {
enum : std::uint8_t { address, real_size, frames };
}
namespace frame {
enum : std::uint8_t { name, file, line };
}
namespace settings {
enum : std::uint8_t { text, split, collect, expandable };
}
namespace annotation {
enum : std::uint8_t { name, stage, device, time_us };
}
namespace reported {
enum : std::uint8_t { address, category, name };
}
namespace oom_note {
enum : std::uint8_t { device, asked, device_free, device_total, allowed };
}

}  // namespace

SnapshotSchema::SnapshotSchema(Snapshot& snapshot, Symbols& symbols, const ReadOptions& options)
    : snapshot_(snapshot), symbols_(symbols), keep_events_(options.keep_events) {
  std::uint8_t number = 0;
  for (const std::string_view text : kWords) {
    const std::uint32_t id = index_of(symbols.intern(text));
    if (id >= words_.size()) words_.resize(id + 1);
    words_[id] = ++number;
  }
  const auto field = [this](Role role, Word key, Kind kind, std::uint8_t index, bool signed_ok = false) {
    fields_[role][key] = {kind, index, signed_ok};
  };
  for (const Word key : {k_segments, k_device_traces, k_host_segments, k_host_traces, k_allocator_settings,
                         k_external_annotations, k_vramtrack_oom, k_vramtrack_categories})
    field(kRoot, key, Kind::record, 0);
  field(kSegment, k_device, Kind::integer, segment::device, true);
  field(kSegment, k_address, Kind::integer, segment::address);
  field(kSegment, k_total_size, Kind::integer, segment::total);
  field(kSegment, k_stream, Kind::integer, segment::stream, true);
  field(kSegment, k_segment_type, Kind::string, segment::type);
  field(kSegment, k_segment_pool_id, Kind::pool, segment::pool);
  field(kSegment, k_is_expandable, Kind::boolean, segment::expandable);
  field(kSegment, k_frames, Kind::stack, segment::frames);
  field(kSegment, k_blocks, Kind::record, segment::blocks);
  field(kBlock, k_address, Kind::integer, block::address);
  field(kBlock, k_size, Kind::integer, block::size);
  field(kBlock, k_requested_size, Kind::integer, block::requested);
  field(kBlock, k_state, Kind::string, block::state);
  field(kBlock, k_frames, Kind::stack, block::frames);
  field(kBlock, k_history, Kind::item, block::history);
  field(kBlock, k_forward_frames, Kind::stack, block::forward);
  field(kHistoryItem, k_addr, Kind::integer, item::address);
  field(kHistoryItem, k_real_size, Kind::integer, item::real_size);
  field(kHistoryItem, k_frames, Kind::stack, item::frames);
  field(kEvent, k_action, Kind::string, event::action);
  field(kEvent, k_addr, Kind::integer, event::address);
  field(kEvent, k_device_free, Kind::integer, event::device_free);
  field(kEvent, k_size, Kind::integer, event::size);
  field(kEvent, k_stream, Kind::integer, event::stream, true);
  field(kEvent, k_time_us, Kind::integer, event::time_us, true);
  field(kEvent, k_frames, Kind::stack, event::frames);
  field(kEvent, k_forward_frames, Kind::stack, event::forward);
  field(kEvent, k_user_metadata, Kind::label, event::metadata);
  field(kEvent, k_internal_metadata, Kind::label, event::internal);
  field(kEvent, k_compile_context, Kind::label, event::compile);
  field(kEvent, k_pool_id, Kind::pool, event::pool);
  field(kFrame, k_name, Kind::string, frame::name);
  field(kFrame, k_filename, Kind::string, frame::file);
  field(kFrame, k_line, Kind::integer, frame::line, true);
  field(kSettings, k_PYTORCH_CUDA_ALLOC_CONF, Kind::string, settings::text);
  field(kSettings, k_max_split_size, Kind::integer, settings::split, true);
  field(kSettings, k_garbage_collection_threshold, Kind::real, settings::collect);
  field(kSettings, k_expandable_segments, Kind::boolean, settings::expandable);
  field(kAnnotation, k_name, Kind::string, annotation::name);
  field(kAnnotation, k_stage, Kind::string, annotation::stage);
  field(kAnnotation, k_device, Kind::integer, annotation::device, true);
  field(kAnnotation, k_time_us, Kind::integer, annotation::time_us, true);
  field(kOomNote, k_device, Kind::integer, oom_note::device);
  field(kOomNote, k_asked_bytes, Kind::integer, oom_note::asked);
  field(kOomNote, k_device_free_bytes, Kind::integer, oom_note::device_free);
  field(kOomNote, k_device_total_bytes, Kind::integer, oom_note::device_total);
  field(kOomNote, k_allowed_bytes, Kind::integer, oom_note::allowed);
  field(kReportedBlock, k_address, Kind::integer, reported::address);
  field(kReportedBlock, k_category, Kind::label, reported::category);
  field(kReportedBlock, k_name, Kind::label, reported::name);
  no_compile_context_ = symbols.intern("N/A");
}

std::uint8_t SnapshotSchema::role_of(const Slot& parent, StringId key, bool is_dict) const {
  if (is_dict) {
    switch (parent.role) {
      case kSegments:
        return kSegment;
      case kBlocks:
        return kBlock;
      case kHistory:
        return kHistoryItem;
      case kFrames:
        return kFrame;
      case kTrace:
        return kEvent;
      case kTraces:
        return parent.is_host ? kEvent : kNone;  // host traces have no device, so there is no list per device
      case kAnnotations:
        return kAnnotation;
      case kReports:
        return kReportedBlock;
      case kRoot:
        return word(key) == k_allocator_settings ? kSettings : word(key) == k_vramtrack_oom ? kOomNote : kNone;
      default:
        return kNone;
    }
  }
  switch (parent.role) {
    case kTraces:
      return kTrace;
    case kRoot:
      switch (word(key)) {
        case k_segments:
        case k_host_segments:
          return kSegments;
        case k_device_traces:
        case k_host_traces:
          return kTraces;
        case k_external_annotations:
          return kAnnotations;
        case k_vramtrack_categories:
          return kReports;
        default:
          return kNone;
      }
    case kSegment:
      return word(key) == k_blocks ? kBlocks : word(key) == k_frames ? kFrames : kNone;
    case kBlock:
      if (word(key) == k_history) return kHistory;
      [[fallthrough]];
    case kEvent:
      if (word(key) == k_forward_frames) return kForward;
      [[fallthrough]];
    case kHistoryItem:
      return word(key) == k_frames ? kFrames : kNone;
    default:
      return kNone;
  }
}

void SnapshotSchema::opened(Slot& child, const Slot* parent, StringId key, std::uint64_t position) {
  child.present = 0;
  child.negative = 0;
  child.is_filled = false;
  child.is_host = parent != nullptr && parent->is_host;
  child.index = parent != nullptr ? parent->index : 0;
  switch (child.role) {
    case kFrames:
    case kForward:
      child.frames.clear();
      break;
    case kSegments:
    case kTraces:
      child.index = 0;
      child.is_host = parent != nullptr && (word(key) == k_host_segments || word(key) == k_host_traces);
      if (parent == nullptr) snapshot_.is_bare_list = true;
      break;
    case kEvent:
      if (parent->role == kTraces) {
        child.index = 0;
        host_events_are_flat_ = true;
      }
      break;
    case kTrace:
      // Count the lists that were appended before, and those that wait on the stack.
      child.index = static_cast<std::uint32_t>(parent->index + position);
      if (child.index < kMostDevices) trace_at(child.is_host, child.index);  // more are refused when appended
      break;
    case kSegment:
    case kBlocks:
      child.first_block = snapshot_.blocks.size();
      break;
    case kBlock:
      history_.clear();
      break;
    default:
      break;
  }
}

bool SnapshotSchema::wrong(const Slot& slot, StringId key, Value value, std::string_view expected) {
  return bad(fmt::format("'{}' of a {} is {}; expected {}", symbols_.text(key), kRoleNames[slot.role],
                         tag_words(value.tag), expected));
}

bool SnapshotSchema::set(Slot& slot, StringId key, Value value) {
  const Field field = fields_[slot.role][word(key)];
  if (field.kind == Kind::skip || value.tag == Tag::none) return true;
  std::uint64_t bits = value.bits;
  switch (field.kind) {
    case Kind::integer:
      if (value.tag == Tag::boolean) break;
      if (value.tag != Tag::integer) return wrong(slot, key, value, "an integer of at most 64 bits");
      if (value.negative && !field.signed_ok) return wrong(slot, key, value, "a number that is not negative");
      break;
    case Kind::boolean:
      if (value.tag != Tag::boolean && value.tag != Tag::integer) return wrong(slot, key, value, "a boolean");
      break;
    case Kind::real:
      if (value.tag == Tag::integer) bits = std::bit_cast<std::uint64_t>(static_cast<double>(value.bits));
      if (value.tag != Tag::real && value.tag != Tag::integer) return wrong(slot, key, value, "a float");
      break;
    case Kind::string:
      if (value.tag != Tag::string) return wrong(slot, key, value, "a string");
      break;
    case Kind::label:
      if (value.tag != Tag::string) return true;  // ignore a label of another kind
      break;
    case Kind::stack:
      if (value.tag == Tag::record && bits == 0) break;
      if (value.tag != Tag::stack) return wrong(slot, key, value, "a list of frames");
      break;
    case Kind::pool:
      if (value.tag != Tag::pair) return true;  // ids of more than 32 bits, or none
      break;
    case Kind::record:
      if (value.tag != Tag::record && (value.tag != Tag::repeated || bits != 0))
        return wrong(slot, key, value, "a list or dict as PyTorch writes it");
      slot.is_filled = true;
      break;
    case Kind::item:
      if (value.tag == Tag::repeated && bits == 0) return true;
      if (value.tag != Tag::item && value.tag != Tag::record)
        return wrong(slot, key, value, "a list as PyTorch writes it");
      if (value.tag == Tag::record) return true;
      break;
    case Kind::skip:
      break;
  }
  const unsigned bit = 1U << field.index;
  slot.fields[field.index] = bits;
  slot.present = static_cast<std::uint16_t>(slot.present | bit);
  slot.negative = static_cast<std::uint16_t>(value.negative ? slot.negative | bit : slot.negative & ~bit);
  return true;
}

bool SnapshotSchema::append(Slot& slot, Value value) {
  if (slot.role == kFrames) {
    if (value.tag != Tag::frame)
      return bad(
          fmt::format("a list of frames holds {}; expected a dict with name, filename and line", tag_words(value.tag)));
    slot.frames.push_back(static_cast<FrameId>(value.bits));
    return true;
  }
  if (slot.role == kForward) {
    // Leave out other types: these lines are text for a person.
    if (value.tag == Tag::string)
      if (const auto frame = traceback_frame(symbols_.text(static_cast<StringId>(value.bits))))
        slot.frames.push_back(*frame);
    return true;
  }
  if (slot.role == kHistory) {
    if (value.tag != Tag::item) return bad(fmt::format("a history holds {}", tag_words(value.tag)));
    // The first is the latest and the block's own; the others describe earlier blocks there.
    if (!slot.has(0)) {
      slot.present = 1;
      slot.fields[0] = value.bits;
    }
    return true;
  }
  const bool is_flat = slot.is_host && host_events_are_flat_;
  if (slot.role == kTraces && !is_flat && ++slot.index > kMostDevices)
    return bad(fmt::format("traces of more than {} devices: this is not a snapshot", kMostDevices));
  if (value.tag == Tag::repeated && value.bits == 0) return true;
  if (value.tag != Tag::record) return bad(fmt::format("a {} holds {}", kRoleNames[slot.role], tag_words(value.tag)));
  slot.is_filled = true;
  return true;
}

bool SnapshotSchema::seal(Slot& slot, Value& out) {
  out = {slot.is_filled || slot.present != 0 ? 1U : 0U, Tag::record};
  switch (slot.role) {
    case kFrame:
      out = {index_of(symbols_.intern(Frame{
                 static_cast<StringId>(slot.get(frame::name)), static_cast<StringId>(slot.get(frame::file)),
                 (slot.negative >> frame::line & 1U) != 0 ? 0U : static_cast<std::uint32_t>(slot.get(frame::line))})),
             Tag::frame};
      return true;
    case kForward:
      std::reverse(slot.frames.begin(), slot.frames.end());  // a traceback ends with the innermost frame
      [[fallthrough]];
    case kFrames:
      out = {index_of(symbols_.intern(slot.frames)), Tag::stack};
      return true;
    case kHistoryItem:
      out = {history_.size(), Tag::item};
      history_.push_back({slot.get(item::address), slot.get(item::real_size),
                          static_cast<StackId>(slot.get(item::frames, index_of(kNoStack)))});
      return true;
    case kHistory:
      if (slot.has(0)) out = {slot.fields[0], Tag::item};
      return true;
    case kEvent:
      return seal_event(slot);
    case kBlock:
      return seal_block(slot);
    case kSegment:
      return seal_segment(slot);
    case kSettings:
      seal_settings(slot);
      return true;
    case kOomNote:
      seal_oom_note(slot);
      return true;
    case kReportedBlock:
      if (const auto category = parse_category(symbols_.text(static_cast<StringId>(slot.get(reported::category)))))
        reported_.push_back({slot.get(reported::address), *category, static_cast<StringId>(slot.get(reported::name))});
      return true;
    case kAnnotation:
      snapshot_.annotations.push_back(
          {static_cast<std::int64_t>(slot.get(annotation::time_us, static_cast<std::uint64_t>(kNoTime))),
           static_cast<StringId>(slot.get(annotation::name)), static_cast<std::uint32_t>(slot.get(annotation::device)),
           word(static_cast<StringId>(slot.get(annotation::stage))) != k_END});
      return true;
    case kRoot:
      has_snapshot_ = slot.is_filled;
      return true;
    case kSegments:
      if (snapshot_.is_bare_list) has_snapshot_ = slot.is_filled;
      return true;
    default:
      return true;
  }
}

std::optional<FrameId> SnapshotSchema::traceback_frame(std::string_view text) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kName = ", in ";
  const std::size_t file = text.find(kFile);
  if (file == std::string_view::npos) return std::nullopt;
  const std::size_t line = text.find(kLine, file + kFile.size());
  if (line == std::string_view::npos) return std::nullopt;
  std::uint32_t number = 0;
  const char* const digits = text.data() + line + kLine.size();
  const char* const after = std::from_chars(digits, text.data() + text.size(), number).ptr;
  if (after == digits || !text.substr(static_cast<std::size_t>(after - text.data())).starts_with(kName))
    return std::nullopt;
  std::string_view name = text.substr(static_cast<std::size_t>(after - text.data()) + kName.size());
  // Its source line follows, after a line feed that was replaced to make the text printable.
  name = name.substr(0, name.find_first_of("?\n "));
  const std::string_view path = text.substr(file + kFile.size(), line - file - kFile.size());
  // That line also holds memory of its own, at another site.
  return symbols_.intern(Frame{symbols_.intern(fmt::format("backward() of {}", name)), symbols_.intern(path), number});
}

StackId SnapshotSchema::stack_of(const Slot& slot, unsigned frames, unsigned forward) {
  const auto own = static_cast<StackId>(slot.get(frames, index_of(kNoStack)));
  const auto built = static_cast<StackId>(slot.get(forward, index_of(kNoStack)));
  if (built == kNoStack) return own;
  std::vector<FrameId> all(symbols_.stack(own).begin(), symbols_.stack(own).end());
  all.insert(all.end(), symbols_.stack(built).begin(), symbols_.stack(built).end());
  return symbols_.intern(all);
}

DeviceTrace& SnapshotSchema::trace_at(bool is_host, std::uint32_t index) {
  auto& traces = is_host ? snapshot_.host_traces : snapshot_.traces;
  while (traces.size() <= index) {
    traces.emplace_back();
    traces.back().device = static_cast<std::uint32_t>(traces.size() - 1);
  }
  return traces[index];
}

Origin SnapshotSchema::origin_of(const Slot& slot) const {
  Origin origin;
  origin.stream = static_cast<std::int64_t>(slot.get(event::stream));
  if (slot.has(event::pool)) origin.pool = {slot.fields[event::pool] >> 32, slot.fields[event::pool] & 0xffffffff};
  origin.metadata = static_cast<StringId>(slot.get(event::metadata));
  origin.internal = static_cast<StringId>(slot.get(event::internal));
  origin.compile_context = static_cast<StringId>(slot.get(event::compile));
  if (origin.compile_context == no_compile_context_) origin.compile_context = kNoText;
  return origin;
}

void SnapshotSchema::annotate_spans(const AllocEvent& event, std::uint32_t device) {
  const auto frames = symbols_.stack(event.stack);
  if (frames.empty()) return;
  const Frame& frame = symbols_.frame(frames.front());
  const std::uint8_t stage = word(frame.name);
  if (stage == k_START || stage == k_END)
    snapshot_.annotations.push_back({event.time_us, frame.file, device, stage == k_START});
}

bool SnapshotSchema::seal_event(Slot& slot) {
  if (slot.index >= kMostDevices) return bad(fmt::format("a trace of device {}: this is not a snapshot", slot.index));
  if (slot.present == 0) return bad("a trace entry without any field that one has: this is not a snapshot");
  AllocEvent event;
  const std::uint8_t action = slot.has(event::action) ? word(static_cast<StringId>(slot.fields[event::action])) : 0U;
  if (action >= k_alloc && action <= k_annotate) {
    event.action = static_cast<Action>(action - k_alloc);
  } else if (action != k_user_defined && unknown_actions_++ == 0) {
    unknown_action_ = slot.has(event::action) ? symbols_.text(static_cast<StringId>(slot.fields[event::action])) : "";
  }
  event.address = slot.get(event::address);
  if (event.action == Action::oom) event.address = slot.get(event::device_free);
  event.size_bytes = slot.get(event::size);
  event.time_us = static_cast<std::int64_t>(slot.get(event::time_us, static_cast<std::uint64_t>(kNoTime)));
  event.stack = stack_of(slot, event::frames, event::forward);
  const Origin origin = origin_of(slot);
  if (keep_events_ || origin.is_labelled()) event.origin = snapshot_.origins.intern(origin) & kOriginMask;
  // Before annotations had a list of their own (2.4), spans were entries with the name as their only frame.
  if (action == k_user_defined) annotate_spans(event, slot.index);
  // No memory is this large, and the sums must not overflow.
  if (event.size_bytes >> 56 != 0) return bad(fmt::format("a trace entry of {} bytes", event.size_bytes));

  DeviceTrace& trace = trace_at(slot.is_host, slot.index);
  ++trace.counts[static_cast<std::size_t>(event.action)];
  ++trace.event_count;
  if (event.time_us != kNoTime) {
    if (trace.first_time_us == kNoTime) trace.first_time_us = event.time_us;
    trace.last_time_us = event.time_us;
  }
  if (event.action == Action::alloc) {
    trace.net_bytes += static_cast<std::int64_t>(event.size_bytes);
    if (trace.net_bytes > trace.peak_net_bytes) {
      trace.peak_net_bytes = trace.net_bytes;
      trace.peak_event = trace.event_count;
    }
  } else if (event.action == Action::free_requested) {
    trace.net_bytes -= static_cast<std::int64_t>(event.size_bytes);
  }
  // Add up all entries, whatever their sign, so that no later sum of them can overflow.
  trace_bytes_ += event.size_bytes;
  if (trace_bytes_ >> 61 != 0) return bad("the sizes of the trace entries add up to more than any device can move");
  // The segments show the pool of their blocks; labelling by pool as well would track every block of a graph.
  if (!slot.is_host) labels_.take(slot.index, event, origin.is_labelled() ? origin : Origin{});
  if (keep_events_) trace.events.push_back(event);
  return true;
}

bool SnapshotSchema::seal_block(Slot& slot) {
  if (slot.present == 0) return bad("a block without any field that a block has: this is not a snapshot");
  Block block;
  block.address = slot.get(block::address);
  block.size_bytes = slot.get(block::size);
  block.stack = stack_of(slot, block::frames, block::forward);
  const std::uint8_t state = slot.has(block::state) ? word(static_cast<StringId>(slot.fields[block::state])) : 0U;
  if (state == k_active_allocated) {
    block.state = BlockState::active;
  } else if (state == k_active_pending_free || state == k_active_awaiting_free) {
    block.state = BlockState::pending_free;
  } else if (state != k_inactive && unknown_states_++ == 0) {
    unknown_state_ = slot.has(block::state) ? symbols_.text(static_cast<StringId>(slot.fields[block::state])) : "";
  }
  block.requested_bytes = block.size_bytes;
  if (slot.has(block::history) && slot.fields[block::history] < history_.size()) {
    const HistoryItem& latest = history_[slot.fields[block::history]];
    if (latest.real_bytes != 0) block.requested_bytes = latest.real_bytes;
    if (!slot.has(block::frames)) block.stack = latest.stack;
  }
  if (slot.has(block::requested)) block.requested_bytes = slot.fields[block::requested];
  if (block.state == BlockState::inactive) block.requested_bytes = 0;
  if (block.size_bytes >> 56 != 0) return bad(fmt::format("a block of {} bytes", block.size_bytes));
  if (block.requested_bytes > block.size_bytes) {
    block.requested_bytes = block.size_bytes;
    ++odd_blocks_;
  }
  snapshot_.blocks.push_back(block);
  history_.clear();
  return true;
}

bool SnapshotSchema::seal_segment(Slot& slot) {
  // Every PyTorch with snapshots writes both; the check also bounds the memory that a few bytes of a file can cost.
  if (!slot.has(segment::address) || !slot.has(segment::total))
    return bad("a segment without its address or total_size: this is not a snapshot");
  Segment segment;
  segment.device =
      (slot.negative >> segment::device & 1U) != 0 ? 0U : static_cast<std::uint32_t>(slot.get(segment::device));
  if (slot.get(segment::device) >> 16 != 0 && (slot.negative >> segment::device & 1U) == 0)
    return bad(fmt::format("a segment of device {}", slot.get(segment::device)));
  segment.address = slot.get(segment::address);
  segment.size_bytes = slot.get(segment::total);
  segment.stream = static_cast<std::int64_t>(slot.get(segment::stream));
  segment.is_large = !slot.has(segment::type) || word(static_cast<StringId>(slot.fields[segment::type])) != k_small;
  segment.is_expandable = slot.get(segment::expandable) != 0;
  segment.stack = static_cast<StackId>(slot.get(segment::frames, index_of(kNoStack)));
  if (slot.has(segment::pool))
    segment.pool = {slot.fields[segment::pool] >> 32, slot.fields[segment::pool] & 0xffffffff};
  segment.first_block = slot.first_block;
  segment.block_count = snapshot_.blocks.size() - slot.first_block;
  std::uint64_t blocks_bytes = 0;
  for (std::size_t i = segment.first_block; i < snapshot_.blocks.size(); ++i) {
    Block& block = snapshot_.blocks[i];
    if (block.address == 0) block.address = segment.address + blocks_bytes;
    blocks_bytes += block.size_bytes;
    if (blocks_bytes >> 60 != 0) return bad("a segment whose blocks add up to more than any device has");
  }
  if (segment.size_bytes >> 60 != 0) return bad(fmt::format("a segment of {} bytes", segment.size_bytes));
  if (!slot.has(segment::total)) segment.size_bytes = blocks_bytes;
  segment_bytes_ += std::max(segment.size_bytes, blocks_bytes);
  if (segment_bytes_ >> 61 != 0) return bad("the segments add up to more than any machine has");
  if (segment.block_count > 0 && blocks_bytes != segment.size_bytes) ++odd_segments_;
  (slot.is_host ? snapshot_.host_segments : snapshot_.segments).push_back(segment);
  return true;
}

void SnapshotSchema::seal_settings(const Slot& slot) {
  AllocatorSettings out;
  if (slot.has(settings::text)) out.text = symbols_.text(static_cast<StringId>(slot.fields[settings::text]));
  if (slot.has(settings::expandable)) out.expandable_segments = slot.fields[settings::expandable] != 0;
  if (slot.has(settings::split)) out.max_split_bytes = static_cast<std::int64_t>(slot.fields[settings::split]);
  if (slot.has(settings::collect))
    out.garbage_collection_threshold = std::bit_cast<double>(slot.fields[settings::collect]);
  snapshot_.settings = std::move(out);
}

void SnapshotSchema::seal_oom_note(const Slot& slot) {
  if (!slot.has(oom_note::asked)) return;
  OomNote out;
  out.device = static_cast<std::uint32_t>(std::min<std::uint64_t>(slot.get(oom_note::device), kMostDevices));
  // No device has more, and no sum of these may overflow.
  const auto bytes = [&slot](unsigned field) { return std::min<std::uint64_t>(slot.get(field), 1ULL << 56); };
  out.asked_bytes = bytes(oom_note::asked);
  out.device_free_bytes = bytes(oom_note::device_free);
  if (slot.has(oom_note::device_total)) out.device_total_bytes = bytes(oom_note::device_total);
  if (slot.has(oom_note::allowed)) out.allowed_bytes = bytes(oom_note::allowed);
  snapshot_.oom = out;
}

void SnapshotSchema::label_blocks() {
  if (labels_.held().empty()) return;
  for (const Segment& segment : snapshot_.segments)
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      Block& block = snapshot_.blocks[i];
      const auto held = labels_.held().find({segment.device, block.address});
      if (block.state != BlockState::active || held == labels_.held().end()) continue;
      block.origin = held->second.origin & kOriginMask;
      for (const StringId text : held->second.annotations) snapshot_.block_annotations.push_back({i, text});
    }
  std::stable_sort(snapshot_.block_annotations.begin(), snapshot_.block_annotations.end(),
                   [](const BlockAnnotation& a, const BlockAnnotation& b) { return a.block < b.block; });
}

void SnapshotSchema::categorize_blocks() {
  if (reported_.empty()) return;
  std::stable_sort(reported_.begin(), reported_.end(),
                   [](const BlockReport& a, const BlockReport& b) { return a.address < b.address; });
  for (std::size_t i = 0; i < snapshot_.blocks.size(); ++i) {
    const Block& block = snapshot_.blocks[i];
    if (block.state != BlockState::active) continue;
    const auto reported =
        std::lower_bound(reported_.begin(), reported_.end(), block.address,
                         [](const BlockReport& a, std::uint64_t address) { return a.address < address; });
    if (reported == reported_.end() ||
        reported->address - block.address >= std::max<std::uint64_t>(block.size_bytes, 1))
      continue;
    snapshot_.block_categories.push_back({i, reported->category, reported->name});
  }
}

bool SnapshotSchema::finish() {
  if (!has_snapshot_)
    return bad(
        "a pickle without segments and traces: it is not a snapshot, or one of a program that had allocated nothing; "
        "expected a file of torch.cuda.memory._dump_snapshot");
  label_blocks();
  categorize_blocks();
  const auto note = [this](std::uint64_t count, std::string text) {
    if (count > 0) snapshot_.notes.push_back(std::move(text));
  };
  note(unknown_actions_,
       fmt::format("{} trace entries with an action that this version does not know ('{}') are counted only",
                   unknown_actions_, unknown_action_));
  note(unknown_states_,
       fmt::format("{} blocks in a state that this version does not know ('{}') are assumed to be inactive",
                   unknown_states_, unknown_state_));
  note(odd_blocks_, fmt::format("{} blocks are smaller than what was requested; their size is taken", odd_blocks_));
  note(odd_segments_, fmt::format("the blocks of {} segments do not add up to the segment's size", odd_segments_));
  return true;
}

Status read_pickle(ByteInput& input, Symbols& symbols, const ReadOptions& options, Snapshot& snapshot) {
  SnapshotSchema schema(snapshot, symbols, options);
  PickleMachine<SnapshotSchema> machine(input, symbols, schema);
  if (Status ran = machine.run(); !ran) return ran;
  if (!schema.finish()) return fail(fmt::format("{}: {}", input.name(), schema.error));
  snapshot.file_bytes = machine.offset();
  if (machine.trailing_bytes() != 0)
    snapshot.notes.push_back(
        fmt::format("the data after the snapshot, from byte {} on, was not read", machine.trailing_bytes()));
  return {};
}

}  // namespace vramtrack::trace
