#include "trace/render/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/format.hpp"
#include "core/json_text.hpp"
#include "core/order.hpp"
#include "trace/category.hpp"
#include "trace/live_set.hpp"
#include "trace/profile.hpp"
#include "trace/render/parts.hpp"
#include "trace/timeline.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kLayers = 24;
constexpr std::size_t kMostMarks = 2000;
constexpr std::size_t kMostBlocks = 20000;
constexpr std::size_t kStackWords = 24;

using Values = std::vector<std::int64_t>;  ///< at each point

/// The data of one level of detail: the layers of the page and the categories, with one value per point.
struct Level {
  std::vector<Activity::Point> points;
  std::vector<Values> layers;
  std::array<Values, kCategories> categories;  ///< empty: always zero
};

/// A line of code.
struct Layer {
  std::optional<FrameId> frame;
  std::vector<StackId> stacks;  ///< by peak, the highest first
  std::vector<Category> categories;
  std::int64_t peak_bytes = 0;  ///< the sum of its stacks' peaks
};

/// [point, bytes, point, bytes, ...]: the points at which the value changes, and `from`, the first.
void steps_json(JsonText& json, const Values& values, std::size_t from, std::size_t to) {
  json.begin_array();
  std::int64_t before = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (values[i] == before) continue;
    json.value(i - from).value(values[i]);
    before = values[i];
  }
  json.end_array();
}

class PartText {
 public:
  PartText(JsonText& json, const Symbols& symbols, StackCategories& categories, std::size_t& level_bytes_left)
      : json_(json), symbols_(symbols), categories_(categories), level_bytes_left_(level_bytes_left) {}

  void write(const PagePart& part) {
    unsigned times = 0;
    while ((part.activity.part_count() + (1U << times) - 1) >> times > kCoarseParts) ++times;
    choose_layers(part);
    const Level coarse = level_of(part, times);
    const std::vector<Activity::Point> finest = part.activity.points();
    has_times_ = !finest.empty() && finest.front().time_us != kNoTime;
    begin_us_ = has_times_ ? finest.front().time_us : 0;
    json_.begin_object().field("name", part.name).field("events", part.activity.event_count());
    json_.field("has_trace", part.has_trace).field("has_times", has_times_).field("begin_us", begin_us_);
    if (!finest.empty()) json_.field("first_event", finest.front().event).field("last_event", finest.back().event);
    if (has_times_) json_.field("last_us", finest.back().time_us - begin_us_);
    write_points(json_, coarse, 0, coarse.points.size());
    write_layers(coarse);
    write_levels(part, times);
    write_marks(part, has_times_);
    write_segments(part);
    json_.end_object().newline();
  }

 private:
  /// Writes the points from `from` up to, but not including, `to`.
  void write_points(JsonText& json, const Level& level, std::size_t from, std::size_t to) const {
    json.key("points").begin_object();
    const auto column = [&](std::string_view name, auto value) {
      json.key(name).begin_array();
      for (std::size_t i = from; i < to; ++i) json.value(value(level.points[i]));
      json.end_array();
    };
    column("event", [](const Activity::Point& point) { return point.event; });
    if (has_times_) column("us", [&](const Activity::Point& point) { return point.time_us - begin_us_; });
    column("live", [](const Activity::Point& point) { return point.live_bytes; });
    column("least", [](const Activity::Point& point) { return point.least_bytes; });
    column("reserved", [](const Activity::Point& point) { return point.reserved_bytes; });
    json.end_object();
  }

  [[nodiscard]] Category category_of(const PagePart& part, Holder holder, StackId stack) const {
    const Category of_stack = categories_.of(stack);
    return part.category_of ? part.category_of(holder, of_stack) : of_stack;
  }

  /// Chooses the lines with the highest peaks of their stacks, at the finest level, which has every category.
  void choose_layers(const PagePart& part) {
    std::vector<Layer> lines;
    std::unordered_map<std::uint32_t, std::size_t> line_at;  // by frame
    std::unordered_set<std::uint32_t> seen;
    for (const auto& [holder, peak_bytes] : part.activity.peaks()) {
      const StackId stack = part.stack_of(holder);
      const Category category = category_of(part, holder, stack);
      has_category_[static_cast<std::size_t>(category)] = true;
      const auto frame = part.line_of ? part.line_of(stack) : site_of(symbols_, stack);
      const auto [at, is_new] = line_at.try_emplace(frame ? index_of(*frame) : IdTable::kNone, lines.size());
      if (is_new) lines.push_back({frame, {}, {}, 0});
      Layer& line = lines[at->second];
      line.peak_bytes += peak_bytes;
      if (std::find(line.categories.begin(), line.categories.end(), category) == line.categories.end())
        line.categories.push_back(category);
      if (seen.insert(index_of(stack)).second) line.stacks.push_back(stack);  // holders may share one
    }
    order(lines, [](const Layer& a, const Layer& b) { return a.peak_bytes > b.peak_bytes; });
    others_ = lines.size() - std::min(lines.size(), kLayers);
    lines.resize(lines.size() - others_);
    layers_ = std::move(lines);
    for (std::size_t i = 0; i < layers_.size(); ++i)
      for (const StackId stack : layers_[i].stacks) layer_of_.emplace(index_of(stack), i);
  }

