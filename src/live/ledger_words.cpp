// The ledger as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/json.hpp"
#include "live/ledger.hpp"

namespace vramtrack {
namespace {

/// "container 0123456789ab, pod …, Slurm job 12"; empty if none is known.
std::string place_of(const ProcessInfo& info) {
  constexpr std::size_t kIdDigits = 12;
  std::string out;
  const auto add = [&out](std::string_view what, std::string_view name) {
    if (!name.empty()) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", what, name);
  };
  add("container", std::string_view(info.container).substr(0, kIdDigits));
  add("pod", info.pod);
  add("Slurm job", info.slurm_job);
  return out;
}

std::string device_name(const DeviceInfo& device) {
  const std::string index = device.index ? std::to_string(*device.index) : device.id;
  return fmt::format("{} {}{}{}", device.parent_id.empty() ? "GPU" : "MIG instance", index,
                     device.name.empty() ? "" : " ", device.name);
}

std::string command_of(const ProcessInfo& info) {
  if (!info.command.empty()) return info.command;
  return info.name.empty() ? "-" : info.name;
}

std::string holder_rows(const Holder& holder, const std::string& memory, bool with_files) {
  const ProcessInfo& info = holder.info;
  std::string out =
      fmt::format("  {:>7}  {} {:>9}  {:>8}  {} {}\n", info.pid, fit(info.user.empty() ? "-" : info.user, 10), memory,
                  holder.age_s ? format_duration(*holder.age_s) : "-", fit(std::string(to_string(holder.state)), 15),
                  command_of(info));
  out += fmt::format("           {}", holder.why);
  if (const std::string place = place_of(info); !place.empty()) out += fmt::format("; {}", place);
  if (with_files) out += fmt::format("; open: {}", fmt::join(holder.files, ", "));
  return out + '\n';
}

std::string heading() {
  return fmt::format("  {:>7}  {} {:>9}  {:>8}  {} {}\n", "pid", fit("user", 10), "memory", "age", fit("state", 15),
                     "command");
}

std::string used_words(const DeviceLedger& one) {
  if (!one.used_bytes) return "the driver does not report how much memory is";
  const auto used = static_cast<double>(*one.used_bytes);
  if (!one.device.capacity_bytes) return format_bytes(used);
  return format_bytes_of(used, static_cast<double>(*one.device.capacity_bytes));
}

std::string device_text(const DeviceLedger& one) {
  std::string out = fmt::format("{}: {} in use\n", device_name(one.device), used_words(one));
  out += fmt::format("  {:>9}  {} listed by the driver", format_bytes(one.process_bytes),
                     one.lines.size() == 1 ? std::string("1 process") : fmt::format("{} processes", one.lines.size()));
  if (one.without_bytes > 0)
    out += fmt::format("; the driver does not report the memory of {} of them", one.without_bytes);
  out += '\n';
  if (one.used_bytes) {
    out += fmt::format("  {:>9}  driver (contexts, page tables)\n", format_bytes(one.driver_bytes));
    out += fmt::format("  {:>9}  unattributed: no listed process holds it\n", format_bytes(one.unattributed_bytes));
  }
  if (!one.lines.empty()) out += '\n' + heading();
  const std::vector<Walled> walled = walled_lines(one);
  for (std::size_t i = 0; i < one.lines.size(); ++i) {
    const LedgerLine& line = one.lines[i];
    out += holder_rows(line.holder, line.bytes ? format_bytes(*line.bytes) : "-", false);
    if (const Wall* const nearest = nearest_wall(walled[i], walled)) {
      const double used = used_of(walled, nearest->name);
      out += fmt::format("           its memory is limited to {}: {}{}\n", format_bytes(nearest->bytes), nearest->name,
                         used > walled[i].bytes ? fmt::format(", of which {} are used", format_bytes(used)) : "");
    }
    for (const LedgerSite& site : line.sites)
      out += fmt::format("           {:>9}  allocated by {}\n", format_bytes(site.bytes), site.site);
  }
  if (!one.not_listed.empty())
    out += "\n  These processes have the GPU open, but the driver does not list them:\n" + heading();
  for (const Holder& holder : one.not_listed) out += holder_rows(holder, "-", true);
  return out;
}

Json holder_object(const Holder& holder) {
  const ProcessInfo& info = holder.info;
  Json out;
  out["pid"] = info.pid;
  out["start_ticks"] = info.start_ticks;
  out["user"] = info.user;
  out["command"] = info.command;
  out["name"] = info.name;
  out["container"] = info.container;
  out["pod"] = info.pod;
  out["slurm_job"] = info.slurm_job;
  out["parent_pid"] = holder.parent_pid;
  out["age_s"] = holder.age_s ? Json(*holder.age_s) : Json();
  out["state"] = to_string(holder.state);
  out["why"] = holder.why;
  out["files"] = holder.files;
  return out;
}

Json holder_list(const std::vector<Holder>& holders) {
  Json out = Json::array();
  for (const Holder& holder : holders) out.push_back(holder_object(holder));
  return out;
}

Json device_object(const DeviceLedger& one) {
  Json out;
  out["id"] = one.device.id;
  out["index"] = one.device.index ? Json(*one.device.index) : Json();
  out["name"] = one.device.name;
  out["capacity_bytes"] = one.device.capacity_bytes ? Json(*one.device.capacity_bytes) : Json();
  out["used_bytes"] = one.used_bytes ? Json(*one.used_bytes) : Json();
  out["process_bytes"] = one.process_bytes;
  out["driver_bytes"] = one.driver_bytes;
  out["unattributed_bytes"] = one.unattributed_bytes;
  out["processes"] = Json::array();
  const std::vector<Walled> walled = walled_lines(one);
  for (const LedgerLine& line : one.lines) {
    Json object = holder_object(line.holder);
    object["bytes"] = line.bytes ? Json(*line.bytes) : Json();
    object["walls"] = Json::array();
    for (const Wall& wall : line.walls)
      object["walls"].push_back({{"bytes", wall.bytes},
                                 {"used_bytes", static_cast<std::uint64_t>(used_of(walled, wall.name))},
                                 {"name", wall.name}});
    object["sites"] = Json::array();
    for (const LedgerSite& site : line.sites) object["sites"].push_back({{"site", site.site}, {"bytes", site.bytes}});
    out["processes"].push_back(std::move(object));
  }
  out["not_listed"] = holder_list(one.not_listed);
  return out;
}

}  // namespace

std::string ledger_text(const Ledger& ledger) {
  std::string out;
  for (const DeviceLedger& one : ledger.devices) out += (out.empty() ? "" : "\n") + device_text(one);
  if (!ledger.elsewhere.empty())
    out += "\nThese processes have files of the driver open, but the driver lists them on none of these GPUs:\n" +
           heading();
  for (const Holder& holder : ledger.elsewhere) out += holder_rows(holder, "-", true);
  if (ledger.not_inspected > 0)
    out += fmt::format("\n{} of other users could not be inspected; run as root to see {}\n",
                       ledger.not_inspected == 1 ? "1 process" : fmt::format("{} processes", ledger.not_inspected),
                       ledger.not_inspected == 1 ? "it" : "them");
  return printable_lines(out);
}

std::string ledger_json(const Ledger& ledger) {
  Json out;
  out["schema"] = "vramtrack.holders.v1";
  out["devices"] = Json::array();
  for (const DeviceLedger& one : ledger.devices) out["devices"].push_back(device_object(one));
  out["elsewhere"] = holder_list(ledger.elsewhere);
  out["not_inspected"] = ledger.not_inspected;
  return json_text(out) + '\n';
}

}  // namespace vramtrack
