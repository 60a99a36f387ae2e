// trace page: live memory over a run, as a page for a browser.
#include <fmt/format.h>

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/cmd_trace.hpp"
#include "cli/timeline_html.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "trace/call_category.hpp"
#include "trace/render/page.hpp"

namespace vramtrack::cli {
namespace {

std::string part_name(const trace::ProcessTrace& process, int device, bool is_only_process) {
  const auto known = process.devices().find(device);
  const std::string words =
      trace::device_words(device, known == process.devices().end() ? std::string_view() : known->second.name);
  if (is_only_process) return printable(words);
  return printable(fmt::format("{} of process {} ({})", words, process.process().pid, process.command()));
}

int run_page(const TraceOptions& options, Console& console) {
  if (options.output.empty() && console.is_terminal())
    return trace_failed(console, {"the timeline is an HTML page: write it to a file with --output"});
  const trace::MemorySpace space = options.host ? trace::MemorySpace::host : trace::MemorySpace::device;
  // Keyed by process and device; the times are the process's own until its start is known.
  std::map<std::pair<std::uint32_t, int>, trace::PagePart> parts;
  std::vector<std::pair<std::uint32_t, probe::Call>> holders;  // stack and call
  std::unordered_map<std::uint64_t, trace::Holder> numbers;    // index of each holder
  trace::Symbols symbols;
  const auto native = native_names();
  const auto run = open_run(
      console, options.files, options, symbols, native.get(),
      [&](std::uint32_t process, const trace::CallSite& site, std::uint64_t /*address*/, std::uint64_t time_us,
          std::int64_t bytes) -> Status {
        if (site.space != space) return {};
        const auto [holder, is_new] =
            numbers.try_emplace(static_cast<std::uint64_t>(site.stack) << 8U | static_cast<std::uint64_t>(site.call),
                                static_cast<trace::Holder>(holders.size()));
        if (is_new) holders.emplace_back(site.stack, site.call);
        parts[{process, site.device}].activity.take(static_cast<std::int64_t>(time_us), holder->second, bytes, 0);
        return {};
      });
  if (!run) return trace_failed(console, run.error());
  if (parts.empty())
    return trace_failed(console, {fmt::format("{}: no {} memory was allocated", printable(options.files.front()),
                                              options.host ? "pinned host" : "device")});
  const auto& processes = (*run)->trace.processes();
  std::vector<trace::PagePart> shown;
  for (auto& [key, part] : parts) {
    const trace::ProcessTrace& process = *processes[key.first];
    part.name = part_name(process, key.second, processes.size() == 1);
    part.stack_of = [&names = *(*run)->names, &process, &holders](trace::Holder holder) {
      return names.stack(process, holders[holder].first);
    };
    part.category_of = [&holders](trace::Holder holder, trace::Category of_stack) {
      return trace::category_of(probe::info_of(holders[holder].second), of_stack);
    };
    part.line_of = (*run)->names->line_of();
    for (const trace::TraceMark& mark : process.marks())
      part.marks.push_back({static_cast<std::int64_t>(mark.time_us), {}, printable(mark.name), false});
    if (const trace::MemoryFailure* failure = process.failure(); failure != nullptr && failure->device == key.second)
      part.marks.push_back({static_cast<std::int64_t>(failure->time_us),
                            {},
                            fmt::format("{}: {} requested", failure->is_refused ? "over the limit" : "out of memory",
                                        format_size(failure->asked_bytes)),
                            true});
    shown.push_back(std::move(part));
  }
  const std::string title = fmt::format("Memory of {}", printable((*run)->trace.program()));
  const auto page = timeline_html(title, trace::page_json(title, shown, symbols));
  return page ? trace_written(console, options, *page, kTraceDone) : trace_failed(console, page.error());
}

Runner declare_page(Arguments& arguments) {
  const auto options = std::make_shared<TraceOptions>();
  add_trace_files(arguments, *options);
  arguments.flag("--host", "Pinned host memory instead of device memory", options->host);
  return [options](Console& console) { return run_page(*options, console); };
}

}  // namespace

const CommandInfo trace_page_verb{"page", "A timeline of the live bytes, by line and category, as one HTML file",
                                  "Example:\n"
                                  "  vramtrack trace page --output timeline.html trace.vramtrack\n"
                                  "Exit: 0 done, 2 could not read it.",
                                  declare_page};

}  // namespace vramtrack::cli
