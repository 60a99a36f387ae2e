// The options of `vramtrack snapshot` and its verbs.
#include "cli/cmd_snapshot_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/time.hpp"
#include "trace/format.hpp"

namespace vramtrack::cli {
namespace {

std::uint64_t size_or_throw(const std::string& option, const std::string& text) {
  const auto bytes = option == "--capacity" ? parse_capacity(text) : parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(option, bytes.error().message);
  return *bytes;
}

CLI::App* add_verb(CLI::App* all, Options& o, const std::string& name, const std::string& help, bool many) {
  CLI::App* c = all->add_subcommand(name, help);
  CLI::Option* files = c->add_option("FILE", o.files,
                                     many ? "Snapshots, also .gz and .zst; - is standard input"
                                          : "A snapshot, also .gz or .zst; - is standard input")
                           ->required()
                           ->type_name("");
  if (!many) files->expected(1);
  c->add_option("--device", o.snapshot.device, "This device only")->type_name("NUMBER");
  c->add_option("--output", o.output, "Write into this file, not to standard output")->type_name("FILE");
  c->callback([&o, name] { o.snapshot.verb = name; });
  return c;
}

void add_json(CLI::App* c, Options& o) {
  c->add_flag("--json", o.json, "Print one JSON document (docs/snapshot.md)");
}

void add_top(CLI::App* c, Options& o) {
  c->add_option("--top", o.snapshot.top, "How many sites to show (default 10)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 100000));
}

}  // namespace

CLI::App* add_snapshot(CLI::App& app, Options& o) {
  CLI::App* all =
      app.add_subcommand("snapshot", "PyTorch memory snapshots: who holds the memory, what grew, what filled it");
  all->require_subcommand(1);
  CLI::App* summary =
      add_verb(all, o, "summary", "What the reserved memory is: in use, cached, fragmented, waiting", true);
  add_json(summary, o);
  add_top(summary, o);
  summary->footer(
      "Example:\n"
      "  vramtrack snapshot summary memory_snapshot.pickle\n"
      "Exit: 0 done, 2 could not read it.");

  CLI::App* leaks = add_verb(all, o, "leaks", "What grew from the first snapshot to the last, by stack", true);
  add_json(leaks, o);
  add_top(leaks, o);
  leaks
      ->add_option_function<std::vector<std::string>>(
          "--used",
          [&o](const std::vector<std::string>& sizes) {
            for (const std::string& size : sizes) o.snapshot.used_bytes.push_back(size_or_throw("--used", size));
          },
          "What nvidia-smi showed of the device at each snapshot, for growth outside the allocator: 10GiB,12GiB")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("SIZES");
  leaks->footer(
      "Examples:\n"
      "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle   three tell a leak from a warm-up\n"
      "  vramtrack snapshot leaks --used 10GiB,12GiB a.pickle b.pickle\n"
      "Exit: 0 nothing leaks, 1 a leak (or growth that may be one), 2 could not read or compare them.");

  CLI::App* timeline =
      add_verb(all, o, "timeline", "Live bytes by site over the trace, and what its peaks were made of", false);
  add_json(timeline, o);
  add_top(timeline, o);
  timeline->footer(
      "Example:\n"
      "  vramtrack snapshot timeline --top 5 memory_snapshot.pickle\n"
      "Exit: 0 done, 2 could not read it, or it has no trace.");

  CLI::App* oom =
      add_verb(all, o, "oom", "What filled the memory: leak, fragmentation, pending frees, or simply too big", false);
  add_json(oom, o);
  add_top(oom, o);
  oom->add_option_function<std::string>(
         "--capacity", [&o](const std::string& text) { o.capacity_bytes = size_or_throw("--capacity", text); },
         "Capacity of the device, for what lies outside the allocator, for example 80GiB")
      ->type_name("SIZE");
  oom->footer(
      "Example:\n"
      "  vramtrack snapshot oom --capacity 80GiB oom_snapshot.pickle\n"
      "Exit: 0 done, 2 could not read it.");

  CLI::App* flamegraph = add_verb(all, o, "flamegraph", "A flame graph of the live bytes, as one HTML file", false);
  flamegraph->add_flag("--peak", o.snapshot.at_peak, "Of the moment when most was live, not of the end");
  flamegraph->footer(
      "Examples:\n"
      "  vramtrack snapshot flamegraph --output live.html memory_snapshot.pickle\n"
      "  vramtrack snapshot flamegraph --peak --output peak.html memory_snapshot.pickle\n"
      "Exit: 0 done, 2 could not read it.");

  CLI::App* exported = add_verb(all, o, "export", "For other tools: pprof, speedscope, folded, chrome, csv", false);
  exported
      ->add_option("--format", o.snapshot.format,
                   "Write as: pprof, speedscope, folded (live bytes by stack), chrome, csv (events)")
      ->required()
      ->check(CLI::IsMember({"pprof", "speedscope", "folded", "chrome", "csv"}))
      ->type_name("NAME");
  exported->add_flag("--peak", o.snapshot.at_peak, "Of pprof, speedscope, folded: when most was live, not the end");
  exported->footer(
      "Examples:\n"
      "  vramtrack snapshot export --format pprof --output live.pb.gz memory_snapshot.pickle && go tool pprof -http : "
      "live.pb.gz\n"
      "  vramtrack snapshot export --format speedscope --output live.speedscope.json memory_snapshot.pickle\n"
      "  vramtrack snapshot export --format chrome --output trace.json memory_snapshot.pickle   for ui.perfetto.dev\n"
      "Exit: 0 done, 2 could not read it.");
  std::string formats;
  for (const trace::TraceFormatInfo* format : trace::trace_formats())
    formats += fmt::format("  {:<18} {}\n", format->name, format->help);
  all->footer("Formats, recognised by content:\n" + formats +
              "Examples:\n"
              "  vramtrack snapshot summary memory_snapshot.pickle\n"
              "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle\n"
              "A snapshot is made by torch.cuda.memory._dump_snapshot(FILE), with stacks after "
              "torch.cuda.memory._record_memory_history().");
  return all;
}

}  // namespace vramtrack::cli
