#include "report/accounting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/driver_share.hpp"
#include "core/units.hpp"

namespace vramtrack {

Accounting account(const View& view, const DeviceKey& device) {
  Accounting a;
  bool any_ended = false;
  double host_bytes = 0;  ///< of processes, if the device's memory is the host's
  std::optional<std::uint64_t> capacity_bytes;
  for (const SeriesView& s : view.series) {
    const bool here = device_key(s.key) == device;
    if (!here && (s.device.parent_id != device.id || s.key.host != device.host)) continue;
    const auto bytes = static_cast<double>(s.used_bytes);
    if (here && s.key.pid == 0 && s.key.metric == Metric::device_used) {
      a.used_bytes = bytes;
      capacity_bytes = s.device.capacity_bytes;
    }
    if (here && s.key.pid == 0 && s.key.metric == Metric::device_reserved) a.reserved_bytes = bytes;
    if (s.key.metric == Metric::host_anonymous && s.device.shares_host_memory && !s.ended) host_bytes += bytes;
    if (s.key.pid == 0 || s.key.metric != Metric::process_used) continue;
    if (s.ended) {
      any_ended = any_ended || s.used_bytes > 0;
    } else if (s.used_bytes > 0) {
      a.processes_bytes += bytes;
      ++a.processes;
    }
  }
  if (!a.used_bytes) return a;
  if (a.processes_bytes + host_bytes <= *a.used_bytes) a.processes_bytes += host_bytes;  // as in Remainder::also
  const double rest = *a.used_bytes - a.processes_bytes;
  a.rest_bytes = std::max(rest, -rest);
  const double rounding = kMiB * static_cast<double>(a.processes + 1);  // drivers count in MiB
  if (rest < -rounding)
    a.rest = Accounting::Rest::too_much;
  else if (rest <= rounding)
    a.rest = Accounting::Rest::none;
  else if (rest <= driver_share_bytes(capacity_bytes))
    a.rest = Accounting::Rest::driver;
  else
    a.rest = any_ended ? Accounting::Rest::dead : Accounting::Rest::unattributed;
  return a;
}

std::string rest_words(const Accounting& a, const Scale& scale) {
  if (!a.used_bytes) return {};
  const std::string bytes = scale.bytes(a.rest_bytes);
  switch (a.rest) {
    case Accounting::Rest::none:
      return {};
    case Accounting::Rest::driver:
      return bytes + " driver";
    case Accounting::Rest::unattributed:
      return bytes + " held by no visible process";
    case Accounting::Rest::dead:
      return bytes + " held by no live process";
    case Accounting::Rest::too_much:
      return bytes + " counted twice";
  }
  return {};
}

std::string accounting_words(const Accounting& a, const Scale& scale) {
  std::string out = a.processes == 0 ? std::string("no visible process")
                                     : fmt::format("{} process{} {}", a.processes, a.processes == 1 ? "" : "es",
                                                   scale.bytes(a.processes_bytes));
  if (!a.used_bytes) return out + "; the whole device's use is unknown";
  if (const std::string rest = rest_words(a, scale); !rest.empty())
    out += (a.rest == Accounting::Rest::too_much ? " - " : " + ") + rest;
  out += fmt::format(" = {} used", scale.bytes(*a.used_bytes));
  if (a.reserved_bytes && *a.reserved_bytes > 0) out += fmt::format(", {} reserved", scale.bytes(*a.reserved_bytes));
  return out;
}

}  // namespace vramtrack
