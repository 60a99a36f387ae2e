#include "beside.hpp"

#include "again.hpp"
#include "past.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::size_t kMostRuns = 10;

/// What is known after `runs` earlier ones that went `how`.
Past past_of(const Trace& trace, Earlier how, std::size_t runs, const Config& config) {
  Past past;
  for (std::size_t i = 0; i < runs; ++i) play_earlier_run(trace, how, i, runs - i, config, past);
  return past;
}

Beside judge(const Trace& trace, const Config& config) {
  Beside beside;
  beside.trace = trace;
  const Trace run = this_run(trace);
  const auto note = [&](Known known, const Trace& as, const Past& past) {
    const Played played = play(as, config, past);
    const auto i = static_cast<std::size_t>(known);
    auto& scored = beside.scored[i].emplace();
    for (std::size_t m = 0; m < kMarks.size(); ++m) {
      scored[m] = score(as, played, kMarks[m]);
      scored[m].trace = nullptr;  // it outlives the trace that was played
    }
  };
  note(Known::nothing, run, {});
  Past past;
  for (std::size_t i = 0; i < kMostRuns; ++i) {
    play_earlier_run(trace, Earlier::healthy, i, kMostRuns - i, config, past);
    if (i == 0) note(Known::one, run, past);
    if (i == 2) note(Known::three, run, past);
    if (i == 2) note(Known::changed, with_new_command(run), past);
  }
  note(Known::ten, run, past);
  if (trace.label.leak) note(Known::three_leaked, run, past_of(trace, Earlier::leaked, 3, config));
  note(Known::siblings, with_siblings(run, kSiblings, !trace.label.leak), {});
  if (trace.label.leak) note(Known::siblings_leak, with_siblings(run, kSiblings, true), {});
  return beside;
}

}  // namespace

std::string_view name_of(Known known) {
  constexpr std::array<std::string_view, kKnown> kNames{"first run ever",
                                                        "seen before, 1 run",
                                                        "seen before, 3 runs",
                                                        "seen before, 10 runs",
                                                        "3 runs, command changed since",
                                                        "3 runs that leaked, too",
                                                        "with 3 siblings",
                                                        "with 3 siblings that leak, too"};
  return kNames[static_cast<std::size_t>(known)];
}

std::vector<Beside> run_beside(const std::vector<Trace>& traces, const Config& config, unsigned jobs) {
  std::vector<Beside> all(traces.size());
  in_parallel(traces.size(), jobs, [&](std::size_t i) { all[i] = judge(traces[i], config); });
  for (Beside& beside : all)
    for (auto& scored : beside.scored)
      if (scored)
        for (Scored& s : *scored) s.trace = &beside.trace;
  return all;
}

std::vector<Ranks> run_ranks(const std::vector<Trace>& traces, const Config& config, unsigned jobs) {
  std::vector<Trace> alone = traces;
  for (Trace& trace : alone) trace.alone = true;
  std::vector<Run> with = run_all(traces, config, {}, jobs);
  std::vector<Run> without = run_all(alone, config, {}, jobs);
  std::vector<Ranks> all(traces.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].together = std::move(with[i]);
    all[i].alone = std::move(without[i]);
    for (Run* run : {&all[i].together, &all[i].alone})
      run->ours.trace = run->told.trace = run->suspected.trace = &run->trace;
  }
  return all;
}

}  // namespace vramtrack::accuracy
