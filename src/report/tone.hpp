// Tone: how serious words are, and thus their colour on a terminal, a screen and a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace vramtrack {

/// `watch`, `warning`, `critical`: for a leak, by its severity. `warning` is also for a run that ended badly and for
/// anything else that needs attention. `plain`: no colour.
enum class Tone : std::uint8_t { plain, ok, notice, watch, warning, critical, faint };

/// "ok", "notice", "critical", ...: the CSS class of the words on a page.
std::string_view to_string(Tone tone);

/// Whether it needs attention: `watch`, `warning`, `critical`.
bool is_bad(Tone tone);

/// `text` in the tone's colour, or unchanged if the style has no colours.
std::string toned(std::string_view text, Tone tone, const ReportStyle& style);

}  // namespace vramtrack
