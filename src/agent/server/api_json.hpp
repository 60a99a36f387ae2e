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

/// A point of a history as JSON: a time and three numbers of bytes.
constexpr std::uint64_t kJsonBytesAPoint = 48;
/// Memory: that of the text, some kJsonBytesAPoint a point. It is written at once, without a tree.
std::string history_json(const HistoryQuery& query, const History& history);
std::string gauges_json(const std::string& device_id, const HistoryRange& range, const GaugeHistory& history);

/// A series that the store knows.
struct KnownSeries {
  SeriesKey key;
  Timestamp first;
  Timestamp last;
};
std::string series_json(const std::vector<KnownSeries>& series);

/// One alert and its subject; of a process only pid and short name.
struct KnownAlert {
  SeriesKey key;
  DeviceInfo device;
  std::string process;
  Alert alert;
  std::optional<SilenceSubject> subject;  ///< of one that stands now
};
using FindAcknowledgement = std::function<std::optional<Acknowledgement>(const std::string& id)>;
using FindSilence = std::function<std::optional<Silence>(const SilenceSubject& subject)>;
std::vector<Incident> incidents_of(const std::vector<KnownAlert>& alerts);
/// As given; the caller sorts and cuts.
std::string alerts_json(std::optional<Timestamp> time, const std::vector<KnownAlert>& alerts,
                        const FindAcknowledgement& acknowledged, const FindSilence& silence);
/// What POST /api/v1/marks asks for: {"pid": 4242, "mark": "step=1200"}, or {"pids": [[4242], [7, 9]], "mark": ...}.
struct AskedMark {
  /// Pids as the client sees them: the first group with a known process is used. A single pid is a group of its own.
  std::vector<std::vector<std::uint32_t>> pids;
  std::string text;  ///< printable; a mark of core/mark.hpp
};
Result<AskedMark> asked_mark(const std::string& body);

/// What policies do: their ladders and the last acts. A command line and what quotes it is shown to those who may see
/// it.
std::string acts_json(const act::ActsState& state, const Rights& rights);
std::string silences_json(const std::vector<Silence>& silences, Timestamp now);

/// Those processes under the probe that the client may see.
std::string probed_json(const std::vector<ProbedProcess>& processes);

/// The body of an acknowledgement: `by` and `note`, both may be missing. Errors name what is wrong.
Result<Acknowledgement> parse_acknowledgement(std::string_view body);
std::string acknowledgement_json(const Acknowledgement& acknowledgement);

}  // namespace vramtrack::agent
