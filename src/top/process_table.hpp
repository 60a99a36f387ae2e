// The process table of the overview.
#pragma once

#include <vector>

#include "top/rows.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

/// A rule that adds up the selected device's memory, headings, and a row per process. `all`: devices() of the model.
void draw_processes(Screen& screen, const Rect& area, const Model& model, const std::vector<DeviceRow>& all);

}  // namespace vramtrack::top
