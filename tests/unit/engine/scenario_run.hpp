// Plays a scenario through the engine, like a live watch of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "engine/engine.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {

struct ScenarioRun {
  sim::Scenario scenario;
  Catalog catalog;
  std::unique_ptr<Engine> engine;
  std::vector<AlertChange> changes;
  std::shared_ptr<const View> view;         ///< after the last sample
  std::shared_ptr<const View> first_raise;  ///< at the device's first raise, as shown to the user

  [[nodiscard]] double seconds(Timestamp time) const {
    return seconds_between(scenario.start.value_or(Timestamp{}), time);
  }
};

inline std::unique_ptr<ScenarioRun> play(sim::Scenario scenario, const Config& config = {}) {
  auto run = std::make_unique<ScenarioRun>();
  run->scenario = std::move(scenario);
  run->engine = std::make_unique<Engine>(config, run->catalog);
  run->engine->on_alert([r = run.get()](const AlertChange& change) {
    r->changes.push_back(change);
    if (change.news == AlertNews::raised && !r->first_raise && r->catalog.key(change.alert.series).pid == 0)
      r->first_raise = r->engine->view();
  });
  const auto source = sim::make_simulation(run->scenario, run->catalog);
  for (;;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    run->engine->ingest(batch);
    if (!progress || *progress == Progress::end) break;
  }
  run->engine->finish();
  run->view = run->engine->view();
  return run;
}

}  // namespace vramtrack
