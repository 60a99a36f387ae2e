// Resume: a watch goes on where the last one into the same store ended, so that a leak that was half decided is not
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
/// More samples than this are not: a busy machine resumes less of its past, within a second or two.
inline constexpr double kMostResumedSamples = 1.5e6;

/// Hands the samples and events of the store's end, up to `now`, to `take`, as they were recorded; begin_anew() where a
/// watch began that knew nothing of what came before. True: there were samples. Errors of single chunks are passed
/// over.
Result<bool> read_end(StoreReader& reader, Catalog& catalog, Timestamp now, const std::function<void()>& begin_anew,
                      const std::function<void(const Batch&)>& take);

/// The hourly floors of the last week before `now`, of the devices and of the processes that `view` shows, to `tell`.
void read_days(StoreReader& reader, Catalog& catalog, Timestamp now, const View& view,
               const std::function<void(SeriesId, const std::vector<std::pair<Timestamp, double>>&)>& tell);

/// A process_ended at `now` for each process of `view` that goes on there and does not live any more.
std::vector<Event> ended_meanwhile(const View& view, const std::string& proc_root, Timestamp now);

}  // namespace vramtrack
