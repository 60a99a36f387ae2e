#include "act/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 14> kSignals = {{{"HUP", SIGHUP},
                                                                        {"INT", SIGINT},
                                                                        {"QUIT", SIGQUIT},
                                                                        {"ABRT", SIGABRT},
                                                                        {"KILL", SIGKILL},
                                                                        {"USR1", SIGUSR1},
                                                                        {"USR2", SIGUSR2},
                                                                        {"ALRM", SIGALRM},
                                                                        {"TERM", SIGTERM},
                                                                        {"CONT", SIGCONT},
                                                                        {"STOP", SIGSTOP},
                                                                        {"TSTP", SIGTSTP},
                                                                        {"URG", SIGURG},
                                                                        {"WINCH", SIGWINCH}}};

/// A step with a usual duration is due when memory may run out within that duration times this factor, plus the margin.
constexpr double kTakesFactor = 1.25;
constexpr double kTakesMargin_s = 10;

bool found_in(const std::vector<Expression>& expressions, const std::string& text) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [&text](const Expression& e) { return e.regex.found_in(text); });
}

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool names_user(const std::vector<std::string>& users, const std::string& user) {
  return contains(users, user) || (contains(users, "*") && !user.empty() && user != "root" && user != "0");
}

/// Whether one of several texts matches one of several expressions.
bool any_found(const std::vector<Expression>& expressions, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(), [&expressions](std::string_view text) {
    return !text.empty() && found_in(expressions, std::string(text));
  });
}

std::string label_of(const Subject& subject, const std::string& name) {
  const auto at = subject.labels.find(name);
  return at == subject.labels.end() ? std::string() : at->second;
}

std::string texts_of(const std::vector<Expression>& expressions) {
  std::string out;
  for (const Expression& e : expressions) out += (out.empty() ? "" : " or ") + ("/" + e.text + "/");
  return out;
}

std::string why_trouble(const Conditions& when, const Subject& s) {
  if (s.trouble != when.trouble)
    return fmt::format("its kind is '{}', not '{}'", to_string(s.trouble), to_string(when.trouble));
  if (!when.patterns.empty() && std::find(when.patterns.begin(), when.patterns.end(), s.pattern) == when.patterns.end())
    return fmt::format("its pattern is {}", to_string(s.pattern));
  if (s.severity < when.severity)
    return fmt::format("its severity is {}, below {}", to_string(s.severity), to_string(when.severity));
  if (s.confidence < when.confidence)
    return fmt::format("its confidence is {}, below {}", format_percent(s.confidence), format_percent(when.confidence));
  if (when.ends_within_s && (!s.ends_in_s || s.ends_in_s->low > *when.ends_within_s))
    return s.ends_in_s ? fmt::format("memory lasts at least {}, more than {}", format_span(s.ends_in_s->low),
                                     format_span(*when.ends_within_s))
                       : "it is not known when memory will run out";
  if (when.growth_bytes_per_s && s.growth_bytes_per_s.mid < *when.growth_bytes_per_s)
    return fmt::format("it grows by {}, less than {}", format_scaled_rate(s.growth_bytes_per_s.mid),
                       format_scaled_rate(*when.growth_bytes_per_s));
  if (when.held_for_s && s.held_s < *when.held_for_s)
    return fmt::format("its alert has been active for {}, less than {}", format_span(s.held_s),
                       format_span(*when.held_for_s));
  return {};
}

std::string why_identity(const Conditions& when, const Subject& s) {
  if (!when.users.empty() && !names_user(when.users, s.user)) return fmt::format("its user is '{}'", printable(s.user));
  if (!when.commands.empty() && !found_in(when.commands, s.command))
    return fmt::format("its command does not match {}", texts_of(when.commands));
  if (!when.containers.empty() && !any_found(when.containers, {s.container, s.pod, label_of(s, "image")}))
    return fmt::format("its container does not match {}", texts_of(when.containers));
  if (!when.jobs.empty() && !any_found(when.jobs, {s.job, s.job_name}))
    return fmt::format("its job does not match {}", texts_of(when.jobs));
  if (!when.devices.empty() && !contains(when.devices, s.device_id) && !contains(when.devices, s.device_name) &&
      !(s.device_index && contains(when.devices, std::to_string(*s.device_index))))
    return "it is on another device";
  for (const auto& [name, expression] : when.labels)
    if (!expression.regex.found_in(label_of(s, name)))
      return fmt::format("its label '{}' does not match /{}/", name, expression.text);
  return {};
}

