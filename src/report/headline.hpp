// The whole machine in one sentence, concluded once: it begins the page, the head of top and the title of a
// report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/view.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {

/// The subject of a machine's sentence, in rising order of relevance.
enum class Matter : std::uint8_t { no_device, unknown, healthy, growing, suspected, lost, ended, leaking };

struct Machine {
  Matter matter = Matter::no_device;
  Tone tone = Tone::faint;
  /// "GPU 0 leaks", "2 of 8 GPUs leaked and ran out of memory", "no leak": surfaces may add details, such as the time.
  std::string words;
  std::size_t devices = 0;
  /// The series that it is about, the worst first; for a healthy machine, those with too few samples.
  std::vector<const SeriesView*> subjects;
};

struct SeenSeries {
  const SeriesView* view = nullptr;
  bool is_past = false;  ///< for a report: its watch has ended, so nothing leaks or grows any more
};

/// `now`: an end counts as news for a day. Pure; O(series).
Machine machine_of(const std::vector<SeenSeries>& series, Timestamp now);
Machine machine_of(const View& view);

/// "GPU 0", "2 of 8 GPUs": the subject of a sentence about the devices of `whose`.
std::string which_devices(const std::vector<const SeriesView*>& subjects, std::size_t devices);

struct Headline {
  Tone tone = Tone::faint;
  std::string text;
};

/// "GPU 0 leaks: pid 4242 python train.py; out of memory in 0h 24m (19m–30m)." Pure.
Headline headline(const View& view, const MaySeeCommand& may_see = {});

}  // namespace vramtrack
