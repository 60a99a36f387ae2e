// How series and alerts are named in URLs, in JSON and in files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// "device_used/GPU-8f…", "process_used/GPU-8f…/4242/987654": a series in URLs and in JSON.
std::string series_key_text(const SeriesKey& key);
std::optional<SeriesKey> parse_series_key(std::string_view text);

/// 16 hex digits that identify an alert: the same in every run for the same series and the same time of raising.
std::string alert_id(const SeriesKey& key, Timestamp raised);

}  // namespace vramtrack
