#include "trace/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vramtrack::trace {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"metadata", "annotation", "compile_context", "internal",
                                                        "pool"};

/// Calls add(LabelBytes) for each label of the origin.
template <class Add>
void labels_in(const Origin& origin, std::int64_t bytes, Add add) {
  if (origin.metadata != kNoText) add(LabelBytes{LabelKind::metadata, origin.metadata, {}, bytes, 1});
  if (origin.compile_context != kNoText) add(LabelBytes{LabelKind::compile, origin.compile_context, {}, bytes, 1});
  if (origin.internal != kNoText) add(LabelBytes{LabelKind::internal, origin.internal, {}, bytes, 1});
}

}  // namespace

std::string_view label_kind_name(LabelKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string pool_name(const PoolId& pool) {
  if (pool == PoolId{}) return "common";
  if (pool.second == 0) return fmt::format("CUDA graph {}", pool.first);
  return fmt::format("pool {}.{}", pool.first, pool.second);
}

std::string label_words(const Symbols& symbols, const LabelBytes& label) {
  switch (label.kind) {
    case LabelKind::pool:
      return pool_name(label.pool);
    case LabelKind::compile:
      return fmt::format("compiling {}", symbols.text(label.text));
    default:
      return std::string(symbols.text(label.text));
  }
}

std::string label_words(const Symbols& symbols, const Origin& origin) {
  std::string out;
  labels_in(origin, 0, [&](const LabelBytes& label) {
    out += fmt::format("{}{}", out.empty() ? "" : "; ", label_words(symbols, label));
  });
  return out;
}

void Labels::add(StackId stack, const LabelBytes& label) {
  add_to(by_stack_[index_of(stack)], {static_cast<std::uint64_t>(label.kind) << 32 | index_of(label.text), label.pool},
         label.bytes, label.blocks);
}

std::vector<LabelBytes> Labels::of(StackId stack) const {
  const auto known = by_stack_.find(index_of(stack));
  return known == by_stack_.end() ? std::vector<LabelBytes>{} : sorted(known->second);
}

std::vector<LabelBytes> Labels::sorted(const Sums& sums) {
  std::vector<LabelBytes> out;
  for (const auto& [key, held] : sums)
    out.push_back({static_cast<LabelKind>(key.first >> 32), static_cast<StringId>(key.first & 0xffffffff), key.second,
                   held.first, held.second});
  std::stable_sort(out.begin(), out.end(), [](const LabelBytes& a, const LabelBytes& b) { return a.bytes > b.bytes; });
  return out;
}

Labels labels_of(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  Labels out;
  auto annotation = snapshot.block_annotations.begin();
  // Annotations are ordered by block and segments by first block, unless the segments are those of the host.
  for (const Segment& segment : snapshot.segments) {
    if (device && segment.device != *device) continue;
    annotation =
        std::lower_bound(snapshot.block_annotations.begin(), snapshot.block_annotations.end(), segment.first_block,
                         [](const BlockAnnotation& a, std::size_t block) { return a.block < block; });
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const Block& block = snapshot.blocks[i];
      const auto bytes = static_cast<std::int64_t>(block.requested_bytes);
      for (; annotation != snapshot.block_annotations.end() && annotation->block == i; ++annotation)
        if (block.state == BlockState::active)
          out.add(block.stack, {LabelKind::annotation, annotation->text, {}, bytes, 1});
      if (block.state != BlockState::active) continue;
      if (segment.pool != PoolId{}) out.add(block.stack, {LabelKind::pool, kNoText, segment.pool, bytes, 1});
      labels_in(snapshot.origins[block.origin], bytes, [&](const LabelBytes& label) { out.add(block.stack, label); });
    }
  }
  return out;
}

Labels labels_at(const Snapshot& snapshot, std::uint32_t device, std::uint64_t event) {
  Labels out;
  const DeviceTrace* const trace = snapshot.trace_of(device);
  bool any = false;
  for (std::size_t i = 0; i < snapshot.origins.size(); ++i)
    any = any || snapshot.origins[i].is_labelled() || snapshot.origins[i].pool != PoolId{};
  if (trace == nullptr || !any) return out;
  LiveLabels live(trace->counts[static_cast<std::size_t>(Action::annotate)] > 0);
  for (std::size_t i = 0; i < trace->events.size() && i <= event; ++i)
    live.take(device, trace->events[i], snapshot.origins[trace->events[i].origin]);
  for (const auto& each : live.held()) {
    const auto& held = each.second;  // clang does not capture a binding
    const auto bytes = static_cast<std::int64_t>(held.bytes);
    const Origin& origin = snapshot.origins[held.origin];
    if (origin.pool != PoolId{}) out.add(held.stack, {LabelKind::pool, kNoText, origin.pool, bytes, 1});
    labels_in(origin, bytes, [&](const LabelBytes& label) { out.add(held.stack, label); });
    for (const StringId text : held.annotations) out.add(held.stack, {LabelKind::annotation, text, {}, bytes, 1});
  }
  return out;
}

void LiveLabels::take(std::uint32_t device, const AllocEvent& event, const Origin& origin) {
  switch (event.action) {
    case Action::alloc:
      if (all_ || origin.is_labelled() || origin.pool != PoolId{})
        held_[{device, event.address}] = {event.size_bytes, event.stack, event.origin, {}};
      else if (!held_.empty())
        held_.erase({device, event.address});
      return;
    case Action::free_requested:
    case Action::free_completed:
      if (!held_.empty()) held_.erase({device, event.address});
      return;
    case Action::annotate: {
      if (origin.metadata == kNoText) return;
      auto& texts = held_[{device, event.address}].annotations;
      if (texts.size() < kMostAnnotations && std::find(texts.begin(), texts.end(), origin.metadata) == texts.end())
        texts.push_back(origin.metadata);
      return;
    }
    default:
      return;
  }
}

}  // namespace vramtrack::trace
