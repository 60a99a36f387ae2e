#include "store/program_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr double kStepsPerOctave = 1024;
constexpr std::uint8_t kSeenFromStart = 0x80;
constexpr std::int64_t kMillisecondNs = 1'000'000;

/// A level as its logarithm, in steps of 0.07 %: 0 means nothing, as does everything below half a kilobyte.
std::uint64_t level_code(double bytes) {
  return static_cast<std::uint64_t>(std::lround(kStepsPerOctave * std::log2(1 + std::max(0.0, bytes) / kMiB)));
}
double level_of(std::uint64_t code) {
  return (std::exp2(static_cast<double>(code) / kStepsPerOctave) - 1) * kMiB;
}

std::uint64_t stored(Timestamp time) {
  return zigzag(static_cast<std::uint64_t>(time.time_since_epoch().count() / kMillisecondNs));
}
Timestamp time_of(std::uint64_t code) {
  const auto ms = static_cast<std::int64_t>(unzigzag(code));
  constexpr std::int64_t kMost = INT64_MAX / kMillisecondNs;
  return Timestamp(Duration(std::clamp(ms, -kMost, kMost) * kMillisecondNs));
}

std::optional<FinishedRun> decode_run(ByteReader& in) {
  const auto head = in.byte();
  const auto points = in.byte();
  const auto begin = in.varint();
  const auto end = in.varint();
  const auto warm_up_ms = in.varint();
  const auto settled = in.varint();
  const auto peak = in.varint();
  constexpr std::uint64_t kMostCode = 40 * 1024;  // 2^40 MiB
  if (!head || !points || !begin || !end || !warm_up_ms || !settled || !peak) return std::nullopt;
  const auto outcome = static_cast<std::uint8_t>(*head & ~kSeenFromStart);
  if (outcome > static_cast<std::uint8_t>(RunOutcome::out_of_memory) || *points > FinishedRun::kPoints ||
      *settled > kMostCode || *peak > kMostCode)
    return std::nullopt;
  FinishedRun run;
  run.outcome = static_cast<RunOutcome>(outcome);
  run.seen_from_start = (*head & kSeenFromStart) != 0;
  run.begin = time_of(*begin);
  run.end = time_of(*end);
  run.warm_up_s = static_cast<double>(*warm_up_ms) / 1000;
  run.settled_bytes = level_of(*settled);
  run.peak_bytes = level_of(*peak);
  run.points = *points;
  std::uint64_t code = 0;
  for (std::size_t i = 0; i < run.points; ++i) {
    const auto more = in.varint();
    if (!more || *more > kMostCode || (code += *more) > kMostCode) return std::nullopt;
    run.floor_bytes[i] = static_cast<float>(level_of(code));
  }
  return run;
}

}  // namespace

Bytes encode_runs(std::span<const FinishedRun> runs) {
  Bytes out{kVersion};
  put_varint(out, runs.size());
  for (const FinishedRun& run : runs) {
    out.push_back(
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(run.outcome) | (run.seen_from_start ? kSeenFromStart : 0)));
    out.push_back(static_cast<std::uint8_t>(run.points));
    put_varint(out, stored(run.begin));
    put_varint(out, stored(run.end));
    put_varint(out, static_cast<std::uint64_t>(std::llround(std::max(0.0, run.warm_up_s) * 1000)));
    put_varint(out, level_code(run.settled_bytes));
    put_varint(out, level_code(run.peak_bytes));
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < run.points; ++i) {  // they never fall
      const std::uint64_t code = std::max(before, level_code(static_cast<double>(run.floor_bytes[i])));
      put_varint(out, code - before);
      before = code;
    }
  }
  return out;
}

Result<std::vector<FinishedRun>> decode_runs(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  const auto version = in.byte();
  if (!version || *version != kVersion) return fail("runs of an unknown version");
  const auto count = in.varint();
  if (!count || *count > Program::kMostRuns) return fail("damaged runs: their number");
  std::vector<FinishedRun> runs;
  for (std::uint64_t i = 0; i < *count; ++i) {
    auto run = decode_run(in);
    if (!run) return fail(fmt::format("damaged runs: number {}", i));
    runs.push_back(*run);
  }
  if (in.left() > 0) return fail("damaged runs: more bytes than runs");
  return runs;
}

Result<std::vector<Program>> select_programs(sql::Database& database, std::optional<std::string_view> key) {
  auto query = database.prepare(std::string("SELECT key,name,user,first_ns,last_ns,runs,leaked,out_of_memory,recent "
                                            "FROM program ") +
                                (key ? "WHERE key=?" : "ORDER BY last_ns DESC,key"));
  if (!query) return fail(query.error());
  if (key) query->bind(1, *key);
  std::vector<Program> programs;
  Result<bool> row = false;
  while ((row = query->step()) && *row) {
    Program p;
    p.key = query->text(0);
    p.name = query->text(1);
    p.user = query->text(2);
    p.first = Timestamp(Duration(query->integer(3)));
    p.last = Timestamp(Duration(query->integer(4)));
    p.runs = static_cast<std::uint64_t>(query->integer(5));
    p.leaked = static_cast<std::uint64_t>(query->integer(6));
    p.out_of_memory = static_cast<std::uint64_t>(query->integer(7));
    auto runs = decode_runs(query->blob(8));
    if (!runs) return fail(runs.error().during("program " + p.name));
    p.recent = std::move(*runs);
    programs.push_back(std::move(p));
  }
  if (!row) return fail(row.error());
  return programs;
}

Status keep_last_programs(sql::Database& database) {
  const auto count = database.integer("SELECT count(*) FROM program");
  if (!count) return fail(count.error());
  const std::int64_t excess = count->value_or(0) - kMostPrograms;
  if (excess <= 0) return {};
  return database.exec(
      fmt::format("DELETE FROM program WHERE key IN (SELECT key FROM program ORDER BY last_ns,key LIMIT {})", excess)
          .c_str());
}

Status put_program(sql::Database& database, const Program& program) {
  auto put = database.prepare("INSERT OR REPLACE INTO program VALUES(?,?,?,?,?,?,?,?,?)");
  if (!put) return fail(put.error());
  const Bytes runs = encode_runs(program.recent);
  put->bind(1, std::string_view(program.key)).bind(2, std::string_view(program.name));
  put->bind(3, std::string_view(program.user));
  put->bind(4, std::int64_t{program.first.time_since_epoch().count()});
  put->bind(5, std::int64_t{program.last.time_since_epoch().count()});
  put->bind(6, static_cast<std::int64_t>(program.runs)).bind(7, static_cast<std::int64_t>(program.leaked));
  put->bind(8, static_cast<std::int64_t>(program.out_of_memory));
  put->bind(9, std::span<const std::uint8_t>(runs));
  return put->run();
}

}  // namespace vramtrack