  /// The level in which each part joins 2^times parts of the finest level.
  Level level_of(const PagePart& part, unsigned times) {
    const Activity coarser = times > 0 ? part.activity.joined(times) : Activity(0);
    const Activity& activity = times > 0 ? coarser : part.activity;
    Level level;
    level.points = activity.points();
    level.layers.assign(layers_.size(), Values(level.points.size()));
    for (std::size_t i = 0; i < kCategories; ++i)
      if (has_category_[i]) level.categories[i].resize(level.points.size());
    struct Place {
      Values* category = nullptr;
      Values* layer = nullptr;
    };
    std::unordered_map<Holder, Place> places;
    activity.changes([&](const Activity::Change& change) {
      const auto [at, is_new] = places.try_emplace(change.holder);
      if (is_new) {
        const StackId stack = part.stack_of(change.holder);
        at->second.category = &level.categories[static_cast<std::size_t>(category_of(part, change.holder, stack))];
        if (const auto layer = layer_of_.find(index_of(stack)); layer != layer_of_.end())
          at->second.layer = &level.layers[layer->second];
      }
      const auto& [category, layer] = at->second;
      if (!category->empty()) (*category)[change.point] += change.bytes;
      if (layer != nullptr) (*layer)[change.point] += change.bytes;
    });
    for (Values& values : level.layers) std::partial_sum(values.begin(), values.end(), values.begin());
    for (Values& values : level.categories) std::partial_sum(values.begin(), values.end(), values.begin());
    return level;
  }

  void write_layers(const Level& level) {
    json_.key("layers").begin_array();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      std::string categories;
      for (const Category category : layer.categories)
        categories += fmt::format("{}{}", categories.empty() ? "" : ", ", category_words(category));
      json_.begin_object().field("site", site_words(symbols_, layer.frame)).field("category", categories);
      json_.field("stacks", layer.stacks.size()).key("stack").begin_array();
      for (const std::string& words : stack_words(symbols_, layer.stacks.front(), kStackWords)) json_.value(words);
      json_.end_array().key("steps");
      steps_json(json_, level.layers[i], 0, level.points.size());
      json_.end_object().newline();
    }
    json_.end_array().field("others", others_).key("categories").begin_array();
    for (std::size_t i = 0; i < kCategories; ++i) {
      if (!has_category_[i]) continue;
      json_.begin_object().field("name", category_words(static_cast<Category>(i))).key("steps");
      steps_json(json_, level.categories[i], 0, level.points.size());
      json_.end_object().newline();
    }
    json_.end_array();
  }

  /// Writes the finer levels, coarser ones first, each in pieces with as many points as the coarsest: JSON within
  /// strings, so that a browser parses only those that are viewed.
  void write_levels(const PagePart& part, unsigned times) {
    bool is_left_out = false;
    json_.key("levels").begin_array();
    while (times > 0 && !is_left_out) {
      times -= std::min(times, 2U);
      const Level level = level_of(part, times);
      std::vector<std::string> pieces;
      std::size_t bytes = 0;
      for (std::size_t from = 0; from < level.points.size(); from += kCoarseParts) {
        pieces.push_back(piece(level, from, std::min(level.points.size(), from + kCoarseParts)));
        bytes += pieces.back().size();
      }
      is_left_out = bytes > level_bytes_left_;
      if (is_left_out) break;
      level_bytes_left_ -= bytes;
      json_.begin_array();
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Activity::Point& first = level.points[i * kCoarseParts];
        json_.begin_object().field("event", first.event);
        if (has_times_) json_.field("us", first.time_us - begin_us_);
        json_.field("data", pieces[i]).end_object().newline();
      }
      json_.end_array();
    }
    json_.end_array().field("levels_left_out", is_left_out);
  }

  [[nodiscard]] std::string piece(const Level& level, std::size_t from, std::size_t to) const {
    JsonText json;
    json.begin_object();
    write_points(json, level, from, to);
    json.key("layers").begin_array();
    for (const Values& values : level.layers) steps_json(json, values, from, to);
    json.end_array().key("categories").begin_array();
    for (const Values& values : level.categories)
      if (!values.empty()) steps_json(json, values, from, to);
    json.end_array().end_object();
    return json.take();
  }

  void write_marks(const PagePart& part, bool has_times) {
    // If there are too many, show all marks with the rarer names: epochs rather than steps.
    std::unordered_map<std::string_view, std::size_t> counts;
    for (const PageMark& mark : part.marks) ++counts[mark.words];
    std::size_t most = part.marks.size();
    const auto kept = [&] {
      std::size_t sum = 0;
      for (const PageMark& mark : part.marks)
        if (mark.is_failure || counts[mark.words] <= most) ++sum;
      return sum;
    };
    while (kept() > kMostMarks && most > 1) most /= 2;
    std::size_t left_out = 0;
    json_.key("marks").begin_array();
    for (const PageMark& mark : part.marks) {
      if ((!mark.event && (!has_times || mark.time_us == kNoTime)) || (!mark.is_failure && counts[mark.words] > most)) {
        ++left_out;
        continue;
      }
      json_.begin_object().field("words", mark.words).field("failure", mark.is_failure);
      if (mark.event) json_.field("event", *mark.event);
      if (has_times && mark.time_us != kNoTime) json_.field("us", mark.time_us - begin_us_);
      json_.end_object();
    }
    json_.end_array().field("marks_left_out", left_out);
  }

  /// [address, bytes, is_large, [offset, bytes, state, layer, ...]] each; state 0: free, 1: held, 2: freed and pending.
  void write_segments(const PagePart& part) {
    json_.key("segments").begin_array();
    std::vector<const Segment*> segments;
    std::size_t blocks = 0;
    if (part.snapshot != nullptr && !part.snapshot->is_event_stream)
      for (const Segment& segment : part.snapshot->segments)
        if (segment.device == part.device) segments.push_back(&segment);
    std::stable_sort(segments.begin(), segments.end(),
                     [](const Segment* a, const Segment* b) { return a->size_bytes > b->size_bytes; });
    std::size_t left_out = 0;
    for (const Segment* segment : segments) {
      if (blocks + segment->block_count > kMostBlocks) {
        ++left_out;
        continue;
      }
      blocks += segment->block_count;
      json_.begin_array().value(segment->address).value(segment->size_bytes).value(segment->is_large).begin_array();
      for (std::size_t i = 0; i < segment->block_count; ++i) {
        const Block& block = part.snapshot->blocks[segment->first_block + i];
        const int state = block.state == BlockState::active ? 1 : block.state == BlockState::pending_free ? 2 : 0;
        const auto layer = layer_of_.find(index_of(block.stack));
        json_.value(block.address - segment->address).value(block.size_bytes).value(state);
        json_.value(state == 0 || layer == layer_of_.end() ? -1 : static_cast<int>(layer->second));
      }
      json_.end_array().end_array().newline();
    }
    json_.end_array().field("segments_left_out", left_out);
  }

  JsonText& json_;
  const Symbols& symbols_;
  StackCategories& categories_;
  std::size_t& level_bytes_left_;
  bool has_times_ = false;
  std::int64_t begin_us_ = 0;
  std::size_t others_ = 0;
  std::vector<Layer> layers_;
  std::array<bool, kCategories> has_category_{};
  std::unordered_map<std::uint32_t, std::size_t> layer_of_;
};

