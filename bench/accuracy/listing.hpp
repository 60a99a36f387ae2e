// How the processes of a trace are reported: with the device's samples, by their own log, or not at all.
#pragma once

#include <optional>
#include <vector>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// What a log of processes of its own makes of the samples: a listing now and then, some time after the device's
/// reading, with the figures of that reading; an end is known at the first listing without the process. `trace` and
/// `catalog` must outlive it.
class Listing {
 public:
  Listing(const Trace& trace, const Catalog& catalog) : trace_(trace), catalog_(catalog) {}

  /// What the engine gets of `batch`; what was listed since the last one comes first.
  Batch pass(const Batch& batch);

 private:
  [[nodiscard]] Batch own_device(const Batch& batch) const;

  const Trace& trace_;
  const Catalog& catalog_;
  Batch late_;
  std::vector<Event> ended_;
  std::optional<Timestamp> last_;
  int ticks_ = 0;
};

}  // namespace vramtrack::accuracy
