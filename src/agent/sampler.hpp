// AgentSampler: the agent's loop body: polls, records, judges and publishes; live, or a simulated machine at a chosen
// speed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "engine/engine.hpp"
#include "live/sources.hpp"
#include "report/metrics.hpp"
#include "source/sim/scenario.hpp"
#include "store/store.hpp"

namespace vramtrack::agent {

/// What is heard of a sample besides the View.
struct AgentHooks {
  std::function<void(const std::string&)> warn;
  std::function<void(const View&, const SeriesView&, const Alert&, AlertNews)> alert;
  std::function<void(const Event&)> event;
};

/// Used from one thread.
class AgentSampler {
 public:
  /// `sources` live ones, or `scenario` instead of them. `store`: opened by this, unless recording is off.
  AgentSampler(const Config& config, std::unique_ptr<Catalog> catalog, std::vector<LiveSource> sources,
               std::optional<sim::Scenario> scenario, AgentHooks hooks);
  ~AgentSampler();
  AgentSampler(const AgentSampler&) = delete;
  AgentSampler& operator=(const AgentSampler&) = delete;

  /// Opens the store at `store.path`; false and a warning when it cannot be.
  bool record_into(const StoreConfig& store);
  /// One sample of everything. `late`: it began after its time.
  void tick(bool late);
  void finish();

  [[nodiscard]] std::shared_ptr<const View> view() const { return engine_->view(); }
  /// What has been spent so far; the server's part is left out.
  [[nodiscard]] OwnCost cost();
  /// Seconds of the sampled world between two ticks; of a simulation its own.
  [[nodiscard]] double period_s() const;
  [[nodiscard]] const Store* store() const { return store_.get(); }

 private:
  void begin_anew();
  bool poll_simulation();
  void poll_sources();
  void take();
  void tell_store(const Status& status);

  const Config config_;
  std::unique_ptr<Catalog> catalog_;
  std::vector<LiveSource> sources_;
  std::vector<SourceCost> source_costs_;
  std::optional<sim::Scenario> scenario_;
  std::unique_ptr<Source> simulation_;
  AgentHooks hooks_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Store> store_;
  StampClock clock_;
  Timestamp last_{};
  Batch batch_;
  std::vector<AlertChange> changes_;
  OwnCost cost_;
  std::chrono::steady_clock::time_point next_size_{};
};

}  // namespace vramtrack::agent
