// The View as JSON and back: what the agent serves and its clients read (docs/openapi.yaml, schema View).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/series_text.hpp"
#include "core/view.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {

/// One line of JSON without a final newline. Exact: times to the nanosecond, sizes and figures unchanged (a figure that
/// is not finite becomes null and reads as 0). Bytes that are not UTF-8 become U+FFFD. If `may_see` returns false, the
/// process's short name replaces its command line, in suspects too. O(series), some 20 us each.
std::string view_json(const View& view, const MaySeeCommand& may_see = {});

/// Reads the View that view_json wrote. Missing fields keep their defaults and unknown ones are ignored, so versions
/// may be mixed; a wrong type or word is an Error that names the place ("series[3].verdict.severity"). Pure.
Result<View> parse_view_json(std::string_view text);

/// One alert as in the view of a live watch; a JSON object as text.
std::string alert_object_json(const SeriesKey& key, const Alert& alert);
/// The Alert that alert_object_json wrote, or an object with more fields; its series is unknown (0). Errors as above.
Result<Alert> parse_alert_object_json(std::string_view text);

/// "2026-01-02T03:04:05.123456789Z", without trailing zero decimals; and back. Years 1678 to 2261.
std::string exact_time(Timestamp time);
std::optional<Timestamp> parse_exact_time(std::string_view text);

}  // namespace vramtrack
