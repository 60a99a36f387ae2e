#include "trace/exports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/json_text.hpp"
#include "trace/labels.hpp"
#include "trace/live_set.hpp"

namespace vramtrack::trace {
namespace {

/// A name without the separator of the folded format and without line breaks.
std::string folded_name(const Symbols& symbols, FrameId frame) {
  std::string name = frame_words(symbols, frame);
  std::replace(name.begin(), name.end(), ';', ':');
  return name.empty() ? "?" : name;
}

std::vector<std::uint32_t> devices_of(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  std::vector<std::uint32_t> out;
  for (const DeviceTrace& trace : snapshot.traces)
    if ((!device || trace.device == *device) && !trace.events.empty()) out.push_back(trace.device);
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

constexpr std::size_t kChunkBytes = 1 << 16;

}  // namespace

std::string folded(const Profile& profile, const Symbols& symbols) {
  std::string out;
  for (const StackBytes& held : profile) {
    if (held.bytes <= 0) continue;
    const auto frames = symbols.stack(held.stack);
    if (frames.empty()) out += "(no stack recorded)";
    for (std::size_t i = frames.size(); i-- > 0;) {
      out += folded_name(symbols, frames[i]);
      if (i > 0) out += ';';
    }
    out += fmt::format(" {}\n", held.bytes);
  }
  return out;
}

std::string speedscope(const Profile& profile, const Symbols& symbols, std::string_view name) {
  std::unordered_map<std::uint32_t, std::size_t> index;
  JsonText frames;
  JsonText samples;
  JsonText weights;
  std::int64_t total = 0;
  frames.begin_array();
  samples.begin_array();
  weights.begin_array();
  // Blocks without a stack get their own frame, so that the total is complete.
  frames.begin_object().field("name", "(no stack recorded)").end_object();
  for (const StackBytes& held : profile) {
    if (held.bytes <= 0) continue;
    samples.begin_array();
    const auto stack = symbols.stack(held.stack);
    if (stack.empty()) samples.value(0);
    for (std::size_t i = stack.size(); i-- > 0;) {
      const auto [known, is_new] = index.try_emplace(index_of(stack[i]), index.size() + 1);
      if (is_new) {
        frames.begin_object().field("name", symbols.name(stack[i])).field("file", symbols.file(stack[i]));
        frames.field("line", symbols.frame(stack[i]).line).end_object();
      }
      samples.value(known->second);
    }
    samples.end_array();
    weights.value(held.bytes);
    total += held.bytes;
  }
  JsonText head;
  head.begin_object().field("$schema", "https://www.speedscope.app/file-format-schema.json");
  head.field("exporter", "vramtrack").field("name", name).field("activeProfileIndex", 0).key("shared");
  JsonText about;
  about.begin_object().field("type", "sampled").field("name", name).field("unit", "bytes").field("startValue", 0);
  about.field("endValue", total);
  return head.text() + "{\"frames\":" + frames.end_array().text() + "},\"profiles\":[" + about.text() +
         ",\"samples\":" + samples.end_array().text() + ",\"weights\":" + weights.end_array().text() + "}]}\n";
}

void chrome_trace(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device, const Sink& sink) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool first = true;
  bool going = true;
  const auto add = [&](JsonText& event) {
    if (!first) out += ",\n";
    first = false;
    out += event.text();
    if (out.size() >= kChunkBytes) {
      going = going && sink(out);
      out.clear();
    }
  };
  const auto begin = [](JsonText& j, std::string_view phase, std::string_view name, std::uint32_t pid,
                        std::int64_t ts) {
    j.begin_object().field("ph", phase).field("name", name).field("pid", pid).field("tid", 0).field("ts", ts);
  };
  for (const std::uint32_t index : devices_of(snapshot, device)) {
    JsonText named;
    begin(named, "M", "process_name", index, 0);
    named.key("args").begin_object().field("name", fmt::format("device {}", index)).end_object().end_object();
    add(named);
    const Replay replay(snapshot, index, symbols);
    replay.run([&](const AllocEvent& event, const Change& change, const Moment& now) {
      if (!going) return;
      const std::int64_t ts = event.time_us != kNoTime ? event.time_us : static_cast<std::int64_t>(now.event);
      if (change.live_bytes != 0 || change.pending_bytes != 0 || change.reserved_bytes != 0) {
        JsonText counter;
        begin(counter, "C", "memory", index, ts);
        counter.key("args")
            .begin_object()
            .field("live_bytes", now.live_bytes)
            .field("pending_free_bytes", now.pending_bytes);
        counter.end_object().end_object();
        add(counter);
      }
      if (change.reserved_bytes != 0) {
        JsonText counter;
        begin(counter, "C", "reserved", index, ts);
        counter.key("args").begin_object().field("reserved_bytes", now.reserved_bytes).end_object().end_object();
        add(counter);
      }
      if (event.action == Action::annotate) {
        JsonText instant;
        begin(instant, "i", symbols.text(snapshot.origins[event.origin].metadata), index, ts);
        instant.field("s", "p").key("args").begin_object().field("address", event.address);
        instant.field("size_bytes", event.size_bytes).end_object().end_object();
        add(instant);
      }
      if (event.action == Action::oom) {
        JsonText instant;
        begin(instant, "i", "out of memory", index, ts);
        instant.field("s", "p").key("args").begin_object().field("asked_bytes", event.size_bytes);
        instant.field("device_free_bytes", event.address).end_object().end_object();
        add(instant);
      }
    });
  }
  for (const Annotation& annotation : snapshot.annotations) {
    if ((device && annotation.device != *device) || annotation.time_us == kNoTime) continue;
    JsonText span;
    begin(span, annotation.is_start ? "B" : "E", symbols.text(annotation.name), annotation.device, annotation.time_us);
    span.end_object();
    add(span);
  }
  out += "\n]}\n";
  if (going) sink(out);
}

void events_csv(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device, const Sink& sink) {
  std::string out =
      "device,event,time_us,action,address,size_bytes,stream,device_free_bytes,live_bytes,pending_bytes,reserved_bytes,"
      "site,pool,label\n";
  bool going = true;
  std::unordered_map<std::uint32_t, std::string> sites;
  for (const std::uint32_t index : devices_of(snapshot, device)) {
    const Replay replay(snapshot, index, symbols);
    replay.run([&](const AllocEvent& event, const Change& change, const Moment& now) {
      if (!going) return;
      auto& site = sites[index_of(change.stack)];
      if (site.empty()) site = csv_field(site_words(symbols, change.stack));
      const bool is_oom = event.action == Action::oom;
      auto to = std::back_inserter(out);
      fmt::format_to(to, "{},{},", index, now.event);
      if (event.time_us != kNoTime) fmt::format_to(to, "{}", event.time_us);
      fmt::format_to(to, ",{},", kActionNames[static_cast<std::size_t>(event.action)]);
      if (!is_oom) fmt::format_to(to, "{}", event.address);
      fmt::format_to(to, ",{},{},", event.size_bytes, snapshot.origins[event.origin].stream);
      if (is_oom) fmt::format_to(to, "{}", event.address);
      fmt::format_to(to, ",{},{},{},{},", now.live_bytes, now.pending_bytes, now.reserved_bytes, site);
      const Origin& origin = snapshot.origins[event.origin];
      if (origin.pool != PoolId{}) fmt::format_to(to, "{}.{}", origin.pool.first, origin.pool.second);
      fmt::format_to(to, ",{}\n", csv_field(label_words(symbols, origin)));
      if (out.size() >= kChunkBytes) {
        going = sink(out);
        out.clear();
      }
    });
  }
  if (going) sink(out);
}

}  // namespace vramtrack::trace
