// The API's JSON documents: pure functions that write the agent's data as text (docs/openapi.yaml).
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
#include "core/incident.hpp"
#include "live/silences.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {

std::string version_json(const ApiConfig& config);
/// `snapshot` may be null: nothing has been sampled yet. `probed`: the processes under the probe that the client may
/// see.
std::string status_json(const Snapshot* snapshot, const ApiConfig& config, const MaySeeCommand& may_see,
                        const std::vector<ProbedProcess>& probed, std::size_t streams, std::size_t silenced);
std::string tick_json(const View& view);
std::string config_json(const LayeredConfig& layers);

/// The size of one point of a history as JSON: a time and three numbers of bytes.
constexpr std::uint64_t kJsonBytesAPoint = 48;
/// Memory: the size of the text, some kJsonBytesAPoint per point. It is written directly, without a tree.
std::string history_json(const HistoryQuery& query, const History& history);
std::string gauges_json(const std::string& device_id, const HistoryRange& range, const GaugeHistory& history);

/// A series in the store.
struct KnownSeries {
  SeriesKey key;
  Timestamp first;
  Timestamp last;
};
std::string series_json(const std::vector<KnownSeries>& series);

/// One alert and its subject; for a process, only its pid and short name.
struct KnownAlert {
  SeriesKey key;
  DeviceInfo device;
  std::string process;
  Alert alert;
  std::optional<SilenceSubject> subject;  ///< set if the alert is active now
};
using FindAcknowledgement = std::function<std::optional<Acknowledgement>(const std::string& id)>;
using FindSilence = std::function<std::optional<Silence>(const SilenceSubject& subject)>;
std::vector<Incident> incidents_of(const std::vector<KnownAlert>& alerts);
/// Writes the alerts as given; the caller sorts and truncates them.
std::string alerts_json(std::optional<Timestamp> time, const std::vector<KnownAlert>& alerts,
                        const FindAcknowledgement& acknowledged, const FindSilence& silence);
/// The body of POST /api/v1/marks: {"pid": 4242, "mark": "step=1200"}, or {"pids": [[4242], [7, 9]], "mark": ...}.
struct AskedMark {
  /// Pids as the client sees them: the first group with a known process is used. A single pid is its own group.
  std::vector<std::vector<std::uint32_t>> pids;
  std::string text;  ///< printable; a mark as in core/mark.hpp
};
Result<AskedMark> asked_mark(const std::string& body);

/// The activity of the policies: their ladders and the last acts. A command line, and text that quotes it, is shown
/// only to clients that may see it.
std::string acts_json(const act::ActsState& state, const Rights& rights);
std::string silences_json(const std::vector<Silence>& silences, Timestamp now);

/// `processes`: the processes under the probe that the client may see.
std::string probed_json(const std::vector<ProbedProcess>& processes);

/// The body of an acknowledgement: `by` and `note`, both optional. Errors name what is wrong.
Result<Acknowledgement> parse_acknowledgement(std::string_view body);
std::string acknowledgement_json(const Acknowledgement& acknowledgement);

}  // namespace vramtrack::agent
