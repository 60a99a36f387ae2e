#include "cli/run_history.hpp"

#include <optional>
#include <utility>

#include "cli/recorded.hpp"
#include "detect/experience.hpp"
#include "live/program_store.hpp"
#include "source/tick_reader.hpp"

namespace vramtrack::cli {
namespace {

/// Recordings without dates are treated as consecutive, this far apart.
constexpr std::chrono::hours kApart{24 * 365};

}  // namespace

RunHistory RunHistory::of_store(std::vector<Program> programs, std::function<Timestamp()> now) {
  RunHistory history;
  for (Program& program : programs) history.stored_.emplace(program.key, std::move(program));
  history.now_ = std::move(now);
  return history;
}

ProgramMemory RunHistory::memory() {
  ProgramMemory memory;
  memory.find = [this](const ProgramIdentity& identity) -> std::optional<Program> {
    if (const auto known = known_.find(identity.text); known != known_.end()) return known->second;
    if (stored_.empty()) return std::nullopt;
    const auto stored = stored_.find(program_key(identity));
    if (stored == stored_.end()) return std::nullopt;
    return as_known_at(stored->second, now_());
  };
  memory.put = [this](const ProgramIdentity& identity, const Program& program) { known_[identity.text] = program; };
  if (stored_.empty()) memory.program_on = [](const SeriesKey&, Timestamp) { return "whatever runs there"; };
  return memory;
}

Status RunHistory::read(const std::vector<std::string>& files, const RecordedOptions& options, const Config& config) {
  std::vector<std::string> logs;
  std::vector<RecordedPart> parts;
  for (const std::string& file : files) {
    if (Status other = refuse_trace(file); !other) return other;
    const RecordedInfo& kind = recorded_at(file);
    if (kind.most_files > 1) {
      logs.push_back(file);
      continue;
    }
    auto planned = plan_recorded(kind, {file}, options);
    if (!planned) return fail(planned.error());
    for (RecordedPart& part : *planned) parts.push_back(std::move(part));
  }
  if (!logs.empty()) {
    auto planned = plan_recorded(recorded_at(logs.front()), logs, options);
    if (!planned) return fail(planned.error());
    for (RecordedPart& part : *planned) parts.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (Status s = read_part(parts[i], config, -kApart * static_cast<int>(parts.size() - i)); !s) return s;
  return {};
}

Status RunHistory::read_part(const RecordedPart& part, const Config& config, Duration shift) {
  Catalog catalog;
  auto source = part.open(catalog);
  if (!source) return fail(source.error());
  std::optional<Engine> engine(std::in_place, config, catalog);
  ProgramMemory memory = this->memory();
  bool first = true;
  const auto end = [&] {
    engine->finish();
    engine->end_runs();
  };
  TickTaker taker;
  taker.begin_anew = [&](const Tick&) {
    end();
    engine.emplace(config, catalog);
    engine->remember(memory);
  };
  taker.take = [&](const Tick& tick) {
    if (std::exchange(first, false)) {
      memory.shift = catalog.clock_is_relative ? shift : Duration{0};
      engine->remember(memory);
    }
    engine->ingest(tick.batch);
    return true;
  };
  if (const TicksRead read = read_ticks(**source, taker); read.broken) return fail(*read.broken);
  end();
  return {};
}

}  // namespace vramtrack::cli
