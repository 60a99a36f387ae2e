// The API's JSON documents: pure functions from what is known to text (docs/openapi.yaml).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/acknowledgements.hpp"
#include "agent/server/api.hpp"
#include "agent/server/history.hpp"
#include "agent/server/published.hpp"
#include "report/story.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {

std::string error_json(std::string_view code, std::string_view message);
std::string version_json(const ApiConfig& config);
/// `snapshot` may be null: nothing has been sampled yet.
std::string status_json(const Snapshot* snapshot, const ApiConfig& config, const MaySeeCommand& may_see,
                        std::size_t streams);
std::string tick_json(const View& view);
std::string config_json(const LayeredConfig& layers);
std::string history_json(const HistoryQuery& query, const History& history);

/// A series that the store knows.
struct KnownSeries {
  SeriesKey key;
  Timestamp first;
  Timestamp last;
};
std::string series_json(const std::vector<KnownSeries>& series);

/// One alert and whom it concerns; nothing of a process but pid and short name.
struct KnownAlert {
  SeriesKey key;
  DeviceInfo device;
  std::string process;
  Alert alert;
};
using FindAcknowledgement = std::function<std::optional<Acknowledgement>(const std::string& id)>;
/// As given; the caller sorts and cuts.
/// For told_with().
std::vector<AlertOf> alerts_of(const std::vector<KnownAlert>& alerts);

std::string alerts_json(std::optional<Timestamp> time, const std::vector<KnownAlert>& alerts,
                        const FindAcknowledgement& acknowledged);

/// The body of an acknowledgement: `by` and `note`, both may be missing. Errors name what is wrong.
Result<Acknowledgement> parse_acknowledgement(std::string_view body);
std::string acknowledgement_json(const Acknowledgement& acknowledgement);

}  // namespace vramtrack::agent
