#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "core/format.hpp"
#include "core/json_text.hpp"
#include "core/order.hpp"
#include "trace/render/categories.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/trace_render.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kStackLines = 12;

std::string line_of(const SiteLine& line, std::string_view call, const Symbols& symbols) {
  if (!line.is_known) return fmt::format("(no stack recorded) {}", call);
  return printable(frame_words(symbols, line.frame));
}
std::string line_of(const ReportSite& site, const Symbols& symbols) {
  return line_of(site.line, site.call, symbols);
}

std::string rate_words(double bytes_per_s) {
  return fmt::format("{}/s", format_size(static_cast<std::int64_t>(bytes_per_s)));
}

std::string_view space_words(MemorySpace space) {
  if (space == MemorySpace::host) return ", pinned host memory";
  return space == MemorySpace::mapped ? ", mapped memory of another owner" : "";
}

std::string blocks_words(std::int64_t blocks) {
  return format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, blocks)), "block");
}

/// One frame on one line: for a library without source lines its file name, and for a long C++ name its beginning.
std::string frame_text(const Symbols& symbols, FrameId frame) {
  constexpr std::size_t kWidest = 110;
  std::string words = frame_words(symbols, frame);
  if (const std::size_t blank = words.find(' '); blank != std::string::npos && words.find(".so") < blank)
    if (const std::size_t slash = words.rfind('/', blank); slash != std::string::npos) words.erase(0, slash + 1);
  words = printable(words);
  if (words.size() <= kWidest) return words;
  std::size_t end = kWidest;
  while (end > 0 && (static_cast<unsigned char>(words[end]) & 0xc0U) == 0x80) --end;  // do not cut a character in half
  return words.substr(0, end) + "...";
}

/// The callers of the named frame. The frames that it called lead to the driver, and are many and similar for most
/// sites, so only the innermost one and their number are shown.
void stack_text(std::string& out, const ProbeNames& names, const ReportSite& site) {
  const Symbols& symbols = names.symbols();
  const auto frames = symbols.stack(site.stack);
  const auto named = site.line.is_own ? std::find(frames.begin(), frames.end(), site.line.frame) : frames.begin();
  const auto from = static_cast<std::size_t>(named - frames.begin());
  if (from > 0) out += fmt::format("       in {}\n", frame_text(symbols, frames.front()));
  if (from > 1) out += fmt::format("          and {} of libraries\n", format_count(from - 1, "more frame"));
  // Whatever started the program or thread called the last own frame: the interpreter, the C library.
  std::size_t end = frames.size();
  while (site.line.is_own && end > from + 1 && !names.is_own(frames[end - 1])) --end;
  std::size_t shown = 0;
  for (std::size_t i = from; i < end && shown < kStackLines; ++i, ++shown)
    out += fmt::format("       {} {}\n", shown == 0 ? "at" : "by", frame_text(symbols, frames[i]));
  if (from + shown < end) out += fmt::format("       and {} more\n", end - from - shown);
}

std::string_view shape_words(SiteShape shape) {
  switch (shape) {
    case SiteShape::warm_up:
      return ", rose at the start only";
    case SiteShape::filling:
      return ", rises ever more slowly: a cache that fills";
    case SiteShape::given_back:
      return ", rises and is released";
    case SiteShape::late:
      return ", began to grow late and grew to the end";
    case SiteShape::unsure:
      return ", undecided: too little rise to judge";
    case SiteShape::flat:
    case SiteShape::leak:
      break;
  }
  return "";
}

std::string growth_words(double bytes_per_s, double share) {
  return fmt::format(", growing {} ({} of all growth)", rate_words(bytes_per_s), format_percent(share));
}

