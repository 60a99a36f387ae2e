#include "cli/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/cmd_snapshot_options.hpp"
#include "core/settings.hpp"
#include "core/time.hpp"
#include "detect/detector.hpp"
#include "recorded/recorded.hpp"
#include "report/report.hpp"
#include "source/source.hpp"
#include "top/theme.hpp"

namespace vramtrack::cli {
namespace {

template <class T>
T value_or_throw(const std::string& option, Result<T> value) {
  if (!value) throw CLI::ValidationError(option, value.error().message);
  return std::move(*value);
}

void add_duration(CLI::App* app, const std::string& name, std::optional<double>& into, const std::string& help) {
  app->add_option_function<std::string>(
         name,
         [name, &into](const std::string& text) {
           into = value_or_throw(name, parse_duration_s(text));
           if (*into <= 0) throw CLI::ValidationError(name, "must be longer than nothing, for example 1s");
         },
         help)
      ->type_name("DURATION");
}

void add_common(CLI::App* app, Options& o) {
  app->add_option("--config", o.config_file, "Read this configuration file")->type_name("FILE");
  app->add_option("--set", o.assignments, "Override a setting: section.key=value, or key=value of [detection]")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);  // one each: what follows is a file
}

std::string detector_names() {
  std::string names;
  for (const DetectorInfo* info : detectors()) names += (names.empty() ? "" : ", ") + std::string(info->name);
  return names;
}

void add_detection(CLI::App* app, Options& o) {
  app->add_option("--detector", o.detector, "Let this detector decide: " + detector_names())->type_name("NAME");
}

void add_json(CLI::App* app, Options& o) {
  app->add_flag("--json", o.json, "Print JSON lines (docs/formats/analysis.md)");
}

void add_capacity(CLI::App* app, Options& o) {
  app->add_option_function<std::string>(
         "--capacity",
         [&o](const std::string& text) { o.capacity_bytes = value_or_throw("--capacity", parse_capacity(text)); },
         "Capacity of devices whose log gives none, for example 24GiB")
      ->type_name("SIZE");
}

void add_sources(CLI::App* app, Options& o) {
  std::string names;
  for (const SourceInfo* info : live_sources()) names += (names.empty() ? "" : ",") + std::string(info->name);
  app->add_option("--source", o.sources, "Read these sources only: " + names)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
}

void add_logs(CLI::App* app, Options& o) {
  std::string formats;
  for (const LogFormatInfo* info : log_formats()) formats += (formats.empty() ? "" : ", ") + std::string(info->name);
  app->add_option("--input-format", o.input_format, "Read the logs as this format, do not guess: " + formats)
      ->type_name("NAME");
  app->add_option("--timezone", o.timezone, "Zone of local times in the logs (default: this machine's)")
      ->type_name("ZONE");
  add_capacity(app, o);
  app->add_option("--start", o.start, "When the recording began, for logs without a clock or a date")
      ->type_name("TIME");
  add_duration(app, "--interval", o.sample_interval_s, "Time between two readings, for logs without a clock");
  app->add_option("--unit", o.unit, "Unit of a bare used column: B, KiB, MiB, GiB, MB or GB")->type_name("UNIT");
}

void add_speed(CLI::App* app, Options& o,
               const std::string& help = "60: a minute a second; 1: as it was (default: as fast as possible)") {
  app->add_option("--speed", o.speed, help)->type_name("FACTOR")->check([](const std::string& text) {
    try {
      const double speed = std::stod(text);
      if (std::isfinite(speed) && speed >= 0) return std::string();
    } catch (const std::exception&) {
      return std::string("is no number");
    }
    return std::string("must be 0 (as fast as possible) or more");
  });
}

CLI::App* add_watch(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("watch", "Watch this machine's GPUs, record, and tell as soon as something leaks");
  add_json(c, o);
  c->add_flag("--once", o.once, "Take one sample, print it, end");
  add_duration(c, "--interval", o.interval_s, "Time between two samples (default 1s)");
  add_duration(c, "--duration", o.duration_s, "End after this time (default: run until interrupted)");
  add_duration(c, "--every", o.every_s, "Time between two status tables (default 10s)");
  c->add_flag("--no-record", o.no_record, "Do not record into the store");
  add_sources(c, o);
  c->add_flag("--or-simulate", o.or_simulate, "Where there is no GPU, say so and simulate a leaking job instead");
  add_detection(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack watch                       watch and record until Ctrl-C\n"
      "  vramtrack watch --once --no-record    what is on the GPUs now\n"
      "  vramtrack watch --json --every 1min   for a log collector\n"
      "Exit: 0 ended, 2 nothing to watch.");
  return c;
}

CLI::App* add_agent(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("agent", "Watch in the background: a page, a JSON API, /metrics for Prometheus");
  c->add_option("--listen", o.listen, "Answer HTTP here (default 127.0.0.1:9474; beyond loopback with a token only)")
      ->type_name("ADDRESS:PORT");
  add_duration(c, "--interval", o.interval_s, "Time between two samples (default 1s)");
  c->add_flag("--no-record", o.no_record, "Do not record into the store: no history, no page of the past");
  add_sources(c, o);
  c->add_flag("--or-simulate", o.or_simulate, "Where there is no GPU, say so and simulate a leaking job instead");
  c->add_option("--scenario", o.scenario, "Simulate this: a built-in scenario or a TOML file")->type_name("NAME");
  add_speed(c, o, "Of a simulation: 60: a minute a second (default 60)");
  c->add_option("--seed", o.seed, "Of a simulation: of everything that is random")->type_name("NUMBER");
  add_detection(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack agent                              watch, record, answer on 127.0.0.1:9474\n"
      "  vramtrack agent --scenario leaking_training  to see it without a GPU\n"
      "  systemctl enable --now vramtrack-agent       from boot on\n"
      "Exit: 0 ended by SIGTERM or SIGINT, 2 could not start. SIGHUP reloads the configuration.");
  return c;
}

CLI::App* add_top(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("top", "Watch on a screen: every GPU, who is on it, what leaks, and when it ends");
  add_duration(c, "--interval", o.interval_s, "Time between two samples (default 1s)");
  c->add_flag("--no-record", o.no_record, "Do not record into the store");
  add_sources(c, o);
  c->add_option("--replay", o.files, "Show a recording instead: a store, or logs as for analyze")
      ->type_name("FILE")
      ->expected(1, -1);
  c->add_option("--from", o.from, "With --replay: begin here: 2026-01-02T03:04, or 2h before now")->type_name("TIME");
  c->add_option("--to", o.to, "With --replay: end before this")->type_name("TIME");
  c->add_option("--scenario", o.scenario, "Show a simulated machine instead: a built-in scenario or a TOML file")
      ->type_name("NAME");
  c->add_flag("--or-simulate", o.or_simulate, "Where there is no GPU, simulate a leaking job instead");
  add_speed(c, o, "With --replay, --scenario: 60: a minute a second (default: some two minutes for all)");
  c->add_option("--timezone", o.timezone, "Zone of local times in the logs (default: this machine's)")
      ->type_name("ZONE");
  add_capacity(c, o);
  std::string names;
  for (const top::Theme& theme : top::themes()) names += (names.empty() ? "" : ", ") + std::string(theme.name);
  c->add_option("--theme", o.theme, "Colours: " + names)->type_name("NAME");
  c->add_flag("--no-agent", o.no_agent, "Watch by itself, even where an agent runs");
  c->add_flag("--read-only", o.read_only, "Never send a signal, whatever is pressed");
  add_detection(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack top                              watch and record; ? shows the keys\n"
      "  vramtrack top --replay old.db --from 8h    the last eight hours of a store\n"
      "  vramtrack top --replay gpu.csv apps.csv    logs of nvidia-smi\n"
      "  vramtrack top --scenario leaking_training  needs no GPU\n"
      "Exit: 0 ended, 2 nothing to show.");
  return c;
}

CLI::App* add_replay(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("replay", "Replay what a watch recorded, with the verdicts it gave then");
  c->add_option("FILE", o.files, "A store, or logs as for analyze (default: this user's store)")->type_name("");
  c->add_option("--from", o.from, "Begin here: 2026-01-02T03:04, or 2h before now")->type_name("TIME");
  c->add_option("--to", o.to, "End before this")->type_name("TIME");
  add_speed(c, o);
  add_duration(c, "--every", o.every_s, "With --speed: time between two status tables (default 10s)");
  add_json(c, o);
  c->add_flag("--explain", o.explain, "Show every figure behind the last verdicts");
  add_logs(c, o);
  add_detection(c, o);
  std::string kinds;
  for (const RecordedInfo* kind : recorded_sources()) kinds += fmt::format("  {:<6} {}\n", kind->name, kind->help);
  c->footer("What FILE holds is recognised by its content:\n" + kinds +
            "Examples:\n"
            "  vramtrack replay --from 8h              the last eight hours\n"
            "  vramtrack replay --speed 600 old.db     ten minutes a second\n"
            "  vramtrack replay gpu.csv                a log instead of a store\n"
            "Exit: 0 replayed, 2 could not.");
  return c;
}

CLI::App* add_analyze(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("analyze", "Tell from logs whether memory leaked, how fast, who did it and why");
  c->add_option("FILE", o.files, "Logs, also .gz and .zst; - is standard input")->required()->type_name("");
  std::string formats;
  for (const ReportInfo* info : reports()) formats += (formats.empty() ? "" : ", ") + std::string(info->name);
  c->add_option_function<std::string>(
       "--format",
       [&o, formats](const std::string& name) {
         if (find_report(name) == nullptr)
           throw CLI::ValidationError("--format", "'" + name + "' is not one of: " + formats);
         o.json = name == "json";
       },
       "Print as: " + formats + " (default text)")
      ->type_name("NAME");
  c->add_flag("--explain", o.explain, "Show every figure behind the verdict");
  add_detection(c, o);
  add_logs(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack analyze gpu.csv\n"
      "  nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 5 >gpu.csv   makes one\n"
      "  vramtrack analyze gpu.csv apps.csv               a process log is joined to the devices' log\n"
      "  vramtrack analyze --capacity 24GiB --format json old.log.gz\n"
      "  vramtrack analyze --detector composite --set min-r-squared=0.8 gpu.csv\n"
      "Exit: 0 no leak, 1 a leak alert was raised and not withdrawn, 2 could not analyse.");
  return c;
}

CLI::App* add_report(CLI::App& app, Options& o) {
  CLI::App* c =
      app.add_subcommand("report", "Report of a period: verdicts, alerts, charts, and what a crash would cost");
  c->add_option("FILE", o.files, "A store, or logs as for analyze (default: this user's store)")->type_name("");
  c->add_option("--since", o.from, "Begin here: 2026-01-02T03:04, or 8h before now (a store's default: 24h)")
      ->type_name("TIME");
  c->add_option("--until", o.to, "End before this")->type_name("TIME");
  c->add_option("--gpu", o.gpus, "These GPUs only: indices or ids")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("GPUS");
  c->add_option("--format", o.report_format, "Write as: text, md, json, html (default text)")
      ->check(CLI::IsMember({"text", "md", "json", "html"}))
      ->type_name("NAME");
  c->add_option("--output", o.output, "Write into this file, not to standard output")->type_name("FILE");
  add_duration(c, "--checkpoint-every", o.checkpoint_every_s, "How often the jobs save a checkpoint");
  c->add_option("--last-checkpoint", o.last_checkpoints,
                "When the jobs last saved one: a time as in --since; JOB=TIME of one job (Slurm id, pid, ...)")
      ->type_name("TIME")
      ->take_all()
      ->allow_extra_args(false);
  add_logs(c, o);
  add_detection(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack report                                          the last 24 hours of the store\n"
      "  vramtrack report --since 2026-01-02 --format html --output incident.html\n"
      "  vramtrack report --set cost.usd-per-gpu-hour=2.5 --checkpoint-every 30min gpu.csv apps.csv\n"
      "Exit: 0 no leak, 1 a leak alert was raised in the period and not withdrawn, 2 could not report.");
  return c;
}

CLI::App* add_simulate(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("simulate", "Watch a simulated machine, until the prediction has come true");
  c->add_option("SCENARIO", o.scenario, "A built-in scenario or a TOML file (default: leaking_training)")
      ->type_name("");
  c->add_flag("--list", o.list, "List the built-in scenarios");
  add_speed(c, o);
  add_duration(c, "--within", o.within_s, "Choose the speed so that all of it takes this long");
  c->add_option("--seed", o.seed, "Seed of everything that is random (default: the scenario's)")->type_name("NUMBER");
  c->add_option("--csv", o.csv, "Also write the device samples as an nvidia-smi log")->type_name("FILE");
  c->add_option("--process-csv", o.process_csv, "Also write the process samples as an nvidia-smi log")
      ->type_name("FILE");
  c->add_flag("--notify", o.notify, "Tell whom [notify] names of the simulated alerts, marked as simulated: to try it");
  add_json(c, o);
  c->add_flag("--explain", o.explain, "Show every figure behind the last verdicts");
  add_detection(c, o);
  c->footer(
      "Examples:\n"
      "  vramtrack simulate                              a training job that leaks\n"
      "  vramtrack simulate --list\n"
      "  vramtrack simulate leaking_training --within 20s\n"
      "  vramtrack simulate my.toml --seed 3 --csv gpu.csv && vramtrack analyze gpu.csv\n"
      "Exit: 0 simulated, 1 with --notify: somebody was not told, 2 could not.");
  return c;
}

CLI::App* add_test(CLI::App& app, Options& o) {
  CLI::App* c = app.add_subcommand("test", "Run a program and fail when its GPU memory grows with every iteration");
  c->add_option("PROGRAM", o.program, "The program and its arguments, after '--'")->required()->type_name("");
  c->add_option("--limit", o.limit, "Growth that is allowed (default 0.2 MiB/iter)")->type_name("SIZE/ITER");
  c->add_option("--error-rate", o.error_rate, "Share of healthy programs that may fail (default 1e-4)")
      ->check(CLI::Range(1e-6, 0.05))
      ->type_name("P");
  c->add_option("--mark", o.mark, "Count this mark as the iteration (default: the one made most often)")
      ->type_name("NAME");
  add_duration(c, "--interval", o.sample_interval_s,
               "Time between two samples of a program that makes no marks (default 1s)");
  c->add_option("--junit", o.junit, "Write the result as JUnit XML")->type_name("FILE");
  c->footer(
      "Examples:\n"
      "  vramtrack test -- python train.py --steps 300          which calls vramtrack.mark(\"step\") in each step\n"
      "  vramtrack test --limit 1MiB/step --junit leak.xml -- ./bench\n"
      "Exit: 0 passes, 1 leaks, 2 could not be tested, 3 the program itself failed. See docs/leak-gate.md.");
  return c;
}

CLI::App* add_doctor(CLI::App& app) {
  CLI::App* c = app.add_subcommand("doctor", "What was found here, what is missing, what to do");
  c->footer("Example:\n  vramtrack doctor\nExit: 0 watch will work, 1 something it needs is missing.");
  return c;
}

/// The configuration's three verbs, each with the common options.
struct ConfigCommands {
  CLI::App* all = nullptr;
  CLI::App* show = nullptr;
  CLI::App* path = nullptr;
  CLI::App* init = nullptr;
};

ConfigCommands add_config(CLI::App& app, Options& o) {
  ConfigCommands c;
  c.all = app.add_subcommand("config", "Show the settings, find their file, or write one to start from");
  c.all->require_subcommand(1);
  c.show = c.all->add_subcommand("show", "Print every setting and where its value came from");
  c.path = c.all->add_subcommand("path", "Print the path of the configuration file");
  c.init = c.all->add_subcommand("init", "Write a configuration file with every key, explained and commented out");
  c.init->add_flag("--force", o.force, "Replace a file that is there");
  c.show->footer("Example:\n  vramtrack config show --set min-r-squared=0.8");
  c.path->footer("Example:\n  \"$EDITOR\" \"$(vramtrack config path)\"");
  c.init->footer("Example:\n  vramtrack config init && \"$EDITOR\" \"$(vramtrack config path)\"");
  c.all->footer("Examples:\n  vramtrack config show\n  vramtrack config init");
  return c;
}

Parsed usage_error(const CLI::ParseError& e, const CLI::App& app, const std::vector<std::string_view>& commands,
                   int argc, const char* const* argv) {
  Parsed parsed;
  parsed.exit_code = 2;
  std::string help = "vramtrack";
  for (const CLI::App* sub = &app; sub != nullptr;) {
    const auto chosen = sub->get_subcommands();
    sub = chosen.empty() ? nullptr : chosen.front();
    if (sub != nullptr) help += ' ' + sub->get_name();
  }
  std::string what = e.what();
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  // "analyse" instead of "analyze", say: name the nearest command rather than an unexpected argument.
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty())
    what = fmt::format("unknown command '{}'; the nearest is '{}'", argv[1], nearest_name(argv[1], commands));
  // CLI11 names the words behind an option that it does not know rather than the option.
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) continue;
    const std::string name(word.substr(0, word.find('=')));
    if (deepest->get_option_no_throw(name) != nullptr || app.get_option_no_throw(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : deepest->get_options())
      for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
    const std::vector<std::string_view> names(known.begin(), known.end());
    what = fmt::format("unknown option '{}'; the nearest is '{}'", name, nearest_name(name, names));
    if (deepest->get_name() == "test") what += ", and the program's own come after '--'";
    break;
  }
  // A verb that is none: "snapshot sumary".
  if (deepest != &app && !deepest->get_subcommands([](const CLI::App*) { return true; }).empty()) {
    std::vector<std::string_view> verbs;
    for (const CLI::App* sub : deepest->get_subcommands([](const CLI::App*) { return true; }))
      verbs.push_back(sub->get_name());
    what = argc > 2 && argv[2][0] != '-'
               ? fmt::format("unknown word '{}' after {}; give one of {}", argv[2], deepest->get_name(),
                             fmt::join(verbs, ", "))
               : fmt::format("{}: give one of {}", deepest->get_name(), fmt::join(verbs, ", "));
  }
  if (argc == 1) what = fmt::format("no command; give one of {}", fmt::join(commands, ", "));
  parsed.error = fmt::format("{}; see '{} --help'", what, help);
  return parsed;
}

}  // namespace

