#include "stage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "live/containment.hpp"

extern char** environ;

namespace bench {

using namespace vramtrack;

Stage::Stage(StageOptions options) : options_(std::move(options)) {
  const std::string board = options_.folder + "/board", scenario = options_.folder + "/scenario.txt";
  board_ = map_board(board.c_str(), options_.lives);
  if (board_ == nullptr) throw std::runtime_error("cannot map " + board);
  std::ofstream gpus(scenario);
  for (std::uint32_t i = 0; i < options_.devices; ++i) gpus << fmt::format("gpu {0} live={0} util=0 memutil=0\n", i);
  gpus.close();
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"VRAMTRACK_FAKE_NVML", scenario},
                                          {"VRAMTRACK_FAKE_GPU_STATE", options_.folder + "/gpus"},
                                          {"VRAMTRACK_FAKE_GPU_DEVICES", std::to_string(options_.devices)},
                                          {"VRAMTRACK_FAKE_GPU_MIB", std::to_string(options_.device_mib)},
                                          {"BENCH_BOARD", board},
                                          {"BENCH_LIVES", std::to_string(options_.lives)}})
    ::setenv(name.c_str(), value.c_str(), 1);
  config_.watch.interval_seconds = options_.interval_s;
  config_.stall.minutes = options_.stall_minutes;
  config_.stall.min_memory_mb = 64;
  config_.sources.enabled = {"nvml"};
  config_.sources.nvml_library = options_.nvml_library;
  config_.store.path = options_.folder + "/store.db";
  config_.act.enabled = true;
  config_.act.dry_run = false;
  config_.act.max_acts_per_hour = 1'000'000;
  config_.policies = {"bench.toml", options_.policies};
  LoopInput input;
  input.catalog = std::make_unique<Catalog>();
  std::string reasons;
  input.sources = open_live_sources(config_.sources, *input.catalog, reasons);
  if (input.sources.empty()) throw std::runtime_error("no fake NVML: " + reasons);
  const auto warn = [this](const std::string& text) { warnings_.push_back(text); };
  loop_ = std::make_unique<Loop>(config_, std::move(input), compressed(machine_clock(), options_.speed));
  Listener hears;
  hears.warning = warn;
  hears.alert = [this](const AlertTold& told) { told_.push_back({told.series.key, told.alert, told.news, now_us()}); };
  loop_->pipeline().listen(std::move(hears));
  loop_->record_into(config_.store);
  runner_ = open_containment(config_, config_.store.path, false, nullptr, {}, time_of_day, warn);
  if (!runner_) throw std::runtime_error(warnings_.empty() ? "no runner" : warnings_.back());
  loop_->pipeline().listen(containing(*runner_, loop_->pipeline(), warn));
  began_us_ = now_us();
  began_ = loop_->clock().read().wall;
}

Stage::~Stage() {
  for (const auto& [index, pid] : std::map(started_)) end(index);
}

void Stage::start(std::size_t index, const std::string& name) {
  std::string number = std::to_string(index), program = name, self = "/proc/self/exe", life = "life";
  ::setenv("BENCH_SLOT", number.c_str(), 1);
  char* const words[] = {program.data(), life.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  pid_t pid = -1;
  if (::posix_spawn(&pid, self.c_str(), &actions, nullptr, words, environ) == 0) started_[index] = pid;
  ::posix_spawn_file_actions_destroy(&actions);
}

bool Stage::has_ended(std::size_t index) {
  const auto known = started_.find(index);
  if (known == started_.end()) return true;
  const Slot& slot = board_[index];
  const bool is_gone = ::waitpid(known->second, nullptr, WNOHANG) != 0;
  if (slot.kind != Kind::orphaned) {
    if (is_gone) started_.erase(known);
    return is_gone;
  }
  // The trainer is waited for; the worker is this process's by now, which is its reaper.
  const auto worker = static_cast<pid_t>(slot.pid.load());
  if (worker == 0 || ::waitpid(worker, nullptr, WNOHANG) != worker) return false;
  started_.erase(index);
  return true;
}

void Stage::end(std::size_t index) {
  const auto known = started_.find(index);
  if (known == started_.end()) return;
  for (const pid_t pid : {known->second, static_cast<pid_t>(board_[index].pid.load())})
    if (pid > 0 && ::kill(pid, SIGKILL) == 0) (void)::waitpid(pid, nullptr, 0);
  started_.erase(index);
}

void Stage::tick() {
  (void)loop_->clock().sleep_until(loop_->next());
  loop_->tick();
}

std::vector<act::AuditEntry> Stage::acts() const {
  runner_->wait_for_orders(5);
  auto entries = act::read_audit(act::audit_path(config_.store.path));
  return entries ? std::move(*entries) : std::vector<act::AuditEntry>();
}

double quantile(std::vector<double> values, double at) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace bench