void site_text(std::string& out, const ReportSite& site, const ProbeNames& names, std::size_t number, bool with_stack) {
  const Symbols& symbols = names.symbols();
  out += fmt::format("{:>3}. {}{}\n", number, line_of(site, symbols), space_words(site.space));
  if (site.live.bytes == 0 && site.live.blocks > 0)
    out += fmt::format("       live {} of unknown size", blocks_words(site.live.blocks));
  else
    out += fmt::format("       live {} in {}", format_size(site.live.bytes), blocks_words(site.live.blocks));
  if (site.leak) out += growth_words(site.growth_bytes_per_s, site.share);
  if (site.live.blocks > 0) out += fmt::format(", the oldest {} old", format_span(site.oldest_s));
  if (!site.leak) out += shape_words(site.shape);
  out += fmt::format("\n       {}", site.call);
  if (site.category != Category::unknown) out += fmt::format(", {}", category_words(site.category));
  if (site.stacks > 1) out += fmt::format(", {}; this one has most", format_count(site.stacks, "stack"));
  if (site.line.is_known && !site.line.is_own)
    out +=
        fmt::format("; no frame is your own code{}{}",
                    site.thread.empty() ? std::string() : fmt::format(" on thread {}", site.thread),
                    names.symbols().file(site.line.frame).empty() ? "" : ": the outermost frame of a library is named");
  out += '\n';
  if (with_stack) stack_text(out, names, site);
}

/// "       kept by losses (list, 406 items), local of train() at train.py:16, seen after 12.3 s"
void keeper_text(std::string& out, const Finding& finding) {
  if (finding.keeper)
    out += fmt::format("       kept by {}, seen after {}\n", finding.keeper->words,
                       format_span(static_cast<double>(finding.keeper->looked_us) * 1e-6));
  else
    out += fmt::format("       what keeps it is not known: {}\n", finding.why_no_keeper);
}

/// The held memory as text: "5.6 GiB in 1,218 blocks of 3 lines".
std::string held_words(const Finding& finding) {
  std::string out = fmt::format("{} in {}", format_size(finding.live.bytes), blocks_words(finding.live.blocks));
  if (finding.sites.size() > 1) out += fmt::format(" of {}", format_count(finding.sites.size(), "line"));
  return out;
}

/// A finding with several lines: the probable keeper, the memory of each line, and the stack of the first.
void finding_text(std::string& out, const Finding& finding, const TraceReport& report, const ProbeNames& names,
                  std::size_t number) {
  const ReportSite& keeper = report.sites[finding.sites.front()];
  if (finding.sites.size() == 1) {
    site_text(out, keeper, names, number, true);
    return keeper_text(out, finding);
  }
  out += fmt::format("{:>3}. {}{}\n", number, line_of(keeper, names.symbols()), space_words(keeper.space));
  out += fmt::format("       keeps {}, of each of {}", held_words(finding), format_count(finding.steps, "step"));
  out += finding.leak ? growth_words(finding.growth_bytes_per_s, finding.share)
                      : std::string(shape_words(SiteShape::late));
  out += fmt::format(", the oldest {} old\n", format_span(finding.oldest_s));
  for (const std::size_t i : finding.sites) {
    const ReportSite& site = report.sites[i];
    out += fmt::format("       {:>10} in {}  {}{}\n", format_size(site.live.bytes), blocks_words(site.live.blocks),
                       line_of(site, names.symbols()),
                       site.category == Category::unknown ? "" : fmt::format(", {}", category_words(site.category)));
  }
  keeper_text(out, finding);
  out += fmt::format("       {}\n", keeper.call);
  stack_text(out, names, keeper);
}

/// For a program that allocates with more than one call, or from more than one library; `by`: "call".
std::string held_by_text(std::string_view by, const std::vector<std::pair<std::string_view, Held>>& all) {
  if (all.size() < 2) return {};
  std::string out;
  for (const auto& [name, held] : all)
    out += fmt::format("{} {} {}", out.empty() ? fmt::format("  by {}:", by) : ",", printable(name),
                       held.bytes == 0 ? fmt::format("{} of unknown size", held.blocks) : format_size(held.bytes));
  return out + '\n';
}

/// "  weights 12.4 GiB, activations 3.0 GiB, unknown 12.0 MiB"; empty if all is unknown.
std::string categories_text(const CategoryTotals& totals) {
  std::string out;
  const std::vector<Category> held = totals.held();
  if (held.empty() || held.front() == Category::unknown) return out;
  for (const Category category : held)
    out += fmt::format("{}{} {}", out.empty() ? "  " : ", ", category_words(category),
                       format_size(totals[category].bytes));
  return out + '\n';
}