std::string why_list(const Policy& policy, const ActConfig& config, const Subject& s) {
  if (contains(config.deny_users, s.user)) return fmt::format("act.deny-users lists '{}'", printable(s.user));
  for (const std::string& pattern : config.deny_commands)
    if (const auto regex = Regex::compile(pattern); regex && regex->found_in(s.command))
      return fmt::format("act.deny-commands lists /{}/", pattern);
  if (contains(policy.deny_users, s.user)) return fmt::format("the policy denies the user '{}'", printable(s.user));
  if (found_in(policy.deny_commands, s.command)) return "the policy denies its command";
  if (!policy.allow_users.empty() && !names_user(policy.allow_users, s.user))
    return fmt::format("the policy does not allow the user '{}'", printable(s.user));
  if (!policy.allow_commands.empty() && !found_in(policy.allow_commands, s.command))
    return "the policy does not allow its command";
  return {};
}

std::string seconds_text(double seconds) {
  return seconds < 120 ? fmt::format("{:.3g} s", seconds) : format_span(seconds);
}

}  // namespace

std::string why_not(const Policy& policy, const ActConfig& config, const Subject& subject) {
  std::string why = why_trouble(policy.when, subject);
  if (why.empty()) why = why_identity(policy.when, subject);
  if (why.empty()) why = why_list(policy, config, subject);
  return why;
}

const Policy* first_match(const Policies& policies, const ActConfig& config, const Subject& subject) {
  for (const Policy& policy : policies.rules)
    if (matches(policy, config, subject)) return &policy;
  return nullptr;
}

std::string not_owned(const Policy& policy, const std::string& user, const std::string& own_user) {
  if (names_user(policy.when.users, user) || names_user(policy.allow_users, user)) return {};
  if (user.empty()) return "the user of the process is not known";
  if (user == own_user && user != "root" && user != "0") return {};
  return fmt::format(
      "the process belongs to {}, a user that the policy does not name: add user = [\"{}\"] to its 'when'",
      printable(user), printable(user));
}

std::string not_named(const Policy& policy, const Subject& subject) {
  if (!policy.when.jobs.empty() || !policy.when.containers.empty()) return {};
  if (!subject.job.empty())
    return fmt::format("Slurm runs this process as job {}: a policy that touches it must name 'job' in its 'when'",
                       printable(subject.job));
  if (!subject.pod.empty())
    return "Kubernetes runs this process in a pod: a policy that touches it must name 'container' in its 'when'";
  return {};
}

double wait_s(const Policy& policy, std::size_t at) {
  const double asked_s = at > 0 ? policy.steps[at - 1].usually_takes_s.value_or(0) : 0;
  return std::max(policy.steps[at].after_s, asked_s);
}

std::optional<double> needs_s(const Policy& policy, std::size_t at) {
  std::optional<double> needed_s;
  double passed_s = 0;
  for (std::size_t i = at; i < policy.steps.size(); ++i) {
    const Step& step = policy.steps[i];
    if (i > at) passed_s += wait_s(policy, i);
    const double takes_s = step.usually_takes_s ? *step.usually_takes_s * kTakesFactor + kTakesMargin_s : 0;
    if (step.usually_takes_s || step.action->traits.needs_process)
      needed_s = std::max(needed_s.value_or(0), passed_s + takes_s);
    if (step.action->traits.stops_growth) break;
  }
  return needed_s;
}

std::vector<std::string> policy_warnings(const Policies& policies, const ActConfig& config) {
  std::vector<std::string> out;
  const auto warn = [&](std::uint32_t line, const std::string& text) {
    out.push_back(fmt::format("{}:{}: {}", policies.file, line, text));
  };
  for (const Policy& policy : policies.rules) {
    bool warned_before = false;
    for (std::size_t i = 0; i < policy.steps.size(); ++i) {
      const Step& step = policy.steps[i];
      const ActionTraits& traits = step.action->traits;
      const bool last = i + 1 == policy.steps.size();
      if (traits.ends_process && !warned_before)
        warn(step.line, fmt::format("'{}' is the first step that the program or its user notices: put a warning before "
                                    "it, such as notify or checkpoint",
                                    step.action->name));
      if (traits.ends_process && i > 0 && step.after_s == 0)
        warn(step.line,
             fmt::format("'{}' immediately follows the previous step; give it an 'after'", step.action->name));
      if (step.usually_takes_s && !last && policy.steps[i + 1].after_s < *step.usually_takes_s)
        warn(policy.steps[i + 1].line,
             fmt::format("'{0}' waits for '{1}', which may take {2}, longer than the 'after' of '{0}'",
                         policy.steps[i + 1].action->name, step.action->name, seconds_text(*step.usually_takes_s)));
      if (traits.stops_growth && last)
        warn(step.line, fmt::format("'{}' is the last step: it lasts until the process ends, its memory is released or "
                                    "acting is switched off",
                                    step.action->name));
      warned_before = warned_before || !traits.stops_growth;
      if (traits.counts_as_retry && config.max_retries == 0)
        warn(step.line, fmt::format("'{}' is never done: act.max-retries is 0", step.action->name));
    }
    const bool touches = std::any_of(policy.steps.begin(), policy.steps.end(),
                                     [](const Step& s) { return s.action->traits.needs_process; });
    if (touches && policy.when.users.empty() && policy.allow_users.empty())
      warn(policy.line, fmt::format("policy '{}' names no user: it acts only on processes of vramtrack's own user, and "
                                    "on none if vramtrack runs as root",
                                    policy.name));
  }
  if (!policies.rules.empty() && !config.enabled)
    out.emplace_back("act.enabled is false: an agent does not use the policies; 'vramtrack actuate' does");
  else if (!policies.rules.empty() && config.dry_run)
    out.emplace_back("act.dry-run is true: what would be done is recorded, but nothing is done");
  return out;
}

