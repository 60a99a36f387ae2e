#include "bench.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace vramtrack::accuracy {

void in_parallel(std::size_t count, unsigned jobs, const std::function<void(std::size_t)>& each) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) each(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

std::vector<Run> run_all(const std::vector<Trace>& traces, const Config& config, std::span<const RivalInfo> rivals,
                         unsigned jobs) {
  std::vector<Run> runs(traces.size());
  in_parallel(traces.size(), jobs, [&](std::size_t i) {
    Run& run = runs[i];
    run.trace = traces[i];
    run.played = play(run.trace, config);
    run.samples = run.played.points.size();
    run.ours = score(run.trace, run.played, run.played.ours);
    run.told = score(run.trace, run.played, Mark::told);
    run.suspected = score(run.trace, run.played, Mark::suspected);
    for (const RivalInfo& rival : rivals) {
      const Outcome outcome = play_rival(rival, run.trace, run.played.points);
      run.rivals.push_back(score(run.trace, run.played, outcome));
      run.rival_seconds.push_back(outcome.seconds_spent);
    }
    run.played.points = {};
    run.trace.points = {};
  });
  return runs;
}

}  // namespace vramtrack::accuracy