/// Adds one point: the live memory of a snapshot without a trace.
void take_blocks(Activity& activity, const Snapshot& snapshot, std::uint32_t device) {
  std::uint64_t reserved = 0;
  for (const Segment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    reserved += segment.size_bytes;
  }
  for (const StackBytes& held : live_profile(snapshot, device))
    activity.take(kNoTime, index_of(held.stack), held.bytes, static_cast<std::int64_t>(reserved));
}

}  // namespace

std::vector<PagePart> page_parts(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device) {
  std::vector<std::uint32_t> devices = traced_devices(snapshot, device);
  const std::size_t traced = devices.size();
  for (const Segment& segment : snapshot.segments)
    if ((!device || segment.device == *device) &&
        std::find(devices.begin(), devices.end(), segment.device) == devices.end())
      devices.push_back(segment.device);
  std::vector<PagePart> parts;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    PagePart& part = parts.emplace_back();
    part.device = devices[i];
    part.name = memory_name(snapshot, part.device);
    part.snapshot = &snapshot;
    part.stack_of = [](Holder holder) { return StackId{holder}; };
    if (i >= traced) {
      part.has_trace = false;
      take_blocks(part.activity, snapshot, part.device);
      continue;
    }
    const Replay replay(snapshot, part.device, symbols);
    for (const StackBytes& held : replay.live_at_begin()) part.activity.begin_with(index_of(held.stack), held.bytes);
    replay.run([&](const AllocEvent& event, const Change& change, const Moment& now) {
      if (event.action == Action::oom)
        part.marks.push_back({now.time_us, part.activity.event_count(),
                              fmt::format("out of memory: {} requested", format_size(event.size_bytes)), true});
      if (change.live_bytes != 0)
        part.activity.take(now.time_us, index_of(change.stack), change.live_bytes, now.reserved_bytes);
    });
    for (const Annotation& annotation : snapshot.annotations)
      if (annotation.device == part.device && annotation.is_start)
        part.marks.push_back({annotation.time_us, {}, std::string(symbols.text(annotation.name)), false});
  }
  return parts;
}

std::string page_json(std::string_view title, std::span<const PagePart> parts, const Symbols& symbols,
                      std::size_t most_level_bytes) {
  StackCategories categories(symbols);
  JsonText json;
  json.begin_object().field("schema", "vramtrack.timeline_page.v1").field("title", title).key("parts").begin_array();
  for (const PagePart& part : parts) PartText(json, symbols, categories, most_level_bytes).write(part);
  json.end_array().end_object();
  std::string out;
  const std::string text = json.take();
  out.reserve(text.size());
  for (const char c : text) out.append(c == '<' ? "\\u003c" : std::string_view(&c, 1));
  return out;
}

}  // namespace vramtrack::trace