std::string explain(const Policy& policy) {
  const Conditions& when = policy.when;
  std::vector<std::string> conditions;
  const auto add = [&conditions](std::string text) { conditions.push_back(std::move(text)); };
  switch (when.trouble) {
    case Trouble::leak:
      add("a leak alert is active");
      break;
    case Trouble::stalled:
      add("a process holds memory and makes no progress");
      break;
  }
  std::string patterns;
  for (const Pattern pattern : when.patterns)
    patterns += (patterns.empty() ? "" : " or ") + std::string(to_string(pattern));
  if (!patterns.empty()) add("its pattern is " + patterns);
  if (when.severity > Severity::watch) add(fmt::format("its severity is at least {}", to_string(when.severity)));
  if (when.confidence > 0) add(fmt::format("its confidence is at least {}", format_percent(when.confidence)));
  if (when.ends_within_s) add(fmt::format("memory may run out within {}", seconds_text(*when.ends_within_s)));
  if (when.growth_bytes_per_s)
    add(fmt::format("it grows by at least {}", format_scaled_rate(*when.growth_bytes_per_s)));
  if (when.held_for_s) add(fmt::format("the alert has been active for at least {}", seconds_text(*when.held_for_s)));
  if (!when.users.empty()) add(fmt::format("the user is {}", fmt::join(when.users, " or ")));
  if (!when.commands.empty()) add("the command matches " + texts_of(when.commands));
  if (!when.containers.empty()) add("the container matches " + texts_of(when.containers));
  if (!when.jobs.empty()) add("the job matches " + texts_of(when.jobs));
  if (!when.devices.empty()) add(fmt::format("the device is {}", fmt::join(when.devices, " or ")));
  for (const auto& [name, expression] : when.labels)
    add(fmt::format("the label {} matches /{}/", name, expression.text));
  if (!policy.allow_users.empty()) add(fmt::format("its user is one of {}", fmt::join(policy.allow_users, ", ")));
  if (!policy.allow_commands.empty()) add("its command is allowed by " + texts_of(policy.allow_commands));
  if (!policy.deny_users.empty()) add(fmt::format("its user is not one of {}", fmt::join(policy.deny_users, ", ")));
  if (!policy.deny_commands.empty()) add("its command is not denied by " + texts_of(policy.deny_commands));
  std::string out = fmt::format("policy \"{}\"\n  when {}\n", policy.name, fmt::join(conditions, ",\n       "));
  std::size_t number = 0;
  for (const Step& step : policy.steps) {
    out += fmt::format("  {}. {}", ++number, step.action->name);
    if (step.after_s > 0) out += fmt::format(", {} after the previous step", seconds_text(step.after_s));
    if (step.usually_takes_s)
      out += fmt::format(", when memory may run out within {}", seconds_text(needs_s(policy, number - 1).value_or(0)));
    if (const std::string arguments = step.arguments.words_for_people(step.action->parameters); !arguments.empty())
      out += ": " + arguments;
    out += fmt::format("\n     {}. GPU memory: {}.\n", step.action->help, step.action->memory);
    if (step.stops_on_failure) out += "     If it fails, the ladder ends here.\n";
  }
  return printable_lines(out);
}

std::optional<int> parse_signal(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size())
    return number >= 1 && number < NSIG ? std::optional(number) : std::nullopt;
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const auto& [known, value] : kSignals)
    if (known == name) return value;
  return std::nullopt;
}

std::string signal_name(int number) {
  for (const auto& [name, value] : kSignals)
    if (value == number) return "SIG" + std::string(name);
  return fmt::format("signal {}", number);
}

}  // namespace vramtrack::act
