// programs: what a watch remembers about finished runs of programs (docs/detectors/judge.md, Experience).
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/earlier_runs.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/program.hpp"
#include "live/ledger_reader.hpp"
#include "live/program_store.hpp"
#include "report/json.hpp"
#include "store/store.hpp"

namespace vramtrack::cli {
namespace {

struct ProgramsOptions {
  ConfigRequest config;
  std::string store;
  std::string forget;
  std::vector<std::string> command;
  std::vector<std::string> traces;
  bool json = false;
};

/// The number of digits of a program's key that identify the program.
constexpr std::size_t kIdDigits = 12;

std::string table(const std::vector<Program>& programs) {
  std::string out = fmt::format("{:<12}  {:<32} {:<12} {:>5} {:>6} {:>9} {:>10} {:>10}  {}\n", "id", "program", "user",
                                "runs", "leaked", "warm-up", "settled", "peak", "last seen");
  for (const Program& p : programs) {
    const RunsNeed need = need_of(p);
    out += fmt::format("{:<12}  {:<32} {:<12} {:>5} {:>6} {:>9} {:>10} {:>10}  {}\n", p.key.substr(0, kIdDigits),
                       printable(p.name), printable(p.user), p.runs, p.leaked,
                       need.warm_up_s ? format_span(*need.warm_up_s) : "-",
                       need.usual_bytes ? format_bytes(*need.usual_bytes) : "-", format_bytes(need.most_bytes),
                       format_moment(p.last, false));
  }
  return out;
}

int forget(const ProgramsOptions& options, const std::string& store, const std::vector<Program>& programs,
           Console& console) {
  std::string key;
  if (options.forget != "all") {
    std::vector<const Program*> meant;
    for (const Program& p : programs)
      if (p.key.starts_with(options.forget)) meant.push_back(&p);
    if (meant.size() != 1 || options.forget.empty()) {
      console.error(
          fmt::format("cannot forget '{}': {}; 'vramtrack programs' lists the ids", printable(options.forget),
                      meant.empty() ? "no program has this id" : "several programs have ids that begin with this"));
      return 2;
    }
    key = meant.front()->key;
  }
  const auto forgotten = forget_programs(store, key);
  if (!forgotten) {
    console.error("cannot forget: " + forgotten.error().message);
    return 2;
  }
  console.write(fmt::format("{} program{} forgotten\n", *forgotten, *forgotten == 1 ? "" : "s"));
  return 0;
}

/// The memory now free on each GPU, compared with the program's highest need. `reasons`: why no GPU was found.
std::vector<RoomOnDevice> room_for(double peak_bytes, const SourcesConfig& sources, Console& console,
                                   std::string& reasons) {
  LedgerReader reader(sources, [&console](const std::string& text) { console.warn(text); });
  if (!reader.is_open()) reasons = reader.reasons();
  std::vector<RoomOnDevice> room;
  const Ledger ledger = reader.look();
  for (const DeviceLedger& one : ledger.devices) {
    if (!one.used_bytes || !one.device.capacity_bytes) continue;
    const double free = static_cast<double>(*one.device.capacity_bytes) - static_cast<double>(*one.used_bytes) -
                        static_cast<double>(one.reserved_bytes);
    room.push_back({one.device.id, one.device.index, std::max(0.0, free), std::max(0.0, peak_bytes - free)});
  }
  return room;
}

std::string room_text(const std::vector<RoomOnDevice>& room, const std::string& reasons) {
  std::string out;
  if (!reasons.empty()) out += fmt::format("  no GPU found to compare with: {}\n", reasons);
  for (const RoomOnDevice& one : room)
    out += fmt::format(
        "  GPU {}: {} free: {}\n", one.index ? std::to_string(*one.index) : one.id, format_bytes(one.free_bytes),
        one.short_bytes > 0 ? fmt::format("{} short of its highest use so far", format_bytes(one.short_bytes))
                            : "room for its highest use so far");
  return out;
}

int of_command(const ProgramsOptions& options, const std::string& store, const SourcesConfig& sources,
               Console& console) {
  const auto runs = earlier_runs(options.command, store, options.traces);
  if (!runs) {
    console.error("cannot determine what it needed: " + runs.error().message);
    return 2;
  }
  if (!runs->any()) {
    console.error(
        "no finished run of exactly this command line is known; 'vramtrack programs' "
        "lists the known programs");
    return 2;
  }
  std::string reasons;
  const std::vector<RoomOnDevice> room = room_for(runs->most_bytes(), sources, console, reasons);
  if (options.json) {
    if (!reasons.empty()) console.warn("no GPU found to compare with: " + reasons);
    Program program = runs->watched.value_or(Program{});
    if (!runs->watched) program.name = runs->name;
    console.write(program_json(program, runs->traced_bytes, room));
  } else {
    console.write(printable_lines(earlier_runs_text(*runs) + room_text(room, reasons)));
  }
  return std::any_of(room.begin(), room.end(), [](const RoomOnDevice& one) { return one.short_bytes <= 0; }) ? 0 : 1;
}

int programs(const ProgramsOptions& options, const LayeredConfig& layers, Console& console) {
  const std::string store = options.store.empty() ? store_path(layers.config().store) : options.store;
  if (const Status given = check_traces(options.command, options.traces); !given) {
    console.error(given.error().message);
    return 2;
  }
  if (!options.command.empty() && options.forget.empty())
    return of_command(options, store, layers.config().sources, console);
  const auto reader = StoreReader::open(store);
  if (!reader) {
    console.error("cannot list programs: " + reader.error().message);
    return 2;
  }
  const auto known = (*reader)->programs();
  if (!known) {
    console.error("cannot list programs: " + known.error().message);
    return 2;
  }
  if (!options.forget.empty()) return forget(options, store, *known, console);
  if (options.json) {
    for (const Program& program : *known) console.write(program_json(program));
  } else if (known->empty()) {
    console.write("no program is known yet: 'vramtrack watch' remembers a program when one of its runs ends\n");
  } else {
    const LocalTimes local = console.local_times();
    console.write(table(*known));
  }
  return 0;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ProgramsOptions>();
  arguments
      .operands("COMMAND", "Compare what earlier runs of this command needed with what is free now",
                text(options->command))
      .program();
  add_json(arguments, options->json);
  arguments
      .repeated("--trace", "FILE", "A 'vramtrack run' trace of the command; its peak counts, too",
                text(options->traces))
      .file();
  arguments.option("--store", "FILE", "The store to read (default: this user's store)", text(options->store)).file();
  arguments.option("--forget", "ID", "Forget the program whose id begins with this, or all", text(options->forget))
      .in_manual("Its next run is then judged like a first run.");
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return configured<ProgramsOptions>(options, programs);
}

}  // namespace

const CommandInfo programs_command{
    "programs", "List what is remembered about each program's earlier runs: warm-up, level, leaks",
    "Examples:\n"
    "  vramtrack programs                      what the judge compares new runs with\n"
    "  vramtrack programs -- python train.py   is there room for this command?\n"
    "  vramtrack programs --trace vramtrack.python.4242.trace -- python train.py\n"
    "  vramtrack programs --json               with the curve of each run\n"
    "  vramtrack programs --forget 3f9a01bc    after a program has changed\n"
    "Commands are not stored with programs, only a hash of them and the names of the executable and its script.\n"
    "Exit: 0 listed, forgotten, or there is room for the command, 1 there is none, 2 failed.",
    declare};

}  // namespace vramtrack::cli