std::string verdict_text(const TraceReport& report, const Symbols& symbols) {
  if (report.leak) {
    const Finding& first = report.findings.front();
    return fmt::format("LEAK: {} keeps {} ({} are live)\n", line_of(report.sites[first.sites.front()], symbols),
                       rate_words(first.growth_bytes_per_s), held_words(first));
  }
  if (report.suspected) {
    const Finding& first = report.findings.front();
    return fmt::format("SUSPECTED LEAK, began late: {} holds {}\n", line_of(report.sites[first.sites.front()], symbols),
                       held_words(first));
  }
  if (report.residual_grows)
    return "GROWS OUTSIDE THE PROBE'S VIEW: the driver's figure rises, but what is tracked does not\n";
  if (report.undecided) return "Undecided: too little rise to judge\n";
  return report.can_tell ? "No leak\n" : "Cannot tell\n";
}

void frames_json(JsonText& json, const ProbeNames& names, StackId stack) {
  const Symbols& symbols = names.symbols();
  json.key("frames").begin_array();
  for (const FrameId frame : symbols.stack(stack)) {
    json.begin_object().field("function", symbols.name(frame)).field("file", symbols.file(frame));
    json.field("line", symbols.frame(frame).line).field("python", names.is_python(frame)).end_object();
  }
  json.end_array();
}

}  // namespace

