// The screens. Pure: the same Model and size give the same cells.
#pragma once

#include "report/conclusion_words.hpp"
#include "top/model.hpp"
#include "top/rows.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

inline constexpr int kLeastWidth = 60;
inline constexpr int kLeastHeight = 16;

/// Draws the whole screen: header line, page, key line, and overlays. On a screen smaller than 60x16, it draws a single
/// message instead. Cost: O(series + cells); about a millisecond with 8 devices and 64 processes.
void draw(Screen& screen, const Model& model);

/// Draws the name, conclusion, forecast and reasons of one device. It is used by the predict page, and by a wide
/// overview for the selected device. `concludes`: whether to draw the conclusion; if not, the caller shows it elsewhere
/// on the screen.
void draw_outlook(Screen& screen, const Rect& area, const Model& model, const DeviceRow& device, bool concludes);

// The pages, one file each. They stay within `area`.
#define VRAMTRACK_PAGE(name, key, keys, help) void draw_##name(Screen& screen, const Rect& area, const Model& model);
#include "top/pages.def"
#undef VRAMTRACK_PAGE
/// Drawn above the page, over a cleared rectangle.
void draw_help(Screen& screen, const Rect& area, const Model& model);
void draw_signal_dialog(Screen& screen, const Rect& area, const Model& model);

/// The time span that the detail chart shows now, for panning and zooming, including by keys.
struct Span {
  Timestamp from;
  Timestamp to;
};
Span detail_span(const Model& model);
/// The whole history of the detail page's series.
Span detail_extent(const Model& model);

/// The number of rows to scroll a list of `rows` so that `selected` is visible.
int first_row(int rows, int selected, int height);

/// Puts the conclusion in at most `most` columns: "CRITICAL, out of memory in 0h 24m (19m–30m)", "LEAK (gradual leak)",
/// "steady", ...; "CRITICAL 0h 24m" if there are few columns.
int put_conclusion(Screen& screen, int x, int y, int most, const SeriesView& series, const ConclusionWords& words,
                   const Scale& scale);

/// Breaks the text at blanks into lines of at most `width` columns.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace vramtrack::top
