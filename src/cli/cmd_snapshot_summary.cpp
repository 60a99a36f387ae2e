// snapshot summary: what the reserved memory consists of, by device, pool and stream.
#include "cli/cmd_snapshot.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {
namespace {

int snapshot_summary(SnapshotWork& work) {
  const trace::Shown shown{work.device(), work.options.top};
  return work.finish(work.options.json ? trace::summary_json(work.snapshots, work.symbols, shown)
                                       : trace::summary_text(work.snapshots, work.symbols, shown),
                     kSnapshotDone);
}

Runner declare(Arguments& arguments) {
  const auto options = snapshot_sites_options(arguments);
  return snapshot_runner(options, {"summary", snapshot_summary});
}

}  // namespace

const CommandInfo snapshot_summary_verb{"summary", "What the reserved memory is: in use, cached, fragmented, waiting",
                                        "Example:\n"
                                        "  vramtrack snapshot summary memory_snapshot.pickle\n"
                                        "Exit: 0 done, 2 could not read it.",
                                        declare};

}  // namespace vramtrack::cli