std::string trace_report_text(const TraceReport& report, const ProbeNames& names, std::size_t sites) {
  const Symbols& symbols = names.symbols();
  std::string out = verdict_text(report, symbols);
  out += fmt::format("  because {}\n", report.because);
  if (!report.next_step.empty()) out += fmt::format("  next: {}\n", report.next_step);
  out +=
      fmt::format("\n{}\n  {} of device memory live after {}", report.program.empty() ? "(no command)" : report.program,
                  format_size(report.live_bytes[0]), format_span(report.duration_s));
  if (report.cached_bytes > 0) out += fmt::format(", and {} cached by the framework", format_size(report.cached_bytes));
  if (report.live_bytes[1] > 0) out += fmt::format("; {} of pinned host memory", format_size(report.live_bytes[1]));
  if (report.live_bytes[2] > 0) out += fmt::format("; {} mapped from others", format_size(report.live_bytes[2]));
  out += '\n';
  if (report.residual_bytes)
    out +=
        fmt::format("  {} besides what is tracked, by the driver's figure (contexts, libraries){}\n",
                    format_size(*report.residual_bytes),
                    report.residual_grows ? fmt::format(", growing {}", rate_words(report.residual_bytes_per_s)) : "");
  out += categories_text(report.categories);
  out += held_by_text("call", report.calls);
  out += held_by_text("library", report.libraries);
  if (report.processes.size() > 1)
    for (const ReportProcess& process : report.processes)
      out += fmt::format(
          "  process {}: {} live, peak {}, {}{}\n", process.pid, format_size(process.live_bytes[0]),
          format_size(process.peak_bytes), format_count(process.events, "event"),
          process.leaking_sites > 0 ? fmt::format(", {}", format_count(process.leaking_sites, "leaking site")) : "");
  for (const ReportProcess& process : report.processes)
    if (process.epochs >= kLeastEpochs)
      out += fmt::format("  process {}: judged over {} of '{}'\n", process.pid, format_count(process.epochs, "epoch"),
                         process.epoch_name);
  for (const bool leak : {true, false}) {
    std::size_t number = 0;
    for (const Finding& finding : report.findings) {
      if (finding.leak != leak || number >= sites) continue;
      if (number == 0) out += leak ? "\nLeaking sites:\n" : "\nSuspected sites:\n";
      finding_text(out, finding, report, names, ++number);
    }
  }
  std::size_t shown = 0;
  for (const ReportSite& site : report.sites) {
    if (site.finding || site.live.blocks <= 0 || shown >= sites) continue;
    if (shown == 0) out += "\nLargest sites that do not leak:\n";
    site_text(out, site, names, ++shown, false);
  }
  if (report.has_native_exit) {
    bool is_first = true;
    shown = 0;
    for (const ReportSite& site : report.sites) {
      if (site.finding || site.at_exit.blocks <= 0 || site.space == MemorySpace::mapped || shown++ >= sites) continue;
      if (std::exchange(is_first, false)) out += "\nStill held at exit (no leak: it did not grow):\n";
      out += fmt::format("  {:>10} in {}  {}\n", format_size(site.at_exit.bytes), blocks_words(site.at_exit.blocks),
                         line_of(site, symbols));
    }
  }
  if (report.suppressed_sites > 0)
    out += fmt::format("\n{} suppressed\n", format_count(report.suppressed_sites, "site"));
  if (!report.notes.empty()) out += '\n';
  for (const std::string& note : report.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string trace_report_json(const TraceReport& report, const ProbeNames& names) {
  JsonText json;
  json.begin_object().field("schema", "vramtrack.trace_report.v1").field("program", report.program);
  json.field("duration_s", report.duration_s).key("verdict").begin_object();
  json.field("leak", report.leak)
      .field("suspected", report.suspected)
      .field("undecided", report.undecided)
      .field("can_tell", report.can_tell)
      .field("because", report.because)
      .field("next_step", report.next_step)
      .field("growth_bytes_per_s", report.growth_bytes_per_s)
      .field("residual_grows", report.residual_grows);
  json.key("processes").begin_array();
  for (const ReportProcess& process : report.processes)
    json.begin_object()
        .field("pid", process.pid)
        .field("events", process.events)
        .field("live_bytes", process.live_bytes[0])
        .field("host_bytes", process.live_bytes[1])
        .field("mapped_bytes", process.live_bytes[2])
        .field("peak_bytes", process.peak_bytes)
        .field("cached_bytes", process.cached_bytes)
        .field("leaking_sites", process.leaking_sites)
        .field("freed_of_before_bytes", process.freed_of_before.bytes)
        .field("freed_of_before_count", process.freed_of_before.blocks)
        .end_object();
  json.end_array().key("categories").begin_array();
  for (const Category category : report.categories.held())
    json.begin_object()
        .field("category", category_name(category))
        .field("bytes", report.categories[category].bytes)
        .field("told_bytes", report.categories[category].reported_bytes)
        .end_object();
  json.end_array().key("calls").begin_array();
  for (const auto& [call, held] : report.calls)
    json.begin_object().field("call", call).field("bytes", held.bytes).field("count", held.blocks).end_object();
  json.end_array().key("libraries").begin_array();
  for (const auto& [library, held] : report.libraries)
    json.begin_object()
        .field("library", printable(library))
        .field("bytes", held.bytes)
        .field("count", held.blocks)
        .end_object();
  json.end_array().key("notes").begin_array();
  for (const std::string& note : report.notes) json.value(note);
  json.end_array().end_object().key("residual_bytes");
  if (report.residual_bytes)
    json.value(*report.residual_bytes);
  else
    json.null();
  json.key("findings").begin_array();
  for (const Finding& finding : report.findings) {
    json.begin_object().field("leak", finding.leak);
    json.field("site", line_of(report.sites[finding.sites.front()], names.symbols()))
        .field("live_bytes", finding.live.bytes)
        .field("live_count", finding.live.blocks)
        .field("steps", finding.steps)
        .field("growth_bytes_per_s", finding.growth_bytes_per_s)
        .field("share", finding.share);
    json.key("kept_by");
    if (finding.keeper)
      json.begin_object()
          .field("words", finding.keeper->words)
          .field("seen_s", static_cast<double>(finding.keeper->looked_us) * 1e-6)
          .end_object();
    else
      json.null();
    json.field("no_keeper_because", finding.why_no_keeper).key("sites").begin_array();
    for (const std::size_t site : finding.sites) json.value(site);
    json.end_array().end_object();
  }
  json.end_array().key("sites").begin_array();
  for (const ReportSite& site : report.sites) {
    json.begin_object()
        .field("leak", site.leak)
        .field("suspected", site.suspected)
        .field("site", line_of(site, names.symbols()));
    json.field("call", site.call)
        .field("live_bytes", site.live.bytes)
        .field("live_count", site.live.blocks)
        .field("growth_bytes_per_s", site.growth_bytes_per_s);
    json.field("oldest_s", site.oldest_s).field("share", site.share);
    frames_json(json, names, site.stack);
    json.end_object();
  }
  json.end_array().end_object().newline();
  return json.take();
}

std::string trace_top_text(const TraceReport& report, const ProbeNames& names, std::size_t sites) {
  std::string out =
      fmt::format("{:>10} {:>8} {:>12} {:>8} {:>5}  {}\n", "LIVE", "BLOCKS", "GROWTH/S", "OLDEST", "LEAK", "SITE");
  for (std::size_t i = 0; i < report.sites.size() && i < sites; ++i) {
    const ReportSite& site = report.sites[i];
    out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>5}  {}{}\n", format_size(site.live.bytes),
                       format_number(static_cast<std::uint64_t>(std::max<std::int64_t>(0, site.live.blocks))),
                       site.growth_bytes > 0 ? format_size(static_cast<std::int64_t>(site.growth_bytes_per_s)) : "",
                       site.live.blocks > 0 ? format_span(site.oldest_s) : "",
                       site.leak        ? "yes"
                       : site.suspected ? "late"
                                        : "",
                       line_of(site, names.symbols()), space_words(site.space));
  }
  return out;
}