Result<std::uint64_t> parse_capacity(std::string_view text) {
  auto bytes = parse_bytes(text);
  if (bytes && *bytes < (1U << 20U))
    return fail(fmt::format("{} bytes is no GPU's memory; give a unit, for example 24GiB", *bytes));
  return bytes;
}

Parsed parse_options(int argc, const char* const* argv) {
  Options o;
  CLI::App app("Finds GPU memory leaks, says how fast they grow, who grows, and when memory will run out", "vramtrack");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("vramtrack ") + VRAMTRACK_VERSION, "Print the version");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  vramtrack watch            this machine's GPUs\n"
      "  vramtrack top              the same on a screen\n"
      "  vramtrack analyze gpu.csv  a log of nvidia-smi\n"
      "  vramtrack simulate         see a leak found and its prediction come true\n"
      "'vramtrack COMMAND --help' tells more.");
  const CLI::App* watch = add_watch(app, o);
  const CLI::App* agent = add_agent(app, o);
  const CLI::App* top = add_top(app, o);
  const CLI::App* replay = add_replay(app, o);
  const CLI::App* analyze = add_analyze(app, o);
  const CLI::App* report = add_report(app, o);
  const CLI::App* simulate = add_simulate(app, o);
  const CLI::App* snapshot = add_snapshot(app, o);
  const CLI::App* test = add_test(app, o);
  const CLI::App* doctor = add_doctor(app);
  const ConfigCommands config = add_config(app, o);
  std::vector<std::string_view> commands;
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    commands.push_back(sub->get_name());
    if (sub != config.all && sub != snapshot) add_common(sub, o);
  }
  for (CLI::App* sub : {config.show, config.path, config.init}) add_common(sub, o);

  Parsed parsed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& e) {
    parsed.out = std::string(e.what()) + '\n';
    return parsed;
  } catch (const CLI::CallForHelp&) {
    parsed.out = app.help();
    return parsed;
  } catch (const CLI::ParseError& e) {
    return usage_error(e, app, commands, argc, argv);
  }
  if (watch->parsed()) o.command = Command::watch;
  if (agent->parsed()) o.command = Command::agent;
  if (top->parsed()) o.command = Command::top;
  if (replay->parsed()) o.command = Command::replay;
  if (analyze->parsed()) o.command = Command::analyze;
  if (report->parsed()) o.command = Command::report;
  if (simulate->parsed()) o.command = Command::simulate;
  if (snapshot->parsed()) o.command = Command::snapshot;
  if (test->parsed()) o.command = Command::test;
  if (doctor->parsed()) o.command = Command::doctor;
  if (config.show->parsed()) o.command = Command::config_show;
  if (config.path->parsed()) o.command = Command::config_path;
  if (config.init->parsed()) o.command = Command::config_init;
  parsed.options = std::move(o);
  return parsed;
}

}  // namespace vramtrack::cli
