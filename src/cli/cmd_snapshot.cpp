// snapshot: shows what holds memory, what grew and what filled it, from traces in any format of trace/formats.def.
#include "cli/cmd_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.hpp"
#include "nsys/export.hpp"
#include "trace/compare.hpp"
#include "trace/format.hpp"
#include "trace/usage.hpp"

namespace vramtrack::cli {

SnapshotOutput::SnapshotOutput(Console& console, const std::string& path) : console_(console) {
  if (!path.empty()) file_.emplace(OutputFile::open(path));
}

bool SnapshotOutput::write(std::string_view text) {
  if (file_) return *file_ && (*file_)->write(text);
  console_.write(text);
  return !console_.gone() && !console_.failed();
}

Status SnapshotOutput::close() {
  if (!file_) return {};
  if (!*file_) return vramtrack::fail(file_->error());
  return (*file_)->finish();
}

Status SnapshotWork::write(std::string_view text) const {
  SnapshotOutput out(console, options.output);
  out.write(text);
  return out.close();
}

int SnapshotWork::fail(const std::string& why) const {
  console.error(why);
  return kSnapshotFailed;
}

int SnapshotWork::finish(std::string_view text, int exit_code) const {
  const Status written = write(text);
  return written ? exit_code : fail(written.error().message);
}

namespace {

/// The devices that --device may name, for the error if it names another.
std::string devices_words(const std::vector<std::uint32_t>& known) {
  return known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "));
}

/// Replays a stream as it is read; its snapshot has only a name.
Status replay(SnapshotWork& work, trace::TraceInput input) {
  trace::Snapshot named;
  named.file = input.bytes.name();
  auto streams = trace::replay_stream(std::move(input), work.symbols, timeline_options(work.options));
  if (!streams) return fail(streams.error());
  std::string known;
  for (const trace::StreamReplay& stream : *streams) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", stream.device());
    for (const std::string& note : stream.live().notes(stream.device()))
      work.console.warn(fmt::format("{}: {}", named.file, note));
  }
  std::erase_if(*streams,
                [&](const trace::StreamReplay& s) { return work.device().value_or(s.device()) != s.device(); });
  if (streams->empty())
    return fail(work.device() ? fmt::format("--device {}: {} has no data for this device; devices with data: {}",
                                            *work.device(), named.file, known.empty() ? "none" : known)
                              : named.file + ": has no event");
  work.snapshots.push_back(std::move(named));
  work.streams = std::move(*streams);
  return {};
}

/// Replays the events of the one snapshot that was read.
Status replay_events(SnapshotWork& work) {
  const trace::Snapshot& snapshot = work.snapshots.front();
  if (snapshot.is_heap_profile)
    return fail(
        fmt::format("snapshot leaks compares snapshots, and {} shows one moment: name at least two, in the "
                    "order they were taken",
                    snapshot.file));
  work.streams = trace::replay_events(snapshot, work.symbols);
  std::erase_if(work.streams,
                [&](const trace::StreamReplay& s) { return work.device().value_or(s.device()) != s.device(); });
  if (work.streams.empty()) return fail(snapshot.file + " has too few events to detect growth");
  return {};
}

Status read(SnapshotWork& work, trace::TraceInput input, const std::string& file, bool keep_events) {
  auto snapshot = trace::read_trace(std::move(input), work.symbols, {keep_events});
  if (!snapshot) return fail(snapshot.error().during("cannot read the snapshot"));
  if (work.options.host) {
    if (!snapshot->has_host_memory())
      return fail(
          fmt::format("--host: {} has no pinned host memory: record it with "
                      "torch.cuda.memory._record_memory_history(record_pinned_host_memory=True) (PyTorch 2.12 "
                      "and newer)",
                      file));
    snapshot->swap_host();
  }
  const std::vector<std::uint32_t> known = trace::known_devices(*snapshot);
  if (work.device() && std::find(known.begin(), known.end(), *work.device()) == known.end())
    return fail(fmt::format("--device {}: {} has no data for this device; devices with data: {}", *work.device(), file,
                            devices_words(known)));
  for (const std::string& note : snapshot->notes) work.console.warn(fmt::format("{}: {}", file, note));
  work.snapshots.push_back(std::move(*snapshot));
  return {};
}

/// Formats in addition to those of trace/formats.def.
constexpr const trace::TraceFormatInfo* kMoreFormats[] = {&nsys::export_trace_format};

int run(const SnapshotOptions& options, const SnapshotVerb& verb, Console& console) {
  SnapshotWork work{options, console, {}, {}, {}};
  const Progress progress(console, options.files);
  for (const std::string& file : options.files) {
    auto input = trace::open_trace(file, kMoreFormats);
    if (!input) return work.fail("cannot read the snapshot: " + input.error().message);
    const bool is_stream = input->format->stream != nullptr;
    const bool is_alone = options.files.size() < verb.least_files;
    if (is_alone && !(verb.replays_streams && (is_stream || input->format->has_all_events)))
      return work.fail(
          fmt::format("snapshot {} compares snapshots: name at least two, in the order they were taken", verb.name));
    const bool replays = is_stream && verb.replays_streams && options.files.size() == 1;
    Status done =
        replays ? replay(work, std::move(*input)) : read(work, std::move(*input), file, verb.keeps_events || is_alone);
    if (done && is_alone && !is_stream) done = replay_events(work);
    if (!done) return work.fail(done.error().message);
  }
  return verb.run(work);
}

void add_device_and_output(Arguments& arguments, SnapshotOptions& into) {
  arguments.flag("--host", "Pinned host memory instead of device memory", into.host);
  arguments.option(
      "--device", "NUMBER", "Only this device",
      whole_number([&into](std::uint64_t number) { into.device = static_cast<std::uint32_t>(number); }, 0, UINT32_MAX));
  arguments.output(into.output);
}

constexpr const CommandInfo* kVerbs[] = {&snapshot_summary_verb, &snapshot_leaks_verb,      &snapshot_timeline_verb,
                                         &snapshot_oom_verb,     &snapshot_flamegraph_verb, &snapshot_page_verb,
                                         &snapshot_export_verb};

}  // namespace