namespace {

struct LineChange {
  SiteLine line;
  StackId stack = kNoStack;
  std::int64_t bytes = 0, blocks = 0;
};

std::vector<LineChange> by_line(const Profile& change, const ProbeNames& names) {
  std::vector<LineChange> lines;
  std::unordered_map<std::uint32_t, std::size_t> place;
  for (const StackBytes& held : change) {
    const SiteLine line = names.line(held.stack);
    const auto [at, is_new] = place.try_emplace(line.is_known ? index_of(line.frame) : IdTable::kNone, lines.size());
    if (is_new) lines.push_back({line, held.stack, 0, 0});
    lines[at->second].bytes += held.bytes;
    lines[at->second].blocks += held.blocks;
  }
  std::erase_if(lines, [](const LineChange& line) { return line.bytes == 0 && line.blocks == 0; });
  order(lines, [](const LineChange& a, const LineChange& b) { return a.bytes > b.bytes; });
  return lines;
}

}  // namespace

std::string trace_diff_text(const Profile& change, const ProbeNames& names, std::string_view from, std::string_view to,
                            std::size_t sites) {
  const auto lines = by_line(change, names);
  std::int64_t total = 0;
  for (const LineChange& line : lines) total += line.bytes;
  std::string out = fmt::format("{} from {} to {}\n\n", format_change(total), printable(from), printable(to));
  for (std::size_t i = 0; i < lines.size() && i < sites; ++i)
    out += fmt::format("{:>12} {:>+9} blocks  {}\n", format_change(lines[i].bytes), lines[i].blocks,
                       line_of(lines[i].line, "", names.symbols()));
  if (lines.size() > sites) out += fmt::format("and {} more\n", lines.size() - sites);
  StackCategories stacks(names.symbols());
  const CategoryTotals totals = categorize(change, {}, stacks);
  if (has_any(totals)) {
    out += "\nby category\n";
    for (const Category category : totals.held())
      out += fmt::format("{:>12} {:>+9} blocks  {}\n", format_change(totals[category].bytes), totals[category].blocks,
                         category_words(category));
  }
  return out;
}

std::string trace_diff_json(const Profile& change, const ProbeNames& names, std::string_view from,
                            std::string_view to) {
  JsonText json;
  json.begin_object()
      .field("schema", "vramtrack.trace_diff.v1")
      .field("from", printable(from))
      .field("to", printable(to));
  json.key("sites").begin_array();
  for (const LineChange& line : by_line(change, names)) {
    json.begin_object().field("change_bytes", line.bytes).field("change_count", line.blocks);
    frames_json(json, names, line.stack);
    json.end_object();
  }
  StackCategories stacks(names.symbols());
  const CategoryTotals totals = categorize(change, {}, stacks);
  json.end_array().key("categories").begin_array();
  for (const Category category : totals.held())
    json.begin_object()
        .field("category", category_name(category))
        .field("change_bytes", totals[category].bytes)
        .field("change_count", totals[category].blocks)
        .end_object();
  json.end_array().end_object().newline();
  return json.take();
}

}  // namespace vramtrack::trace
