#include "live/containment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "host/host_name.hpp"
#include "host/process.hpp"
#include "live/clock.hpp"

namespace vramtrack {

std::string own_user_name() {
  const auto self = read_process("/proc", static_cast<std::uint32_t>(::getpid()));
  return self ? self->user : std::string();
}

std::string acts_off_path(const ActConfig& config, const std::string& store_path) {
  if (!config.off_file.empty()) return config.off_file;
  return store_path.empty() ? std::string() : store_path + ".acts-off";
}

std::unique_ptr<act::Runner> open_containment(const Config& config, const std::string& store_path, bool simulated,
                                              act::Notifier* notifier, act::Tools tools, std::function<Timestamp()> now,
                                              const Warn& warn) {
  auto policies = act::parse_policies(config.policies.toml, config.policies.name);
  if (!policies) {
    warn("no policies: " + policies.error().message);
    return nullptr;
  }
  const std::string audit = store_path.empty() || simulated ? std::string() : act::audit_path(store_path);
  if (policies->rules.empty() && (audit.empty() || ::access(audit.c_str(), F_OK) != 0)) return nullptr;
  act::RunnerOptions options;
  options.policies = std::move(*policies);
  options.config = config.act;
  options.audit_path = audit;
  options.off_file = acts_off_path(config.act, store_path);
  options.boot_id = machine_clock().boot_id;
  options.own_user = own_user_name();
  options.simulated = simulated;
  options.now = std::move(now);
  options.tools = std::move(tools);
  options.tools.proc_root = config.sources.proc_root;
  options.tools.cgroup_root = config.sources.sys_root + "/fs/cgroup";
  if (options.tools.node.empty()) options.tools.node = host_name();
  if (notifier != nullptr) options.tools.notify = [notifier](act::Note note) { notifier->notify(std::move(note)); };
  auto runner = act::Runner::open(std::move(options));
  if (runner) return std::move(*runner);
  warn(fmt::format("policies do nothing: {}; watching continues without them", runner.error().message));
  return nullptr;
}

Status use_policies(act::Runner& runner, const Config& config) {
  auto policies = act::parse_policies(config.policies.toml, config.policies.name);
  if (!policies) return fail(policies.error());
  runner.use(std::move(*policies), config.act);
  return {};
}

Listener containing(act::Runner& runner, const Pipeline& pipeline, Warn warn) {
  Listener listener;
  listener.tick = [&runner, &pipeline, warn = std::move(warn)](const Batch&) {
    runner.see(*pipeline.view());
    for (const std::string& text : runner.take_messages()) warn(text);
  };
  return listener;
}

}  // namespace vramtrack
