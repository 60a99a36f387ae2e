#include "cli/shared_arguments.hpp"

#include <limits>

#include "core/units.hpp"
#include "detect/detector.hpp"
#include "source/sim/sim.hpp"
#include "source/source.hpp"

namespace vramtrack::cli {

const char* const kSpeedHelp =
    "Playback speed: 60 plays one minute per second, 1 real time (default: as fast as possible)";

void add_config(Arguments& arguments, ConfigRequest& into) {
  const std::size_t first = arguments.all().size();
  arguments.option("--config", "FILE", "Read this configuration file", text(into.file)).file();
  arguments.repeated("--set", "KEY=VALUE", "Override a setting: section.key=value, or key=value of [detection]",
                     text(into.assignments));
  arguments.put_in_group(Group::configuration, first);
}

void add_detector(Arguments& arguments, ConfigRequest& into) {
  const std::vector<std::string> names = names_of(detectors());
  arguments
      .option("--detector", "NAME", "Let this detector decide: " + joined(names),
              [&into](const std::string& word) {
                into.overrides.push_back({"detection.detector", word, "--detector"});
                return Status();
              })
      .completes(names);
}

void add_lead_time(Arguments& arguments, ConfigRequest& into) {
  arguments.option("--lead-time", "DURATION",
                   "Raise a leak's alert when memory may run out within this time, or in the last third of the growth "
                   "if that is shorter; immediately if the capacity is unknown, or if a framework's log shows that "
                   "live memory grows (default 1h)",
                   duration([&into](double seconds) {
                     into.overrides.push_back({"alert.lead-time-minutes", seconds / kSecondsPerMinute, "--lead-time"});
                   }));
}

void add_interval(Arguments& arguments, ConfigRequest& into) {
  arguments.option("--interval", "DURATION", "Time between two samples (default 1s)", duration([&into](double seconds) {
                     into.overrides.push_back({"watch.interval-seconds", seconds, "--interval"});
                   }));
  arguments.option("-n", "SECONDS", "The same in seconds, as in watch(1)", [&into](const std::string& word) -> Status {
    double seconds = 0;
    constexpr double kLeast_s = 1e-3;
    if (const Status read = number(seconds, kLeast_s, kSecondsPerDay)(word); !read) return read;
    into.overrides.push_back({"watch.interval-seconds", seconds, "-n"});
    return {};
  });
}

void add_every(Arguments& arguments, ConfigRequest& into, std::string help) {
  arguments.option("--every", "DURATION", std::move(help), duration([&into](double seconds) {
                     into.overrides.push_back({"watch.status-every-seconds", seconds, "--every"});
                   }));
}

void add_no_record(Arguments& arguments, ConfigRequest& into, std::string help) {
  arguments.flag("--no-record", std::move(help), [&into] {
    into.overrides.push_back({"watch.record", false, "--no-record"});
  });
}

void add_telemetry(Arguments& arguments, ConfigRequest& into) {
  arguments.flag("--telemetry", "Trace what running programs allocate, so that alerts name the line (as root)",
                 [&into] {
                   into.overrides.push_back({"telemetry.enabled", true, "--telemetry"});
                 });
}

void add_no_experience(Arguments& arguments, ConfigRequest& into) {
  arguments.flag("--no-experience", "Ignore what was learned from earlier runs and watches", [&into] {
    into.overrides.push_back({"watch.experience", false, "--no-experience"});
  });
}

void add_sources(Arguments& arguments, ConfigRequest& into) {
  const std::vector<std::string> names = names_of(live_sources());
  arguments
      .list("--source", "NAMES", "Read these sources only: " + joined(names, ","),
            [&into](const std::string& word) {
              auto& overrides = into.overrides;
              if (overrides.empty() || overrides.back().setting != "sources.enabled")
                overrides.push_back({"sources.enabled", std::vector<std::string>(), "--source"});
              std::get<std::vector<std::string>>(overrides.back().value).push_back(word);
              return Status();
            })
      .completes(names);
}

void add_or_simulate(Arguments& arguments, bool& into) {
  arguments.flag("--or-simulate", "If there is no GPU, simulate a leaking job", into);
}

void add_json(Arguments& arguments, bool& into) {
  arguments.json("Print JSON lines (docs/formats/analysis.md)", into);
}

void add_scenario(Arguments& arguments, std::string& into, std::string help) {
  arguments.option("--scenario", "NAME", std::move(help), text(into)).file().completes(scenario_names());
}

void add_seed(Arguments& arguments, std::optional<std::uint64_t>& into, std::string help) {
  arguments.option(
      "--seed", "NUMBER", std::move(help),
      whole_number([&into](std::uint64_t seed) { into = seed; }, 0, std::numeric_limits<std::uint64_t>::max()));
}

void add_speed(Arguments& arguments, double& into, std::string help) {
  arguments.option("--speed", "FACTOR", std::move(help), [&into](const std::string& word) -> Status {
    double speed = 0;
    const Status read = number(speed, 0, std::numeric_limits<double>::max())(word);
    if (!read || speed <= 0)
      return fail("'" + word + "' is not valid: give a number greater than zero, for example 60");
    into = speed;
    return {};
  });
}

std::vector<std::string> scenario_names() {
  return names_of(sim::builtin_scenarios());
}

}  // namespace vramtrack::cli
