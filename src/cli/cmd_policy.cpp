// policy: checks the configured policies, explains them, and tries them on a recording.
#include <fmt/format.h>

#include <algorithm>

#include "act/audit.hpp"
#include "act/ladder.hpp"
#include "cli/commands.hpp"
#include "cli/moment.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "host/interrupt.hpp"
#include "live/clock.hpp"
#include "live/containment.hpp"
#include "live/pipeline.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

struct PolicyOptions {
  ConfigRequest config;
  std::vector<std::string> files;
  std::string name;  ///< for explain: one policy
  PeriodArguments period;
  bool json = false;
  LogArguments logs;
};

/// The policies, or nullopt after an error message.
std::optional<act::Policies> policies_of(const LayeredConfig& layers, Console& console) {
  const PolicyFile& file = layers.config().policies;
  auto policies = act::parse_policies(file.toml, file.name);
  if (policies && !policies->rules.empty()) return std::move(*policies);
  console.error(policies ? std::string("the configuration has no [[policy]]; docs/policies.md shows how to write one")
                         : policies.error().message);
  return std::nullopt;
}

int check(const PolicyOptions& /*options*/, const LayeredConfig& layers, Console& console) {
  const auto policies = policies_of(layers, console);
  if (!policies) return 2;
  for (const std::string& warning : act::policy_warnings(*policies, layers.config().act))
    console.warn(printable(warning));
  console.write(printable(fmt::format("{}: {} polic{} without errors", policies->file, policies->rules.size(),
                                      policies->rules.size() == 1 ? "y" : "ies")) +
                '\n');
  return 0;
}

int explain(const PolicyOptions& options, const LayeredConfig& layers, Console& console) {
  const auto policies = policies_of(layers, console);
  if (!policies) return 2;
  bool found = false;
  for (const act::Policy& policy : policies->rules)
    if (options.name.empty() || policy.name == options.name) {
      if (std::exchange(found, true)) console.write("\n");
      console.write(act::explain(policy));
    }
  if (found) return 0;
  std::vector<std::string_view> names;
  for (const act::Policy& policy : policies->rules) names.push_back(policy.name);
  console.error(printable(fmt::format("there is no policy '{}'; {}", options.name, near_words(options.name, names))));
  return 2;
}

/// Runs a recording through the live pipeline; prints the actions that its Views would trigger, without taking them.
class Trial {
 public:
  Trial(const Config& config, act::Policies policies, const TimeRange& range, bool json, Console& console)
      : config_(config), policies_(std::move(policies)), range_(range), json_(json), console_(console) {
    acting_ = config_.act;
    acting_.enabled = true;
    acting_.dry_run = true;
  }

  int run(Source& source, Catalog& catalog, const std::string& what) {
    Pipeline pipeline(config_, catalog);
    act::Ladder ladder(policies_, acting_, own_user_name());
    std::size_t standing = 0;
    bool has_samples = false;
    Listener listener;
    listener.alert = [&standing](const AlertNotice& notice) {
      if (notice.news == AlertNews::raised) ++standing;
      if (notice.news == AlertNews::cleared && standing > 0) --standing;
    };
    pipeline.listen(std::move(listener));
    TickTaker taker;
    taker.begin_anew = [&](const Tick& tick) {
      pipeline.begin_anew(tick.time);
      standing = 0;
    };
    taker.take = [&](const Tick& tick) {
      has_samples = true;
      pipeline.take(tick.batch);
      // Without an alert there is no subject, and building a View is expensive.
      if (standing > 0 || !ladder.climbs().empty()) see(ladder, *pipeline.view());
      return !console_.gone() && !Interrupt::requested();
    };
    const TicksRead read = read_ticks(source, taker, range_);
    const std::string broken = read.broken ? read.broken->message : std::string();
    if (!broken.empty()) {
      console_.error(fmt::format("cannot read all of {}: {}", what, broken));
    } else if (!has_samples && (range_.from || range_.to)) {
      const LocalTimes local = console_.local_times();
      console_.error(
          fmt::format("nothing to test: {} has no sample between --since and --until{}; choose another range", what,
                      outside_period(read, range_, catalog)));
      return 2;
    }
    if (!json_)
      console_.write(printable(fmt::format("{}: {} ladder{} started, {} step{} due; nothing was done", what, begun_,
                                           begun_ == 1 ? "" : "s", steps_, steps_ == 1 ? "" : "s")) +
                     '\n');
    return broken.empty() ? 0 : 2;
  }

 private:
  void see(act::Ladder& ladder, const View& view) {
    const act::Observation seen = act::observe(view);
    for (const act::Order& order : ladder.advance(seen)) {
      using Kind = act::Order::Kind;
      act::AuditEntry entry;
      entry.time = entry.written = order.time;
      entry.climb = order.climb;
      entry.policy = order.policy;
      entry.dry_run = true;
      entry.subject = order.subject;
      entry.action = order.action;
      entry.text = order.text;
      switch (order.kind) {
        case Kind::begin:
          entry.event = "begin";
          ++begun_;
          break;
        case Kind::not_done:
          entry.event = order.event;
          entry.step = order.step;
          break;
        case Kind::report:
          entry.event = "say";
          break;
        case Kind::end:
          entry.event = "end";
          break;
        case Kind::undo:
          entry.event = "would_undo";
          ladder.take_undo_result(order, {});
          break;
        case Kind::act: {
          const act::ActionInfo* info = act::find_action(order.action);
          entry.event = "would";
          entry.step = order.step;
          entry.text = info->words(order.subject, order.arguments);
          ladder.take_result(order,
                             {act::ActResult::Kind::done, {}, info->undo != nullptr ? "dry run" : "", seen.time});
          ++steps_;
          break;
        }
      }
      print_entry(entry, view);
    }
  }

