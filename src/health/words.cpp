// A checkup as text, as one line and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/printable.hpp"
#include "health/checkup.hpp"
#include "report/fields_json.hpp"
#include "report/tone.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kLineBytes = 200;

std::string_view name_of(HealthSeverity severity) {
  return kHealthSeverityNames[static_cast<std::size_t>(severity)];
}
std::string_view name_of(HealthStatus status) {
  return kHealthStatusNames[static_cast<std::size_t>(status)];
}

std::string with_name(const DeviceInfo& device) {
  return health_device_words(device) + (device.name.empty() ? "" : " " + device.name);
}

Tone tone_of(HealthSeverity severity) {
  constexpr Tone kTones[] = {Tone::faint, Tone::notice, Tone::warning};
  return kTones[static_cast<std::size_t>(severity)];
}

/// One block: its level, its subject, and lines below it.
std::string block(std::string_view level, Tone tone, const ReportStyle& style, const std::string& head,
                  std::initializer_list<std::pair<std::string_view, std::string_view>> lines) {
  constexpr std::size_t kLevelWidth = 9;
  std::string out = fmt::format("{}{}\n", toned(fit(level, kLevelWidth), tone, style), printable(head));
  for (const auto& [name, text] : lines)
    if (!text.empty()) out += fmt::format("{:{}}{}: {}\n", "", kLevelWidth, name, printable(text));
  return out;
}

std::string finding_text(const HealthFinding& f, const ReportStyle& style) {
  return block(name_of(f.severity), tone_of(f.severity), style, with_name(f.device) + ": " + f.what,
               {{"usual cause", f.cause == "power" ? "heat or power supply" : f.cause},
                {"evidence", f.evidence},
                {"do", f.advice}});
}

std::string device_text(const DeviceCheckup& one, const ReportStyle& style) {
  const bool is_known = !one.excludes.empty();
  std::string_view verdict = "no sign of a fault";
  if (one.has_fault) verdict = "findings above";
  if (!one.has_fault && !is_known) verdict = "its health is not known";
  const Tone tone = one.has_fault ? Tone::warning : is_known ? Tone::ok : Tone::notice;
  return block(one.has_fault ? "fault"
               : is_known    ? "ok"
                             : "unknown",
               tone, style, fmt::format("{}: {}", with_name(one.device), verdict),
               {{"state", one.words},
                {"excluded", fmt::format("{}", fmt::join(one.excludes, "; "))},
                {"not known", fmt::format("{}", fmt::join(one.unknown, "; "))}});
}

/// The evidence about a leak, including what applies to each GPU that shows no fault.
std::string leak_text(const HealthCheckup& checkup) {
  std::vector<std::string> sound;
  std::vector<std::string> evidence;
  for (const DeviceCheckup& one : checkup.devices) {
    if (one.has_fault || one.excludes.size() < 2) continue;
    if (sound.empty()) evidence = one.excludes;
    std::erase_if(evidence, [&one](const std::string& reason) {
      return std::find(one.excludes.begin(), one.excludes.end(), reason) == one.excludes.end();
    });
    sound.push_back(health_device_words(one.device));
  }
  if (sound.empty() || evidence.empty()) return {};
  return printable(fmt::format(
             "Nearly all leaks are software. If memory leaks on {}, look for the cause there: nothing points to the "
             "hardware ({}). 'vramtrack watch' names the process that grows.",
             fmt::join(sound, ", "), fmt::join(evidence, "; "))) +
         '\n';
}

Json device_json(const DeviceInfo& device) {
  if (device.id.empty() && device.pci_bus_id.empty() && !device.index) return nullptr;
  return {{"id", fields::text_or_null(device.id)},
          {"index", device.index ? Json(*device.index) : Json(nullptr)},
          {"name", fields::text_or_null(device.name)},
          {"pci_bus_id", fields::text_or_null(device.pci_bus_id)}};
}

/// `text` truncated to `most` bytes, without half a character at the end.
std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr std::string_view kMore = "...";
  std::size_t end = most - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + std::string(kMore);
}

std::string more_words(std::size_t count) {
  return count > 1 ? fmt::format(" (and {} more)", count - 1) : std::string();
}

}  // namespace

std::string health_device_words(const DeviceInfo& device) {
  if (device.index) return fmt::format("GPU {}", *device.index);
  if (!device.id.empty()) return (device.parent_id.empty() ? "GPU " : "MIG instance ") + device.id;
  return device.pci_bus_id.empty() ? "this machine" : "GPU at " + device.pci_bus_id;
}

std::string health_line(const HealthCheckup& checkup) {
  const auto least = [&](HealthSeverity severity) {
    return static_cast<std::size_t>(std::count_if(checkup.findings.begin(), checkup.findings.end(),
                                                  [&](const HealthFinding& f) { return f.severity >= severity; }));
  };
  std::string why;
  if (checkup.status == HealthStatus::unhealthy) {
    const HealthFinding& worst = checkup.findings.front();
    why = health_device_words(worst.device) + ": " + worst.what;
    why += more_words(least(worst.severity));
  } else if (checkup.status == HealthStatus::unknown) {
    why = checkup.unchecked.empty() ? "nothing was checked" : "not checked: " + checkup.unchecked.front().what;
    if (!checkup.unchecked.empty()) why += ": " + checkup.unchecked.front().why;
    why += more_words(checkup.unchecked.size());
  } else {
    why = format_count(checkup.devices.size(), "GPU");
    if (const std::size_t warnings = least(HealthSeverity::warning)) why += ", " + format_count(warnings, "warning");
  }
  return cut(printable(fmt::format("{}: {}", name_of(checkup.status), why)), kLineBytes - 1) + '\n';
}

std::string health_text(const HealthCheckup& checkup, const ReportStyle& style) {
  std::string out;
  for (const HealthFinding& finding : checkup.findings) out += finding_text(finding, style);
  for (const Unchecked& one : checkup.unchecked)
    out += block("unknown", Tone::notice, style, fmt::format("not checked: {}: {}", one.what, one.why),
                 {{"do", one.next}});
  for (const DeviceCheckup& one : checkup.devices) out += device_text(one, style);
  if (const std::string leak = leak_text(checkup); !leak.empty()) out += '\n' + leak;
  return out + '\n' + health_line(checkup);
}

std::string health_json(const HealthCheckup& checkup) {
  Json out = {{"schema", "vramtrack.health.v1"},
              {"status", name_of(checkup.status)},
              {"exit_code", static_cast<int>(checkup.status)},
              {"findings", Json::array()},
              {"unchecked", Json::array()},
              {"devices", Json::array()}};
  for (const HealthFinding& f : checkup.findings)
    out["findings"].push_back({{"severity", name_of(f.severity)},
                               {"kind", f.kind},
                               {"device", device_json(f.device)},
                               {"what", f.what},
                               {"cause", fields::text_or_null(f.cause)},
                               {"evidence", f.evidence},
                               {"advice", f.advice}});
  for (const Unchecked& one : checkup.unchecked)
    out["unchecked"].push_back({{"what", one.what}, {"why", one.why}, {"next", fields::text_or_null(one.next)}});
  for (const DeviceCheckup& one : checkup.devices)
    out["devices"].push_back({{"device", device_json(one.device)},
                              {"has_fault", one.has_fault},
                              {"words", one.words},
                              {"excludes", one.excludes},
                              {"unknown", one.unknown}});
  return json_text(out) + '\n';
}

}  // namespace vramtrack
