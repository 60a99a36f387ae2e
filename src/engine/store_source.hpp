// A recorded store as a Source: hop 1 of a replay.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"
#include "source/source.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// The samples of `range` of the store at `path`, in time order; `catalog` must outlive the source. A chunk
/// that is damaged is skipped and named in notes().warnings. Errors are those of StoreReader::open.
Result<std::unique_ptr<Source>> open_store_source(const std::string& path, const TimeRange& range, Catalog& catalog);

}  // namespace vramtrack
