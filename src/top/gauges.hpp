// Gauges as text: activity, temperature and power; "-" if the driver does not report them. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/view.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

/// Whether anything besides memory is reported.
bool has_gauges(const SeriesView& device);

/// "87", "104", or "-": the unit is in the table's heading.
std::string percent_figure(const std::optional<double>& ratio);
/// "87 %", or "-".
std::string percent_or_dash(const std::optional<double>& ratio);
/// The temperature from the gauges, else from the last reading of its health.
std::optional<double> temperature_celsius(const SeriesView& device);
/// "64 °C", or "-".
std::string temperature_words(const SeriesView& device);
/// Role::notice or Role::bad while heat throttles the clocks.
Role temperature_role(const SeriesView& device);
/// "312/450 W"; "312 W" without a limit; or "-".
std::string power_words(const DeviceGauges& gauges);
/// Power draw relative to the limit; nullopt if either is unknown.
std::optional<double> power_ratio(const DeviceGauges& gauges);

/// A bar of `width` cells that is full at 1; empty if the ratio is unknown.
void draw_ratio(Screen& screen, int x, int y, int width, const std::optional<double>& ratio, Role role);

}  // namespace vramtrack::top
