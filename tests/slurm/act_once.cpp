// Carries out one action of src/act/actions.def for a process that runs, as the agent would: plan, perform, print.
//
//   act_once ACTION PID USER JOB NODE [NAME=VALUE...]      prints what was planned and done, then "undo: TEXT"
//   act_once undo:ACTION PID USER JOB NODE UNDO            takes it back
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "act/action.hpp"
#include "act/policy.hpp"
#include "act/proof.hpp"
#include "act/run_program.hpp"
#include "host/process.hpp"

using namespace vramtrack;
using namespace vramtrack::act;

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 5) return 2;
  const bool undoes = words[0].starts_with("undo:");
  const ActionInfo* action = find_action(words[0].substr(undoes ? 5 : 0));
  if (action == nullptr) return 2;
  Subject subject;
  subject.process.pid = static_cast<std::uint32_t>(std::stoul(words[1]));
  std::string path;
  if (const auto alive = process_alive("/proc", subject.process.pid, path))
    subject.process.start_ticks = alive->start_ticks;
  subject.user = words[2];
  subject.job = words[3];
  subject.device_index = 3;
  Tools tools;
  tools.node = words[4];
  if (const char* folder = std::getenv("ACT_ONCE_SERVICE_ACCOUNT")) tools.kubernetes.folder = folder;
  if (const char* pod = std::getenv("ACT_ONCE_POD")) subject.pod = pod;
  if (const char* container = std::getenv("ACT_ONCE_CONTAINER")) subject.container = container;
  tools.run = [](const std::vector<std::string>& program, double timeout_s) {
    const std::atomic<bool> stop{false};
    return run_for_output(program, timeout_s, stop);
  };
  StepArguments arguments;
  for (std::size_t i = 5; !undoes && i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const std::string value = words[i].substr(name.size() + 1);
    if (value == "true")
      arguments.set(name, true);
    else if (name == "timeout" || name == "wait")
      arguments.set(name, std::stod(value));
    else if (name == "users" || name == "partitions")
      arguments.set(name, std::vector<std::string>{value});
    else if (const auto signal = parse_signal(value); name == "signal" && signal)
      arguments.set(name, static_cast<double>(*signal));
    else
      arguments.set(name, value);
  }
  ActRequest request{subject, arguments, tools, "test", "act-1", Timestamp{}};
  const auto report = [](const Result<std::string>& done) {
    fmt::print("{}\n", done ? *done : "error: " + done.error().message);
    return done ? 0 : 1;
  };
  if (undoes) return report(action->undo(request, words.at(5)));
  const auto plan = plan_of(*action, request);
  if (!plan) {
    fmt::print("error: {}\n", plan.error().message);
    return 1;
  }
  fmt::print("{}\n", plan->what);
  auto done = action->perform(request, *plan);
  while (!done && request.again_in_s) {  // as the runner does, which does other things meanwhile
    const double wait_s = *std::exchange(request.again_in_s, std::nullopt);
    std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
    request.tried_for_s += wait_s;
    done = action->perform(request, *plan);
  }
  const int status = report(done);
  fmt::print("undo: {}\n", plan->undo);
  return status;
}
