#include "trace/render/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "trace/event.hpp"

namespace vramtrack::trace {

void stack_json(JsonText& j, const Symbols& symbols, StackId stack) {
  j.begin_array();
  for (const FrameId frame : symbols.stack(stack)) {
    j.begin_object().field("name", symbols.name(frame)).field("file", symbols.file(frame));
    j.field("line", symbols.frame(frame).line).end_object();
  }
  j.end_array();
}

std::string line_words(const Symbols& symbols, const LineBytes& line) {
  std::string out = printable(site_words(symbols, line.frame));
  if (line.stacks > 1) out += fmt::format("  ({} stacks)", format_number(line.stacks));
  return out;
}

std::vector<std::string> stack_words(const Symbols& symbols, StackId stack, std::size_t most) {
  std::vector<std::string> lines;
  const auto site = site_of(symbols, stack);
  bool begun = false;
  for (const FrameId frame : symbols.stack(stack)) {
    begun = begun || frame == site;
    // Above a Python line, show only Python lines: its callers, not how the interpreter called it.
    if (!begun || !is_informative(symbols, frame) || (is_python(symbols, *site) && !is_python(symbols, frame)))
      continue;
    lines.push_back(printable(frame_words(symbols, frame)));
    if (lines.size() == most) break;
  }
  return lines;
}

namespace {

constexpr std::size_t kShownLabels = 3;

}  // namespace

std::string memory_name(const Snapshot& snapshot, std::uint32_t device) {
  return snapshot.is_host ? "host" : fmt::format("device {}", device);
}

void labels_json(JsonText& j, const Symbols& symbols, const std::vector<LabelBytes>& labels) {
  j.begin_array();
  for (const LabelBytes& label : labels) {
    j.begin_object().field("kind", label_kind_name(label.kind)).field("label", label_words(symbols, label));
    if (label.kind == LabelKind::pool)
      j.key("pool_id").begin_array().value(label.pool.first).value(label.pool.second).end_array();
    j.field("bytes", label.bytes).field("blocks", label.blocks).end_object();
  }
  j.end_array();
}

std::string labels_words(const Symbols& symbols, const std::vector<LabelBytes>& labels) {
  std::string out;
  for (std::size_t i = 0; i < labels.size() && i < kShownLabels; ++i)
    out += fmt::format("{}{} ({})", i == 0 ? "" : ", ", printable(label_words(symbols, labels[i])),
                       format_size(labels[i].bytes));
  if (labels.size() > kShownLabels) out += fmt::format(" and {} more", labels.size() - kShownLabels);
  return out;
}

std::vector<LabelBytes> labels_of_line(const Symbols& symbols, const Labels& labels, StackId stack) {
  if (labels.empty()) return {};
  const auto site = site_of(symbols, stack);
  return labels.of([&](StackId other) { return other == stack || site_of(symbols, other) == site; });
}

void labelled_stack_json(JsonText& j, const Symbols& symbols, StackId stack, const Labels& labels) {
  j.key("stack");
  stack_json(j, symbols, stack);
  const auto its = labels.of(stack);
  if (its.empty()) return;
  j.key("labels");
  labels_json(j, symbols, its);
}

void sites_json(JsonText& j, const Symbols& symbols, const Profile& sites, std::size_t most, const Labels& labels) {
  j.begin_array();
  for (std::size_t i = 0; i < sites.size() && i < most; ++i) {
    j.begin_object().field("site", site_words(symbols, sites[i].stack)).field("bytes", sites[i].bytes);
    j.field("blocks", sites[i].blocks);
    labelled_stack_json(j, symbols, sites[i].stack, labels);
    j.end_object();
  }
  j.end_array();
}

std::string sites_text(const Symbols& symbols, const Profile& sites, std::int64_t total_bytes, std::size_t most,
                       std::string_view indent, const Labels& labels) {
  std::string out;
  std::size_t shown = 0;
  const auto lines = by_line(sites, symbols);
  for (const LineBytes& held : lines) {
    if (held.bytes <= 0) break;
    if (shown++ == most) {
      out += fmt::format("{}and {} more line{}\n", indent, lines.size() - most, lines.size() - most == 1 ? "" : "s");
      break;
    }
    out +=
        fmt::format("{}{:>11} {:>5.1f} % {:>13}  {}\n", indent, format_size(held.bytes),
                    100 * static_cast<double>(held.bytes) / static_cast<double>(std::max<std::int64_t>(total_bytes, 1)),
                    format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(held.blocks, 0)), "block"),
                    line_words(symbols, held));
    if (const auto words = labels_words(symbols, labels_of_line(symbols, labels, held.stack)); !words.empty())
      out += fmt::format("{}{:>35}  labels: {}\n", indent, "", words);
  }
  return out;
}

void moment_json(JsonText& j, const Moment& moment) {
  j.field("event", moment.event);
  if (moment.time_us != kNoTime) j.field("time_us", moment.time_us);
  j.field("live_bytes", moment.live_bytes)
      .field("pending_bytes", moment.pending_bytes)
      .field("reserved_bytes", moment.reserved_bytes);
}

std::string entry_words(const Moment& moment) {
  return format_number(moment.event + 1);
}

std::string moment_words(const Moment& moment, std::int64_t first_us) {
  if (moment.time_us == kNoTime || first_us == kNoTime) return "entry " + entry_words(moment);
  return fmt::format("+{:.3f} s", static_cast<double>(moment.time_us - first_us) * 1e-6);
}

}  // namespace vramtrack::trace
