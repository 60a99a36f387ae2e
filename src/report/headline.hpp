// The whole machine in one sentence, concluded once: the page begins with it, as do the head of top and the title of a
// report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/view.hpp"
#include "report/told.hpp"

namespace vramtrack {

/// What a machine's sentence is about, in rising order of how much it deserves a look.
enum class Matter : std::uint8_t { no_device, unknown, healthy, growing, suspected, lost, ended, leaking };

struct Machine {
  Matter matter = Matter::no_device;
  Tone tone = Tone::faint;
  /// "GPU 0 leaks", "2 of 8 GPUs leaked and ran out of memory", "no leak": each surface may add to it, such as when.
  std::string words;
  std::size_t devices = 0;
  /// The series that it is about, the worst first; of a healthy machine, those of which too few samples are known.
  std::vector<const SeriesView*> whose;
};

struct SeenSeries {
  const SeriesView* view = nullptr;
  bool is_past = false;  ///< of a report: its watch has ended, so it neither leaks nor grows
};

/// `now`: an end is news for a day. Pure; O(series).
Machine machine_of(const std::vector<SeenSeries>& series, Timestamp now);
Machine machine_of(const View& view);

/// "GPU 0", "2 of 8 GPUs": the subject of a sentence about the devices of `whose`.
std::string which_devices(const std::vector<const SeriesView*>& whose, std::size_t devices);

struct Headline {
  Tone tone = Tone::faint;
  std::string text;
};

/// "GPU 0 leaks: pid 4242 python train.py; out of memory in 0h 24m (19m–30m)." Pure.
Headline headline(const View& view, const MaySeeCommand& may_see = {});

}  // namespace vramtrack
