#include "past.hpp"

#include "again.hpp"
#include "session.hpp"

namespace vramtrack::accuracy {
namespace {

/// The longest scenario has 400 days.
constexpr double kApart_s = 500 * 86400.0;

}  // namespace

ProgramMemory Past::memory(double before_s) {
  ProgramMemory memory;
  memory.find = [this](const ProgramIdentity& identity) -> std::optional<Program> {
    const auto known = programs_.find(identity.text);
    return known == programs_.end() ? std::nullopt : std::optional(known->second);
  };
  memory.put = [this](const ProgramIdentity& identity, const Program& program) { programs_[identity.text] = program; };
  memory.program_on = [](const SeriesKey&, Timestamp) { return "whatever runs there"; };
  memory.shift = -from_seconds(before_s);
  return memory;
}

void play_earlier_run(const Trace& trace, Earlier how, std::size_t number, std::size_t runs_ago, const Config& config,
                      Past& past) {
  const Trace run = earlier_run(trace, how, number);
  Catalog catalog;
  const auto source = sim::make_simulation(*run.scenario, catalog);
  Listing listing(run, catalog);
  Engine engine(config, catalog);
  engine.remember(past.memory(kApart_s * static_cast<double>(runs_ago)));
  for (;;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    engine.ingest(listing.pass(batch));
    if (!progress || *progress == Progress::end) break;
  }
  engine.finish();
  engine.end_runs();
}

}  // namespace vramtrack::accuracy
