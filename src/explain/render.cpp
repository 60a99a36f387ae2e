#include "explain/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/json_text.hpp"
#include "core/printable.hpp"
#include "explain/cause.hpp"
#include "explain/cause_words.hpp"
#include "explain/processes.hpp"
#include "explain/sequence.hpp"
#include "explain/table.hpp"

namespace vramtrack::explain {
namespace {

/// The figures of what filled the memory, in text order.
struct Row {
  Figure figure;
  std::string_view name;
  std::string_view meaning;
};
constexpr Row kRows[] = {
    {Figure::asked, "asked for", "the request that failed"},
    {Figure::needed, "needed", "in all, before it begins"},
    {Figure::planned, "planned", "in all, as the text around it says"},
    {Figure::total, "total", "of the memory in question"},
    {Figure::allowed, "limit", "what may be taken"},
    {Figure::budget, "budget", "of the device, by the engine's own setting"},
    {Figure::weights, "weights", "of the model"},
    {Figure::kv_cache, "KV cache", "what is left for it"},
    {Figure::missing, "missing", "of the budget, before any KV cache"},
    {Figure::slept, "given back", "when it went to sleep"},
    {Figure::allocated, "allocated", "held by the program in its allocator"},
    {Figure::pool, "graph pools", "held by the pools of CUDA graphs, part of what is allocated"},
    {Figure::unallocated, "cached", "reserved and not allocated"},
    {Figure::piece, "largest piece", "of what is reserved and not allocated"},
    {Figure::reserved, "reserved", "taken from the driver by the allocator"},
    {Figure::process, "this process", "as the driver counts it"},
    {Figure::used, "in use", "of the device, by all"},
    {Figure::outside, "outside", "held outside this allocator"},
    {Figure::resident, "in use", "of the host's memory"},
    {Figure::free, "free", "then"},
};

/// The beginning of a message, for one line.
std::string shown(std::string_view text) {
  constexpr std::size_t kColumns = 120;
  const std::string line = printable(text);
  return columns(line) > kColumns ? fit(line, kColumns) : line;
}

std::string row(std::string_view name, double bytes, std::string_view meaning) {
  return fmt::format("  {:<14} {:>11}  {}\n", name, size_words(bytes), meaning);
}

}  // namespace

std::string_view cause_words(Cause cause) {
  switch (cause) {
    case Cause::leak:
      return "LEAK SUSPECTED";
    case Cause::fragmentation:
      return "FRAGMENTATION";
    case Cause::bad_size:
      return "A WRONG SIZE";
    case Cause::too_big:
      return "TOO BIG";
    case Cause::full:
      return "FULL";
    case Cause::limit:
      return "A LIMIT";
    case Cause::outside:
      return "OTHERS HOLD IT";
    case Cause::host:
      return "HOST MEMORY";
    case Cause::resource:
      return "ANOTHER RESOURCE";
    case Cause::unknown:
      break;
  }
  return "CANNOT TELL FROM THIS MESSAGE";
}

std::string headline(const Explanation& e, std::string_view source) {
  const std::string position = source.empty() ? "" : fmt::format("{}:{}: ", printable(source), e.failure().line);
  // It belongs to this process, or may.
  const Failure& f = e.failure();
  const bool may_be_own = e.cause == Cause::outside && (f.may_name_itself || is_own_outside(f));
  return fmt::format("{}{}: {}", position, may_be_own ? "HELD OUTSIDE THE ALLOCATOR" : cause_words(e.cause), e.because);
}

/// The largest of each table, the same number of each, and in total at most as many as for one table.
std::string largest_text(const std::vector<Holding>& largest) {
  constexpr std::size_t kMost = 8;
  const std::size_t tables = table_count(largest);
  std::string out;
  for_each_largest(largest, kMost / std::max<std::size_t>(tables, 1), [&](const Holding& holding, bool begins_table) {
    std::string words = holding_words(holding);
    if (begins_table && tables > 1) words = fmt::format("{} ({})", words, table_words(holding.table));
    out += row(begins_table ? "largest" : "", holding.bytes, words);
  });
  return out;
}

/// Each event on a separate line. The headline of a leak already contains its growth.
std::string sequence_text(const Explanation& e) {
  std::vector<std::string> lines;
  for (const Event& event : e.events) lines.push_back(event_words(event));
  if (e.events.empty()) lines.push_back(failures_words(e.failures));
  if (e.cause != Cause::leak) lines.push_back(e.growth);
  std::erase(lines, "");
  std::string out;
  for (const std::string& line : lines)
    out += fmt::format("  {:<12} {}\n", out.empty() ? "story" : "", printable(line));
  return out;
}

std::string explanation_text(const Explanation& e, std::string_view source) {
  const Failure& f = e.failure();
  std::string out = headline(e, source) + '\n';
  out += fmt::format("  responsible  {}\n", printable(e.fault));
  if (!e.missing_evidence.empty()) out += fmt::format("  to be sure   {}\n", e.missing_evidence);
  if (!e.next_step.empty()) out += fmt::format("  do           {}\n", e.next_step);
  if (!f.went_on.empty()) out += fmt::format("  outcome      the program continued: {}\n", shown(f.went_on));
  out += sequence_text(e);
  out += '\n';
  for (const Row& each : kRows)
    if (const auto bytes = f.figures.get(each.figure))
      out +=
          row(each.name, *bytes,
              each.figure == Figure::process && f.own_pid > 0 ? fmt::format("pid {:.0f}", f.own_pid)
              : each.figure == Figure::kv_cache && f.wording->program == "llama.cpp/ggml" ? "its buffer, made before"
                                                                                          : std::string(each.meaning));
  for (const OtherProcess& other : f.others)
    out +=
        row(f.may_name_itself ? "a process" : "other process", other.bytes,
            fmt::format("pid {}{}", printable(process_name(other)), f.may_name_itself ? ", this one or another" : ""));
  if (const std::string balance = balance_words(f); !balance.empty())
    out += fmt::format("  {:<14} {}\n", "balance", balance);
  out += largest_text(f.largest);
  out += f.wording->text.empty()
             ? fmt::format("  message        {}\n", shown(f.text))
             : fmt::format("  message        {} ({}): {}\n", f.wording->program, f.wording->versions, shown(f.text));
  return out;
}

std::string explanation_json(const Explanation& e, std::string_view source) {
  JsonText j;
  j.begin_object().field("schema", "vramtrack.explain.v1").key("file");
  if (source.empty())
    j.null();
  else
    j.value(source);
  j.field("cause", cause_name(e.cause)).field("because", e.because).field("fault", e.fault);
  j.field("next_step", e.next_step).field("would_tell", e.missing_evidence).field("story", e.sequence);
  j.field("messages", e.message_count).field("decisive", e.decisive);
  j.key("events").begin_array();
  for (const Event& event : e.events)
    j.begin_object()
        .field("line", event.line)
        .field("last_line", event.last_line)
        .field("count", event.count)
        .field("what", event.what)
        .end_object();
  j.end_array().key("failures").begin_array();
  for (const Failure& f : e.failures) {
    j.begin_object().field("line", f.line).field("last_line", f.last_line).field("messages", f.messages);
    j.field("program", f.wording->program).field("versions", f.wording->versions).field("wording", f.wording->name);
    j.field("cause", cause_name(f.cause)).field("because", f.because).field("text", f.text);
    j.field("went_on", f.went_on).field("balance", balance_words(f));
    j.key("figures").begin_object();
    for (std::size_t i = 0; i < kFigureCount; ++i) {
      const auto figure = static_cast<Figure>(i);
      const auto value = f.figures.get(figure);
      if (!value || figure == Figure::skipped) continue;
      if (is_size(figure) && *value < 9e18)
        j.field(figure_key(figure), static_cast<std::uint64_t>(*value));
      else
        j.field(figure_key(figure), *value);
    }
    j.end_object().field("own_pid", static_cast<std::uint64_t>(f.own_pid));
    j.field("others_may_be_own", f.may_name_itself).key("others").begin_array();
    for (const OtherProcess& other : f.others)
      j.begin_object()
          .field("pid", static_cast<std::uint64_t>(other.pid))
          .field("bytes", static_cast<std::uint64_t>(other.bytes))
          .end_object();
    j.end_array().key("largest").begin_array();
    for (const Holding& holding : f.largest)
      j.begin_object()
          .field("table", holding.table)
          .field("bytes", static_cast<std::uint64_t>(holding.bytes))
          .field("count", holding.count)
          .field("shape", holding.shape)
          .field("by", holding.by)
          .field("padding_bytes", static_cast<std::uint64_t>(holding.padding_bytes))
          .end_object();
    j.end_array().end_object();
  }
  j.end_array().end_object();
  return j.take();
}

}  // namespace vramtrack::explain
