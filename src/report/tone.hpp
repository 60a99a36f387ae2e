// Tone: what words are worth, and so the colour that goes with them on a terminal, a screen and a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace vramtrack {

/// `watch`, `warning`, `critical`: of a leak, by its severity. `warning` is also of a run that ended badly and of all
/// else that needs somebody. `plain`: no colour.
enum class Tone : std::uint8_t { plain, ok, notice, watch, warning, critical, faint };

/// "ok", "notice", "critical", ...: the class of the words on a page.
std::string_view to_string(Tone tone);

/// Whether somebody should look: `watch`, `warning`, `critical`.
bool is_bad(Tone tone);

/// `text` in the tone's colour, or as it is when the style has no colours.
std::string toned(std::string_view text, Tone tone, const ReportStyle& style);

}  // namespace vramtrack
