// The options of `vramtrack snapshot` and its verbs.
#include "cli/cmd_snapshot_options.hpp"

#include <CLI/CLI.hpp>

#include "core/time.hpp"

namespace vramtrack::cli {
namespace {

std::uint64_t size_or_throw(const std::string& option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(option, bytes.error().message);
  return *bytes;
}

CLI::App* add_verb(CLI::App* all, Options& o, const std::string& name, const std::string& help, bool many) {
  CLI::App* c = all->add_subcommand(name, help);
  CLI::Option* files =
      c->add_option("FILE", o.files, many ? "Snapshots, also .gz and .zst" : "A snapshot, also .gz or .zst")
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
      "Exit: 0 nothing leaks, 1 a leak (or growth that may be one), 2 could not read them.");

  all->footer(
      "Examples:\n"
      "  vramtrack snapshot summary memory_snapshot.pickle\n"
      "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle\n"
      "A snapshot is made by torch.cuda.memory._dump_snapshot(FILE), with stacks after "
      "torch.cuda.memory._record_memory_history().");
  return all;
}

}  // namespace vramtrack::cli
