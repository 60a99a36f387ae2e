#include "act/proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "act/kubernetes.hpp"
#include "act/policy.hpp"
#include "core/printable.hpp"
#include "host/privilege.hpp"

namespace vramtrack::act {
Result<HeldProcess> hold(const ActRequest& request) {
  const ProcessKey& process = request.subject.process;
  if (process.pid == 0) return fail("there is no process to act on: no visible one explains the evidence");
  if (!process.host.empty()) return fail(fmt::format("the process is on {}, not on this machine", process.host));
  return HeldProcess::open(request.tools.proc_root, process.pid, process.start_ticks);
}

Result<ProcessInfo> prove(const ActRequest& request) {
  if (!request.subject.node.empty()) {
    if (request.tools.prove) return request.tools.prove(request.subject);
    return fail(fmt::format("the process is on {}, not on this machine", printable(request.subject.node)));
  }
  const auto held = hold(request);
  if (!held) return fail(held.error());
  return held->info();
}

Result<std::string> send_signal(const ActRequest& request, int signal) {
  const auto held = hold(request);
  if (!held) return fail(held.error());
  if (const Status sent = held->send(signal); !sent) return fail(sent.error());
  return signal_name(signal) + " was sent";
}

Result<ActPlan> plan_of(const ActionInfo& action, const ActRequest& request) {
  if (action.plan != nullptr) return action.plan(request);
  if (action.traits.needs_process)
    if (const auto held = hold(request); !held) return fail(held.error());
  return ActPlan{action.words(request.subject, request.arguments), {}};
}

Result<std::vector<std::string>> filled_in(const std::vector<std::string>& words, const ActRequest& request) {
  const Subject& s = request.subject;
  KubernetesPod pod;
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return word.find("{namespace}") != std::string::npos || word.find("{pod-name}") != std::string::npos;
      })) {
    auto found = pod_of(request);
    if (!found) return fail(found.error());
    pod = std::move(*found);
  }
  const std::array<std::pair<std::string_view, std::string>, 11> known = {
      {{"{pid}", s.process.pid != 0 ? std::to_string(s.process.pid) : std::string()},
       {"{user}", s.user},
       {"{device}", s.device_id},
       {"{gpu}", s.device_index ? std::to_string(*s.device_index) : std::string()},
       {"{job}", s.job},
       {"{container}", s.container},
       {"{pod}", s.pod},
       {"{namespace}", pod.space},
       {"{pod-name}", pod.name},
       {"{node}", request.node()},
       {"{policy}", request.policy}}};
  std::vector<std::string> out;
  for (const std::string& word : words) {
    std::string filled;
    for (std::size_t i = 0; i < word.size();) {
      const auto at = std::find_if(known.begin(), known.end(),
                                   [&](const auto& k) { return word.compare(i, k.first.size(), k.first) == 0; });
      if (at == known.end()) {
        filled += word[i++];
      } else {
        filled += at->second;
        i += at->first.size();
      }
    }
    std::erase(filled, '\0');
    out.push_back(std::move(filled));
  }
  return out;
}

Result<ActPlan> program_plan(const ActRequest& request) {
  const auto argv = filled_in(request.arguments.words("program"), request);
  if (!argv) return fail(argv.error());
  return ActPlan{fmt::format("run '{}'", program_words(*argv)), {}};
}

Result<std::string> run_program_of(const ActRequest& request) {
  const auto argv = filled_in(request.arguments.words("program"), request);
  if (!argv) return fail(argv.error());
  const auto trusted = trusted_command(*argv);
  if (!trusted) return fail(trusted.error());
  const auto ran = request.tools.run(*trusted, request.arguments.number("timeout", request.tools.timeout_s));
  if (!ran) return fail(ran.error());
  return fmt::format("'{}' ended with exit status 0", program_words(*argv));
}

std::string program_words(const std::vector<std::string>& argv) {
  return printable(fmt::format("{}", fmt::join(argv, " ")));
}

}  // namespace vramtrack::act
