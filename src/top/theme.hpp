// Themes: the colours of the roles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "top/screen.hpp"

namespace vramtrack::top {

/// The appearance of a role. Colours are from the 256-colour palette, with the nearest of the 8 for simpler terminals.
struct Look {
  std::int16_t colour = -1;  ///< -1: the terminal's own
  std::int16_t colour8 = -1;
  bool bold = false;
  bool dim = false;
  bool reverse = false;
  bool underline = false;
};

struct Theme {
  std::string_view name;
  std::string_view help;
  std::array<Look, kRoles> looks;  ///< by Role
  [[nodiscard]] const Look& look(Role role) const { return looks[static_cast<std::size_t>(role)]; }
};

/// All themes; the first is the default. Backgrounds are the terminal's own.
std::span<const Theme> themes();
/// Index into themes(); -1 for an unknown name.
int find_theme(std::string_view name);

}  // namespace vramtrack::top
