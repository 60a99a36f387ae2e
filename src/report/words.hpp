// The names of things: patterns, metrics, states, devices, processes. For conclusions about them:
// report/conclusion_words.hpp.
#pragma once

#include <string>
#include <string_view>

#include "core/view.hpp"

namespace vramtrack {

/// "gradual leak", "sudden spike", ...
std::string_view pattern_words(Pattern pattern);
/// "stalled for 43m (confidence 80 %)", "no progress for 43m, unclear why", "idle for 3h 10m (Jupyter kernel)".
std::string stall_words(const Stall& stall, const Scale& scale);
/// What to do if the need of a process does not fit.
inline constexpr std::string_view kHeadroomNextStep =
    "move one of the programs to another GPU, or reduce its memory use, before it reaches its peak again";

/// What to do about memory that was not released.
inline constexpr std::string_view kStillHoldsNextStep =
    "call torch.cuda.empty_cache() in the program, unload its models (ComfyUI: POST /free; A1111: unload the "
    "checkpoint), or restart the notebook's kernel or the program";
std::string unreleased_next_step();
/// What to do about a stalled process; empty for one that is idle.
std::string stall_next_step(const Stall& stall, std::uint32_t pid);
/// "memory in use", "held by the framework's allocator", ...
std::string_view metric_words(Metric metric);
/// "ran out at 03:12 and still holds 21.0 GiB, 20.0 GiB of them unused by its allocator". REQUIRES: still_holds.
std::string still_holds_words(const View& view, const SeriesView& series);
/// "steady", "warming up", "too short to tell", ...
std::string state_words(const Finding& finding);
/// "GPU 0", "GPU GPU-8f…" if it has no index, "node2 GPU 0" if there are several hosts or runs; MIG instances are named
/// as such.
std::string short_device_words(const SeriesView& series);
/// The same with its model: "GPU 0 NVIDIA A10".
std::string device_words(const SeriesView& series);
/// "pid 4242 python train.py (alice)".
std::string process_words(const SeriesView& series);
/// The subject of an alert: "GPU 0 NVIDIA A10", "GPU 0 NVIDIA A10, pid 4242 python train.py (alice)", "GPU 0 NVIDIA
/// A10, memory that no visible process holds".
std::string series_words(const SeriesView& series);

}  // namespace vramtrack
