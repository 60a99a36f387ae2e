// Resume: a watch continues where the last one into the same store ended, so that a leak that was half decided is not
// forgotten.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/view.hpp"
#include "engine/engine.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// The longest past that is taken in again.
inline constexpr Duration kResumed = std::chrono::hours{24};
/// At most this many samples are taken in: a busy machine resumes less of its past, within a second or two.
inline constexpr double kMostResumedSamples = 1.5e6;

/// Passes the samples and events at the store's end, up to `now`, to `take`, as they were recorded; calls begin_anew()
/// where a watch began that knew nothing of what came before. True if there were samples. Errors in single chunks are
/// skipped.
Result<bool> read_end(StoreReader& reader, Catalog& catalog, Timestamp now, const std::function<void()>& begin_anew,
                      const std::function<void(const Batch&)>& take);

/// Passes the hourly floors of the last week before `now`, for the devices and processes that `view` shows, to
/// `report`.
void read_days(StoreReader& reader, Catalog& catalog, Timestamp now, const View& view,
               const std::function<void(SeriesId, const std::vector<std::pair<Timestamp, double>>&)>& report);

/// A process_ended at `now` for each process that still runs in `view` but no longer exists.
std::vector<Event> ended_meanwhile(const View& view, const std::string& proc_root, Timestamp now);

}  // namespace vramtrack