  void print_entry(const act::AuditEntry& entry, const View& view) {
    if (json_) return console_.write(act::audit_json(entry) + '\n');
    const LocalTimes local = console_.local_times();
    std::string line = view.moment(entry.time) + "  " + entry.policy + "  ";
    if (entry.event == "would")
      line += "would " + entry.text;
    else if (entry.event == "would_undo")
      line += fmt::format("would undo '{}': {}", entry.action, entry.text);
    else
      line += fmt::format("{}{}{}: {}; {}", entry.action, entry.action.empty() ? "" : " ", entry.event,
                          act::subject_words(entry.subject), entry.text);
    console_.write(printable(line) + '\n');
  }

  const Config& config_;
  act::Policies policies_;
  TimeRange range_;
  ActConfig acting_;
  bool json_;
  Console& console_;
  std::size_t begun_ = 0;
  std::size_t steps_ = 0;
};

/// Why policies, which use minutes and bytes, cannot be tested on a recording with this scale; empty if they can.
std::string not_for_policies(const Scale& scale) {
  if (scale.counts_steps())
    return fmt::format(
        "it counts {} and has no clock, but policies act after some time; pass {} with the time that one {} takes",
        plural(scale.step), name_of(Option::interval), scale.step);
  if (scale.counts_bytes()) return {};
  const bool is_percent = scale.unit == AmountUnit::percent;
  return fmt::format("its memory is {}, but policies need bytes; pass {}",
                     is_percent ? "in percent" : "in an unknown unit",
                     name_of(is_percent ? Option::capacity : Option::unit));
}

int test(const PolicyOptions& options, const LayeredConfig& layers, Console& console) {
  auto policies = policies_of(layers, console);
  if (!policies) return 2;
  const auto range = time_range(options.period, options.logs.timezone, time_of_day());
  const auto logs = log_options(options.logs);
  const auto kind = recorded_kind(options.files);
  const auto chosen = files_or_store(options.files, layers.config().store);
  if (!range || !logs || !kind || !chosen) {
    console.error(!range  ? range.error().message
                  : !logs ? logs.error().message
                          : "cannot read the recording: " + (!kind ? kind.error() : chosen.error()).message);
    return 2;
  }
  const std::vector<std::string>& files = *chosen;
  const Progress progress(console, files);
  auto parts = plan_recorded(**kind, files, {*logs, *range});
  if (!parts) {
    console.error("cannot read the recording: " + parts.error().message);
    return 2;
  }
  int exit_code = 0;
  for (const RecordedPart& part : *parts) {
    Catalog catalog;
    auto source = part.open(catalog);
    if (!source) {
      console.error("cannot read the recording: " + source.error().message);
      exit_code = 2;
      continue;
    }
    const std::string what = fmt::format("{}", fmt::join(part.files, ", "));
    if (const std::string why = not_for_policies(catalog.scale); !why.empty()) {
      console.error(fmt::format("cannot test policies on {}: {}", printable(what), why));
      exit_code = 2;
      continue;
    }
    Trial trial(layers.config(), *policies, *range, options.json, console);
    exit_code = std::max(exit_code, trial.run(**source, catalog, what));
    if (console.gone() || Interrupt::requested()) break;
  }
  return exit_code;
}

Runner declare_check(Arguments& arguments) {
  const auto options = std::make_shared<PolicyOptions>();
  add_config(arguments, options->config);
  return configured<PolicyOptions>(options, check);
}

Runner declare_explain(Arguments& arguments) {
  const auto options = std::make_shared<PolicyOptions>();
  arguments.operand("NAME", "One policy (default: all)", text(options->name));
  add_config(arguments, options->config);
  return configured<PolicyOptions>(options, explain);
}

Runner declare_test(Arguments& arguments) {
  const auto options = std::make_shared<PolicyOptions>();
  arguments.operands("RECORDING", "A store, or logs as for analyze (default: this user's store)", text(options->files))
      .file();
  add_period(arguments, options->period);
  add_json(arguments, options->json);
  add_log_arguments(arguments, options->logs);
  add_detector(arguments, options->config);
  add_lead_time(arguments, options->config);
  add_config(arguments, options->config);
  return until_interrupted(configured<PolicyOptions>(options, test));
}

constexpr CommandInfo kCheck{"check", "Check the configured policies and warn about risky ones",
                             "Example:\n  vramtrack policy check --config /etc/vramtrack/config.toml\n"
                             "Exit: 0 no errors, 2 an error or no policy.",
                             declare_check};
constexpr CommandInfo kExplain{
    "explain", "Explain in sentences when each policy acts, and what each step does to GPU memory",
    "Example:\n  vramtrack policy explain\nExit: 0, or 2 if there is no such policy.", declare_explain};
constexpr CommandInfo kTest{"test", "Print what the policies would have done on a recording; nothing is done",
                            "Examples:\n"
                            "  vramtrack policy test                   on this user's store\n"
                            "  vramtrack policy test --config new.toml gpu.csv\n"
                            "  vramtrack policy test --since yesterday last.db\n"
                            "Exit: 0 read to the end, 2 failed.",
                            declare_test};
constexpr const CommandInfo* kVerbs[] = {&kCheck, &kExplain, &kTest};

}  // namespace

const CommandInfo policy_command{"policy", "Check, explain and try the policies that act on leaks",
                                 "Examples:\n"
                                 "  vramtrack policy check\n"
                                 "  vramtrack policy explain\n"
                                 "  vramtrack policy test last-month.db",
                                 nullptr, kVerbs};

}  // namespace vramtrack::cli
