// Families of four days and more: what is high by day on the first day is high by day on the next. Their table counts
// alerts by the day on which they were raised.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kDay_s = 86400;

Stage stage_of(Draw& draw) {
  return roomy_stage(draw, draw.uniform(4, draw.by_split(6.0, 9.0)) * kDay_s, false, 0.25);
}

void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

void day_and_night(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw);
  stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}\nsharpness = {:.1f}",
                                     stage.free_bytes * draw.uniform(0.2, 0.8), draw.uniform(0, kDay_s),
                                     draw.uniform(1, draw.by_split(2.0, 3.0))));
  finish(draw, trace, stage);
}

/// The same, with a load that is lower at the weekend, and bursts of requests.
void weekdays(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw);
  const double high = stage.free_bytes * draw.uniform(0.2, 0.6);
  stage.shape("diurnal",
              fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}\nsharpness = 1.5", high, draw.uniform(0, kDay_s)));
  stage.shape("diurnal", fmt::format("low_bytes = 0.6\nhigh_bytes = 1.15\nday_s = {:.0f}\npeak_s = {:.0f}\n"
                                     "apply = \"multiply\"",
                                     7 * kDay_s, draw.uniform(0, 7) * kDay_s));
  stage.shape("serving", fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.3f}\nservice_s = {:.1f}\n"
                                     "max_requests = 8",
                                     0.01 * stage.free_bytes, draw.log_uniform(0.05, 1), draw.uniform(2, 20)));
  finish(draw, trace, stage);
}

/// High in the morning and in the evening.
void two_peaks(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw);
  const double first_s = draw.uniform(0, kDay_s);
  for (const double peak_s : {first_s, first_s + draw.uniform(8, 11) * 3600})
    stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}\nsharpness = 4",
                                       stage.free_bytes * draw.uniform(0.2, 0.42), peak_s));
  finish(draw, trace, stage);
}

/// A job of some hours, every night at the same time, that fills its caches as it goes.
void nightly_job(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw);
  const double starts_s = draw.uniform(0, 20) * 3600;
  const double lasts_s = draw.uniform(1.5, 5) * 3600;
  const double bytes = stage.free_bytes * draw.uniform(0.2, 0.8);
  for (double day = 0; day * kDay_s < stage.duration_s; ++day) {
    const double from_s = day * kDay_s + starts_s + draw.uniform(-300, 300);
    stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"log\"\nonset_s = {:.0f}\nrelease_s = "
                                       "{:.0f}",
                                       bytes * draw.uniform(0.9, 1.05), 0.7 * lasts_s, from_s,
                                       from_s + lasts_s * draw.uniform(0.95, 1.05)));
  }
  finish(draw, trace, stage);
}

/// A leak that takes days, under a daily load.
void leak_over_days(Draw& draw, Trace& trace) {
  const double life_s = draw.uniform(3, draw.by_split(5.0, 7.0)) * kDay_s;
  const double wait_s = draw.chance(0.5) ? 0 : draw.uniform(0.5, 2) * kDay_s;
  Stage stage = roomy_stage(draw, wait_s + 1.3 * life_s, true, 0.25);
  const double day = stage.free_bytes * draw.uniform(0.1, 0.4);
  const double onset_s = std::max(wait_s, stage.load_s);
  const double rate = (stage.free_bytes - day) / life_s;
  stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}\nsharpness = {:.1f}", day,
                                     draw.uniform(0, kDay_s), draw.uniform(1, 2)));
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset_s));
  trace.label = {true, Pattern::gradual_leak, Pattern::cyclic, onset_s, rate, kVictim, life_s};
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> day_families() {
  static constexpr std::array kFamilies{
      Family{"leak_over_days", "a leak of days under day and night", true, false, leak_over_days, Group::days},
      Family{"day_and_night", "daily load", false, false, day_and_night, Group::days},
      Family{"weekdays", "daily load, less at the weekend", false, false, weekdays, Group::days},
      Family{"two_peaks", "mornings and evenings", false, false, two_peaks, Group::days},
      Family{"nightly_job", "a job of hours every night", false, false, nightly_job, Group::days},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
