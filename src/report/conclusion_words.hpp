// ConclusionWords: the sentences about a series and about an alert, written once. Every surface shows these words and
// concludes nothing itself: text, top, page, reports, metrics, notifications, API and Python agree.
//
//   View, Alert -> conclusion_words(), alert_words() -> every surface
//
// Each surface formats figures itself; what a figure means is decided here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/view.hpp"
#include "report/conclusion.hpp"
#include "report/tone.hpp"

namespace vramtrack {

/// One line below the headline. Lines with the same label are grouped.
struct Fact {
  std::string label;
  std::string text;
};

/// Texts are printable; an empty text means that there is nothing to report.
struct ConclusionWords {
  std::string verdict;             ///< "LEAK (gradual leak)", "steady", "ran out of memory; now steady"
  std::string headline;            ///< the verdict and any other condition: "steady, process ended"
  Tone tone = Tone::faint;         ///< the tone of both
  Tone growth_tone = Tone::faint;  ///< of its rate: neutral for a run that ended badly
  std::string word;              ///< for a narrow column: "CRITICAL", "WARNING", "LEAK", "steady", "ran out", "stalled"
  Tone word_tone = Tone::faint;  ///< of `word`
  std::string severity;          ///< of a leak: "CRITICAL", "WARNING", "LEAK"
  std::string pattern;           ///< "gradual leak"
  std::string growth;            ///< "+12.4 MiB/min (12.0 to 12.8)"; empty: too few samples
  std::string probability;       ///< the probability of a leak, with `growth`: "97 %"
  std::string forecast;          ///< "out of memory in 0h 24m (19m–30m)", "full in 2h 10m if the growth continues"
  std::string end;      ///< how its run ended: "reached 24.0/24.0 GiB at ...; pid 4242 (python) ended then; ..."
  std::string suspect;  ///< "pid 4242 python train.py: 96 % of the growth"
  std::string by;       ///< short form of a leak's suspect: "by pid 4242", "no visible process explains it"
  std::string stall;    ///< "stalled for 43m (confidence 80 %)"
  Tone stall_tone = Tone::plain;
  std::string next;           ///< the next step
  std::string unattributed;   ///< for a device: "0.4 GiB driver", "2.1 GiB held by no visible process"
  int concern = 0;            ///< how urgent it is: sort by it to show the worst first
  std::vector<Fact> facts;    ///< lost, because, now, progress, end, since, suspect, framework
  std::vector<Fact> advice;   ///< the usual causes of such a leak, and what to try
  std::vector<Fact> dissent;  ///< what the other detectors conclude: "dissent", or "agrees"
};

struct AlertWords {
  std::string what;         ///< "gradual leak", "stalled process", "not released"
  std::string severity;     ///< "CRITICAL", "WARNING", "LEAK"; "STALLED", "NOT RELEASED"
  Tone tone = Tone::plain;  ///< of an active alert; `faint` once it has ended
  std::string figures;      ///< "probability of a leak 97 %, predicted then: out of memory in 0h 47m (38m–1h 05m)"
  std::string state;  ///< for a narrow column: "active", "released", "out of memory", "process ended", "withdrawn"
  std::string ended;  ///< "still active"; "memory ran out at 24.0 GiB, and pid 4242 ended"; "withdrawn, it fell again"
};

/// Whether a client may see the command line of this process. Empty: it may see all.
using MaySeeCommand = std::function<bool(const ProcessInfo&)>;

/// The command of the process with that pid and start on `host`, as a client may see it: `command`, its short name if
/// the command is hidden, or nothing if the view no longer knows the process. O(series).
std::string visible_command(const View& view, const std::string& host, std::uint32_t pid, std::uint64_t start_ticks,
                            const std::string& command, const MaySeeCommand& may_see);

/// The origin of samples: a watch that continues, or finished files.
enum class Origin : std::uint8_t { watch, files };

struct Audience {
  MaySeeCommand may_see{};         ///< a hidden command is replaced by the short name
  std::optional<Origin> origin{};  ///< nullopt: files if the view names any
};

/// `series` is part of `view`. Pure; some microseconds, and O(series) for one that has ended or has a suspect.
ConclusionWords conclusion_words(const View& view, const SeriesView& series, const Audience& audience = {});
/// `scale`: the scale of the recording. Pure.
AlertWords alert_words(const Alert& alert, const Scale& scale);

/// ConclusionWords::tone without the words.
Tone tone_of(const SeriesView& series, Timestamp now);
/// ConclusionWords::concern without the words, for sorting.
int concern(const SeriesView& series, Timestamp now);
/// Whether the run of `series` ended in the last day before `now`, out of memory or while it leaked: users who look in
/// the morning need to see that first.
bool ended_badly(const SeriesView& series, Timestamp now);
/// "CRITICAL", "WARNING", "LEAK".
std::string_view severity_words(Severity severity);
/// How the last run of `series` ended, after the device's name: "ran out of memory", "leaked until its process ended".
std::string_view end_words(const SeriesView& series);

}  // namespace vramtrack