void add_snapshot_files(Arguments& arguments, SnapshotOptions& into) {
  arguments
      .operands("FILE",
                "Snapshots of PyTorch, heap profiles of JAX (pprof), profiles of XProf (*.xplane.pb, memory_profile), "
                "allocation event logs or exports of Nsight Systems, also .gz and .zst; - is standard input",
                text(into.files))
      .required()
      .file();
  add_device_and_output(arguments, into);
}

void add_snapshot_file(Arguments& arguments, SnapshotOptions& into) {
  arguments
      .operand("FILE",
               "A snapshot of PyTorch, a heap profile of JAX (pprof), a profile of XProf (*.xplane.pb, "
               "memory_profile), an allocation event log or an export of Nsight Systems, also .gz or .zst; - is "
               "standard input",
               text(into.files))
      .required()
      .file();
  add_device_and_output(arguments, into);
}

void add_snapshot_json(Arguments& arguments, SnapshotOptions& into) {
  arguments.json("Print one JSON document (docs/snapshot.md)", into.json);
}

void add_snapshot_sites(Arguments& arguments, SnapshotOptions& into) {
  constexpr std::uint64_t kMostSites = 100'000;
  arguments.option(
      "--top", "NUMBER", "How many sites to show (default 10)",
      whole_number([&into](std::uint64_t sites) { into.top = static_cast<std::uint32_t>(sites); }, 1, kMostSites));
}

std::shared_ptr<SnapshotOptions> snapshot_sites_options(Arguments& arguments) {
  auto options = std::make_shared<SnapshotOptions>();
  add_snapshot_files(arguments, *options);
  add_snapshot_json(arguments, *options);
  add_snapshot_sites(arguments, *options);
  return options;
}

void add_export_format(Arguments& arguments, std::string& into) {
  const std::vector<std::string> formats = {"pprof", "speedscope", "folded", "chrome", "csv"};
  arguments
      .option("--format", "NAME", "Write as: pprof, speedscope, folded (live bytes by stack), chrome, csv (events)",
              one_of(formats, into))
      .required()
      .completes(formats);
}

Runner snapshot_runner(std::shared_ptr<const SnapshotOptions> options, SnapshotVerb verb) {
  return [options = std::move(options), verb](Console& console) { return run(*options, verb, console); };
}

const CommandInfo snapshot_command{
    "snapshot", "Read memory snapshots of PyTorch and JAX: what holds the memory, what grew, what filled it",
    "Examples:\n"
    "  vramtrack snapshot summary memory_snapshot.pickle\n"
    "  vramtrack snapshot leaks step100.pickle step200.pickle step300.pickle\n"
    "torch.cuda.memory._dump_snapshot(FILE) makes a snapshot, with stacks after "
    "torch.cuda.memory._record_memory_history(); in JAX, "
    "jax.profiler.save_device_memory_profile(FILE).",
    nullptr, kVerbs};

}  // namespace vramtrack::cli
