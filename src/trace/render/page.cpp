#include "trace/render/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/format.hpp"
#include "core/json_text.hpp"
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

using Steps = std::vector<Activity::Step>;

struct Layer {
  StackId stack = kNoStack;
  std::int64_t peak_bytes = 0;
  std::vector<std::int64_t> bytes;  ///< at each point
};

void add_to(std::vector<std::int64_t>& values, const Steps& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t end = i + 1 < steps.size() ? steps[i + 1].point : values.size();
    for (std::size_t at = steps[i].point; at < end; ++at) values[at] += steps[i].bytes;
  }
}

/// [point, bytes, point, bytes, ...]: where the value changes.
void steps_json(JsonText& json, const std::vector<std::int64_t>& values) {
  json.begin_array();
  std::int64_t before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == before) continue;
    json.value(i).value(values[i]);
    before = values[i];
  }
  json.end_array();
}

class PartText {
 public:
  PartText(JsonText& json, const Symbols& symbols, StackCategories& categories)
      : json_(json), symbols_(symbols), categories_(categories) {}

  void write(const PagePart& part) {
    points_ = part.activity.points();
    const bool has_times = !points_.empty() && points_.front().time_us != kNoTime;
    begin_us_ = has_times ? points_.front().time_us : 0;
    json_.begin_object().field("name", part.name).field("events", part.activity.event_count());
    json_.field("has_trace", part.has_trace).field("has_times", has_times).field("begin_us", begin_us_);
    write_points(has_times);
    write_layers(part);
    write_marks(part, has_times);
    write_segments(part);
    json_.end_object().newline();
  }

 private:
  void write_points(bool has_times) {
    json_.key("points").begin_object();
    const auto column = [&](std::string_view name, auto value) {
      json_.key(name).begin_array();
      for (const Activity::Point& point : points_) json_.value(value(point));
      json_.end_array();
    };
    column("event", [](const Activity::Point& point) { return point.event; });
    if (has_times) column("us", [&](const Activity::Point& point) { return point.time_us - begin_us_; });
    column("live", [](const Activity::Point& point) { return point.live_bytes; });
    column("least", [](const Activity::Point& point) { return point.least_bytes; });
    column("reserved", [](const Activity::Point& point) { return point.reserved_bytes; });
    json_.end_object();
  }

  void write_layers(const PagePart& part) {
    std::array<std::vector<std::int64_t>, kCategories> by_category;
    std::unordered_map<std::uint32_t, std::size_t> known;  // several holders may have one stack
    std::vector<Layer> layers;
    for (const Activity::Curve& curve : part.activity.curves()) {
      const StackId stack = part.stack_of(curve.holder);
      auto& sum = by_category[static_cast<std::size_t>(categories_.of(stack))];
      sum.resize(points_.size());
      add_to(sum, curve.steps);
      auto place = known.find(index_of(stack));
      if (place == known.end()) {
        if (layers.size() == kLayers) {
          ++others_;
          continue;
        }
        place = known.emplace(index_of(stack), layers.size()).first;
        layers.push_back({stack, 0, std::vector<std::int64_t>(points_.size())});
      }
      add_to(layers[place->second].bytes, curve.steps);
    }
    layer_of_ = known;
    json_.key("layers").begin_array();
    for (const Layer& layer : layers) {
      json_.begin_object().field("site", site_words(symbols_, layer.stack));
      json_.field("category", category_words(categories_.of(layer.stack))).key("stack").begin_array();
      for (const std::string& words : stack_words(symbols_, layer.stack, kStackWords)) json_.value(words);
      json_.end_array().key("steps");
      steps_json(json_, layer.bytes);
      json_.end_object().newline();
    }
    json_.end_array().field("others", others_).key("categories").begin_array();
    for (std::size_t i = 0; i < kCategories; ++i) {
      if (by_category[i].empty()) continue;
      json_.begin_object().field("name", category_words(static_cast<Category>(i))).key("steps");
      steps_json(json_, by_category[i]);
      json_.end_object().newline();
    }
    json_.end_array();
  }

  void write_marks(const PagePart& part, bool has_times) {
    // Of too many the rarer names are told in full: epochs rather than steps.
    std::unordered_map<std::string_view, std::size_t> counts;
    for (const PageMark& mark : part.marks) ++counts[mark.words];
    std::size_t most = part.marks.size();
    const auto kept = [&] {
      std::size_t sum = 0;
      for (const PageMark& mark : part.marks) sum += mark.is_failure || counts[mark.words] <= most ? 1 : 0;
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
  std::vector<Activity::Point> points_;
  std::int64_t begin_us_ = 0;
  std::size_t others_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> layer_of_;
};

/// One point: what is live at the moment of a snapshot that has no trace.
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

std::string page_json(std::string_view title, std::span<const PagePart> parts, const Symbols& symbols) {
  StackCategories categories(symbols);
  JsonText json;
  json.begin_object().field("schema", "vramtrack.timeline_page.v1").field("title", title).key("parts").begin_array();
  for (const PagePart& part : parts) PartText(json, symbols, categories).write(part);
  json.end_array().end_object();
  std::string out;
  const std::string text = json.take();
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace vramtrack::trace
