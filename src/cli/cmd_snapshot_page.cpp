// snapshot page: live memory over the trace, and the allocator's segments, as a page for a browser.
#include <fmt/format.h>

#include "cli/cmd_snapshot.hpp"
#include "cli/timeline_html.hpp"
#include "core/printable.hpp"
#include "trace/render/page.hpp"

namespace vramtrack::cli {
namespace {

int snapshot_page(SnapshotWork& work) {
  if (work.options.output.empty() && work.console.is_terminal())
    return work.fail("the timeline is an HTML page: write it to a file with --output");
  const trace::Snapshot& snapshot = work.snapshots.front();
  const auto parts = trace::page_parts(snapshot, work.symbols, work.device());
  if (parts.empty())
    return work.fail(fmt::format("{} has neither a trace nor any memory{}", printable(snapshot.file),
                                 work.device() ? fmt::format(" of device {}", *work.device()) : ""));
  const std::string title = "Memory over " + printable(snapshot.file);
  const auto page = timeline_html(title, trace::page_json(title, parts, work.symbols));
  return page ? work.finish(*page, kSnapshotDone) : work.fail(page.error().message);
}

Runner declare_page(Arguments& arguments) {
  const auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_file(arguments, *options);
  return snapshot_runner(options, {"page", snapshot_page, true});
}

}  // namespace

const CommandInfo snapshot_page_verb{"page",
                                     "A timeline of the live bytes, with the allocator's segments, as one HTML file",
                                     "Example:\n"
                                     "  vramtrack snapshot page --output timeline.html memory_snapshot.pickle\n"
                                     "Exit: 0 done, 2 could not read it.",
                                     declare_page};

}  // namespace vramtrack::cli
