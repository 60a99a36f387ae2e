// What a verdict is called in a sentence, and what to do next. Shared by the reports for people.
#pragma once

#include <string>
#include <string_view>

#include "report/report.hpp"

namespace vramtrack {

/// "gradual leak", "sudden spike", ...
std::string_view pattern_words(Pattern pattern);
/// "LEAK (gradual leak)", "steady", "growing, not yet decidable", "spiked, then stabilised", ...
std::string verdict_words(const SeriesView& series);
/// "GPU 0 NVIDIA A10", "GPU GPU-8f…" where it has no index; MIG instances say so.
std::string device_words(const SeriesView& series);
/// "pid 4242 python train.py (alice)".
std::string process_words(const SeriesView& series);
/// "pid 4242 python train.py: 96 % of the growth"; or that no visible process
/// explains it.
std::string suspect_words(const Suspect& suspect);
/// "out of memory in 0h 24m (19m–30m)"; empty without a leak or an end.
std::string end_words(const SeriesView& series);
/// The leak alert that stood when the run of `series` ended; null: none did, or it has not ended.
const Alert* alert_at_end(const SeriesView& series);
/// How the run of `series` ended: "reached 24.0/24.0 GiB at 2026-01-01 09:32:00Z; pid 4242 (python train.py) ended
/// then; it had leaked 120 MiB/min since 2026-01-01 08:10:00Z; the first alert would have come 1h 01m before". Empty:
/// it has not.
std::string end_story(const SeriesView& series, const View& view);
/// How an alert ended: "withdrawn, the growth did not continue", "memory ran out at 24.0 GiB, and pid 4242 ended".
std::string end_of_alert_words(const Alert& alert);
/// What a person should do now; empty when there is nothing to do.
std::string next_step(const SeriesView& series);

enum class Tone { plain, good, notice, bad, faint };
/// Red for a leak, yellow for growth, green for the rest.
Tone tone_of(const SeriesView& series);
/// `text` in the tone's colour, or as it is when the style has no colours.
std::string toned(std::string_view text, Tone tone, const ReportStyle& style);

}  // namespace vramtrack
