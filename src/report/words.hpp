// What a verdict is called in a sentence, and what to do next. Shared by the reports for people.
#pragma once

#include <string>
#include <string_view>

#include "report/report.hpp"

namespace vramtrack {

/// "gradual leak", "sudden spike", ...
std::string_view pattern_words(Pattern pattern);
/// What an alert is about: "gradual leak", ..., "stalled process", "not released".
std::string_view alert_words(const Alert& alert);
/// "stalled for 43m (confidence 80 %)", "no progress for 43m, unclear why", "idle for 3h 10m (Jupyter kernel)".
std::string stall_words(const Stall& stall);
/// What to do about memory that was not released.
inline constexpr std::string_view kUnreleasedNextStep =
    "'sudo vramtrack holders' names the processes that have the GPU open; where there is none, a reset of the GPU "
    "(nvidia-smi --gpu-reset) gives the memory back";
/// What to do about a stalled process; empty for one that is idle.
std::string stall_next_step(const Stall& stall, std::uint32_t pid);
/// "memory in use", "held by the framework's allocator", ...
std::string_view metric_words(Metric metric);
/// "steady", "warming up", "too short to tell", ...
std::string state_words(const Finding& finding);
/// "active", "released", "process ended", "withdrawn", "resumed".
std::string_view alert_end_words(AlertEnd end);
/// "LEAK (gradual leak)", "steady", "growing, not yet decidable", "spiked, then stabilised", ...
std::string verdict_words(const SeriesView& series);
/// "GPU 0", "GPU GPU-8f…" where it has no index, "node2 GPU 0" where there are several hosts or runs; MIG instances say
/// so.
std::string short_device_words(const SeriesView& series);
/// The same with its model: "GPU 0 NVIDIA A10".
std::string device_words(const SeriesView& series);
/// "pid 4242 python train.py (alice)".
std::string process_words(const SeriesView& series);
/// Whose alert it is: "GPU 0 NVIDIA A10", "GPU 0 NVIDIA A10, pid 4242 python train.py (alice)", "GPU 0 NVIDIA A10,
/// memory that no visible process holds".
std::string series_words(const SeriesView& series);
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
/// Where samples come from: a watch that goes on, or files, which nobody adds to here.
enum class Origin { watch, files };
/// What a person should do now; empty when there is nothing to do.
std::string next_step(const SeriesView& series, Origin origin = Origin::watch);

enum class Tone { plain, good, notice, bad, faint };
/// Red for a leak, yellow for growth, green for the rest.
Tone tone_of(const SeriesView& series);
/// `text` in the tone's colour, or as it is when the style has no colours.
std::string toned(std::string_view text, Tone tone, const ReportStyle& style);

}  // namespace vramtrack
