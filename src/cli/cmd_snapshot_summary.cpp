// snapshot summary: what the reserved memory is, by device, pool and stream.
#include "cli/cmd_snapshot.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::cli {

int snapshot_summary(SnapshotWork& work) {
  const trace::Shown shown{work.device(), work.options.snapshot.top};
  return work.finish(work.options.json ? trace::summary_json(work.snapshots, work.symbols, shown)
                                       : trace::summary_text(work.snapshots, work.symbols, shown),
                     kSnapshotDone);
}

}  // namespace vramtrack::cli
