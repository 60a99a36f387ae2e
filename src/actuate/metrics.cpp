// The summary as Prometheus text. All label values are fixed words of this program, so nothing needs escaping.
#include <fmt/format.h>

#include "actuate/documents.hpp"

namespace vramtrack::actuate {
namespace {

std::string head(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

template <class Value>
std::string one(const char* name, const char* type, const char* help, Value value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace

std::string summary_metrics(const Summary& summary) {
  std::string out;
  out +=
      one("vramtrack_actuate_dry_run", "gauge", "1 in a dry run, in which nothing is done.", summary.dry_run ? 1 : 0);
  out += one("vramtrack_actuate_breaker_open", "gauge", "1 while the circuit breaker keeps all steps waiting.",
             summary.breaker ? 1 : 0);
  out += one("vramtrack_actuate_nodes_acted_on", "gauge", "Nodes acted on within the window of the breaker.",
             summary.nodes_acted_on);
  out += one("vramtrack_actuate_nodes_allowed", "gauge", "Nodes that may be acted on within the window.",
             summary.nodes_allowed);
  out += one("vramtrack_actuate_ladders", "gauge", "Ladders in progress.", summary.climbing);
  std::size_t open = 0;
  for (const act::Climb& one : summary.alerts_known)
    if (one.phase != act::Climb::Phase::over && !one.claim->is_resolved) ++open;
  out += one("vramtrack_actuate_alerts_open", "gauge", "Firing alerts that are not closed yet.", open);
  out += one("vramtrack_actuate_webhooks_total", "counter", "Webhooks received.", summary.webhooks);
  out +=
      one("vramtrack_actuate_bad_webhooks_total", "counter", "Webhooks that could not be read.", summary.bad_webhooks);
  out +=
      one("vramtrack_actuate_alerts_total", "counter", "Alerts in these webhooks, repeats included.", summary.alerts);
  out += one("vramtrack_actuate_record_failures_total", "counter", "Lines of the record that could not be written.",
             summary.record_failures);
  if (summary.last_webhook)
    out += one("vramtrack_actuate_last_webhook_timestamp_seconds", "gauge", "Time when the last webhook was received.",
               fmt::format("{:.3f}", static_cast<double>(summary.last_webhook->time_since_epoch().count()) * 1e-9));
  if (!summary.acts.empty()) out += head("vramtrack_acts_total", "counter", "Steps by action and outcome.");
  for (const auto& [what, count] : summary.acts)
    out += fmt::format("vramtrack_acts_total{{action=\"{}\",outcome=\"{}\"}} {}\n", what.first, what.second, count);
  if (!summary.refused.empty()) out += head("vramtrack_actuate_refused_total", "counter", "Refused alerts, by reason.");
  for (const auto& [reason, count] : summary.refused)
    out += fmt::format("vramtrack_actuate_refused_total{{reason=\"{}\"}} {}\n", reason, count);
  return out;
}

}  // namespace vramtrack::actuate
