#include "top/theme.hpp"

#include <algorithm>

namespace vramtrack::top {
namespace {

constexpr Look coloured(std::int16_t colour, std::int16_t colour8, bool bold = false) {
  return Look{colour, colour8, bold, false, false, false};
}
constexpr Look kPlain{};
constexpr Look kFaint{-1, -1, false, true, false, false};
constexpr Look kBold{-1, -1, true, false, false, false};

// In the order of Role: plain, faint, title, key, good, notice, bad, critical, bar, busy, history, trend, band, mark.
// "colour-blind" uses the palette of Okabe and Ito (2008), with colours that stay distinguishable with each of the
// three common deficiencies, and never contrasts red with green.
constexpr std::array<Theme, 4> kThemes = {{
    {"dark",
     "for dark backgrounds",
     {kPlain, coloured(245, 7), kBold, coloured(81, 6), coloured(114, 2), coloured(221, 3), coloured(203, 1, true),
      Look{197, 1, true, false, true, false}, coloured(75, 4), coloured(79, 6), coloured(75, 4), coloured(221, 3, true),
      coloured(209, 1), coloured(213, 5, true)}},
    {"light",
     "for light backgrounds",
     {kPlain, coloured(242, 0), kBold, coloured(25, 4), coloured(28, 2), coloured(130, 3), coloured(160, 1, true),
      Look{160, 1, true, false, true, false}, coloured(25, 4), coloured(30, 6), coloured(25, 4), coloured(130, 3, true),
      coloured(160, 1), coloured(90, 5, true)}},
    {"colour-blind",
     "blue, orange and yellow, distinguishable with every common colour blindness",
     {kPlain, coloured(245, 7), kBold, coloured(74, 6), coloured(74, 6), coloured(220, 3), coloured(208, 3, true),
      Look{208, 3, true, false, true, false}, coloured(32, 4), coloured(36, 6), coloured(32, 4), coloured(220, 3, true),
      coloured(208, 3), coloured(175, 5, true)}},
    {"monochrome",
     "no colours; the default when NO_COLOR is set",
     {kPlain, kFaint, kBold, Look{-1, -1, false, false, false, true}, kPlain, kPlain, kBold,
      Look{-1, -1, true, false, true, false}, kPlain, kPlain, kPlain, kBold, kFaint, kBold}},
}};

}  // namespace

std::span<const Theme> themes() {
  return kThemes;
}

int find_theme(std::string_view name) {
  const auto it = std::find_if(kThemes.begin(), kThemes.end(), [name](const Theme& t) { return t.name == name; });
  return it == kThemes.end() ? -1 : static_cast<int>(it - kThemes.begin());
}

}  // namespace vramtrack::top
