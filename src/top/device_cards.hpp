// The GPUs of the overview: one line each, or a card if there is room.
#pragma once

#include "top/rows.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

/// The column headings above one-line rows.
void draw_device_heads(Screen& screen, const Rect& row, const Model& model);
/// One row: name, bar, used, activity, history, growth, conclusion.
void draw_device_line(Screen& screen, const Rect& row, const Model& model, const DeviceRow& device);

struct CardStyle {
  bool only = false;     ///< the only device: the table below shows its accounting anyway
  bool history = false;  ///< the rest of the rectangle shows the history
};
/// A card of at least two rows: the conclusion, memory, activity. With six rows or more, each gauge has its own
/// row.
void draw_device_card(Screen& screen, const Rect& rect, const Model& model, const DeviceRow& device, CardStyle style);

}  // namespace vramtrack::top
