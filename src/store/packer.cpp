#include "store/packer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/out_of_memory.hpp"
#include "core/time.hpp"
#include "core/units.hpp"
#include "store/rollup.hpp"

namespace vramtrack {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kMinuteS = 60, kHourS = 3600;
constexpr int kPackLevel = 5;
/// Rows that retention may delete per block: more than a block adds, so that it catches up, yet bounded.
constexpr int kExpirePerBlock = 32;
/// The same for events, of which a block may hold thousands if jobs are short: 18 per second. Some 10 ms at most.
constexpr int kExpireEventsPerBlock = 16384;
constexpr int kTrimPerBlock = 64;
constexpr std::int64_t kHoursToMerge = 60;  ///< parts of hours, collected over about half a day
constexpr std::size_t kCellsPerChunk = 32768;
constexpr std::int64_t kVacuumPages = 128;

/// The uptime before which rows are older than `seconds`; 0, before which there are none, if the uptime is shorter.
std::int64_t older_than(std::int64_t uptime_ns, double seconds) {
  return std::max<std::int64_t>(uptime_ns - std::min(from_seconds(seconds).count(), uptime_ns), 0);
}

}  // namespace

Result<Packer> Packer::open(sql::Database& database, const StoreConfig& config, std::vector<std::string>& notices) {
  Packer packer(database, config, notices);
  struct Text {
    sql::Statement* statement;
    const char* sql;
  };
  for (const Text& text : {
           Text{&packer.next_row_,
                "SELECT seq,t_min_ns,t_max_ns,samples,data FROM journal WHERE seq>? ORDER BY seq LIMIT 256"},
           Text{&packer.put_chunk_, "INSERT INTO chunk(t_min_ns,t_max_ns,samples,data,uptime_ns) VALUES(?,?,?,?,?)"},
           Text{&packer.put_rollup_,
                "INSERT INTO rollup(resolution_s,merged,t_min_ns,t_max_ns,data,uptime_ns) VALUES(?,?,?,?,?,?)"},
           Text{&packer.put_extent_,
                "UPDATE series SET first_ns=min(coalesce(first_ns,?1),?1), last_ns=max(coalesce(last_ns,?2),?2) WHERE "
                "id=?3"},
           Text{&packer.delete_journal_, "DELETE FROM journal WHERE seq<=?"},
       }) {
    auto prepared = database.prepare(text.sql);
    if (!prepared) return fail(prepared.error());
    *text.statement = std::move(*prepared);
  }
  return packer;
}

bool Packer::full() const {
  if (block_.empty()) return false;
  std::int64_t span = 0;
  return __builtin_sub_overflow(block_.max_ns(), block_.min_ns(), &span) || span >= kBlockSpanNs ||
         block_.encoded_bytes() >= kBlockBytes;
}

Status Packer::advance(Compressor& compressor, std::int64_t uptime_ns) {
  uptime_ns_ = uptime_ns;
  bool whole = false;
  auto status = or_out_of_memory([&] {
    auto advanced = advance_or_throw(compressor);
    whole = true;
    return advanced;
  });
  if (whole) return status;
  // A row that was only partly taken in would be deleted as if it had been packed: all are read again.
  block_.clear();
  last_seq_ = 0;
  return status;
}

Status Packer::advance_or_throw(Compressor& compressor) {
  if (vacuum_)
    if (auto s = give_back_space(); !s) return s;
  while (true) {
    const std::int64_t before_seq = last_seq_;
    if (auto s = read_journal(); !s) return s;
    if (full()) {
      if (auto s = pack(compressor); !s) return s;
    } else if (last_seq_ == before_seq) {
      return {};
    }
  }
}

Status Packer::read_journal() {
  const sql::ResetAtEnd reset_at_end(next_row_);
  next_row_.bind(1, last_seq_);
  Result<bool> row = false;
  while (!full() && (row = next_row_.step()) && *row) {
    last_seq_ = next_row_.integer(0);
    const auto chunk = decode_chunk(next_row_.blob(4));
    if (!chunk || chunk->columns != 1) {
      notices_->push_back(fmt::format("store: journal row {} ({} samples from {}) is damaged and skipped: {}",
                                      last_seq_, next_row_.integer(3),
                                      iso8601(Timestamp(Duration(next_row_.integer(1)))),
                                      chunk ? "not a chunk of samples" : chunk.error().message));
      continue;
    }
    // Tick by tick, as they arrived: series share their ticks again.
    std::vector<std::uint32_t> next(chunk->series.size(), 0);
    for (std::uint32_t tick = 0; tick < chunk->times_ns.size(); ++tick)
      for (std::size_t s = 0; s < next.size(); ++s) {
        const Chunk::Series& series = chunk->series[s];
        if (next[s] == series.count || chunk->ticks[series.first + next[s]] != tick) continue;
        block_.add(chunk->times_ns[tick], series.id, chunk->value(series, next[s]++));
      }
  }
  if (!row) return fail(row.error());
  return {};
}

Status Packer::pack(Compressor& compressor) {
  const auto data = compressor.compress(block_.payload(), kPackLevel);
  if (!data) return fail(data.error());
  auto status = sql::transaction(*database_, [&]() -> Status {
    put_chunk_.bind(1, block_.min_ns()).bind(2, block_.max_ns()).bind(3, static_cast<std::int64_t>(block_.points()));
    put_chunk_.bind(4, std::span<const std::uint8_t>(*data)).bind(5, uptime_ns_);
    if (auto s = put_chunk_.run(); !s) return s;
    if (auto s = write_extents_and_rollups(compressor); !s) return s;
    delete_journal_.bind(1, last_seq_);
    if (auto s = delete_journal_.run(); !s) return s;
    if (auto s = merge_hours(compressor); !s) return s;
    if (auto s = expire(); !s) return s;
    return keep_size();
  });
  compressor.release();  // otherwise a block's work space would stay allocated for the journal's small rows
  if (status) block_.clear();
  return status;
}

Status Packer::write_extents_and_rollups(Compressor& compressor) {
  RollupTable minutes(kMinuteS * kSecondNs), hours(kHourS * kSecondNs);
  struct Extent {
    std::uint32_t series;
    std::int64_t first, last;
  };
  std::vector<Extent> extents;
  block_.for_each([&](std::uint32_t series, std::size_t tick, std::uint64_t value) {
    const std::int64_t time_ns = block_.times_ns()[tick];
    minutes.add(time_ns, series, value);
    hours.add(time_ns, series, value);
    if (extents.empty() || extents.back().series != series) extents.push_back({series, time_ns, time_ns});
    extents.back().first = std::min(extents.back().first, time_ns);
    extents.back().last = std::max(extents.back().last, time_ns);
  });
  for (const Extent& extent : extents) {
    put_extent_.bind(1, extent.first).bind(2, extent.last).bind(3, std::int64_t{extent.series});
    if (auto s = put_extent_.run(); !s) return s;
  }
  if (auto s = write_rollup(minutes.cells(), kMinuteS, false, compressor); !s) return s;
  return write_rollup(hours.cells(), kHourS, false, compressor);
}

Status Packer::write_rollup(const std::vector<RollupCell>& cells, int resolution_s, bool merged,
                            Compressor& compressor) {
  ChunkBuilder builder(RollupTable::kColumns);
  for (std::size_t first = 0; first < cells.size(); first += kCellsPerChunk) {
    builder.clear();
    put_cells(std::span(cells).subspan(first, std::min(kCellsPerChunk, cells.size() - first)), builder);
    const auto data = compressor.compress(builder.payload(), kPackLevel);
    if (!data) return fail(data.error());
    put_rollup_.bind(1, std::int64_t{resolution_s}).bind(2, std::int64_t{merged ? 1 : 0});
    put_rollup_.bind(3, builder.min_ns()).bind(4, builder.max_ns());
    put_rollup_.bind(5, std::span<const std::uint8_t>(*data)).bind(6, uptime_ns_);
    if (auto s = put_rollup_.run(); !s) return s;
  }
  return {};
}

/// Each block leaves a part of an hour; a day's parts are merged into one chunk, because hours are kept forever.
Status Packer::merge_hours(Compressor& compressor) {
  const auto parts = database_->integer("SELECT count(*) FROM rollup WHERE resolution_s=3600 AND merged=0");
  if (!parts) return fail(parts.error());
  if (parts->value_or(0) < kHoursToMerge) return {};
  auto query = database_->prepare("SELECT id,data FROM rollup WHERE resolution_s=3600 AND merged=0");
  if (!query) return fail(query.error());
  RollupTable hours(kHourS * kSecondNs);
  std::vector<std::int64_t> damaged;
  Result<bool> row = false;
  while ((row = query->step()) && *row) {
    const auto chunk = decode_chunk(query->blob(1));
    if (!chunk || !hours.add(*chunk)) damaged.push_back(query->integer(0));
  }
  if (!row) return fail(row.error());
  query->reset();
  for (const std::int64_t id : damaged) {  // left unchanged, and kept out of the next merge
    notices_->push_back(fmt::format("store: rollup chunk {} is damaged: the hours it covers have a gap", id));
    if (auto s = database_->exec(fmt::format("UPDATE rollup SET merged=2 WHERE id={}", id).c_str()); !s) return s;
  }
  if (auto s = database_->exec("DELETE FROM rollup WHERE resolution_s=3600 AND merged=0"); !s) return s;
  return write_rollup(hours.cells(), kHourS, true, compressor);
}

/// By the uptime at which a row was written: its samples are at least that old. Their own times do not show their age,
/// because the clock may have been set. The maxima of devices' gauges are kept as long as their minutes.
Status Packer::expire() {
  const std::int64_t raw_ns = older_than(uptime_ns_, config_.raw_hours * 3600.0);
  const std::int64_t minute_ns = older_than(uptime_ns_, config_.minute_days * 86400.0);
  const std::string script = fmt::format(
      "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE uptime_ns<{0} ORDER BY uptime_ns,id LIMIT {2});"
      "DELETE FROM rollup WHERE id IN (SELECT id FROM rollup WHERE resolution_s=60 AND merged=0 AND uptime_ns<{1} "
      "ORDER BY uptime_ns,id LIMIT {2});"
      "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE uptime_ns<{1} ORDER BY uptime_ns,id LIMIT {3});"
      "DELETE FROM device_minute WHERE minute_s*{4}<min("
      "(SELECT t_min_ns FROM rollup WHERE resolution_s=60 AND merged=0 ORDER BY t_min_ns LIMIT 1),"
      "ifnull((SELECT min(t_min_ns) FROM journal)-60*{4},{5}))",
      raw_ns, minute_ns, kExpirePerBlock, kExpireEventsPerBlock, kSecondNs, INT64_MAX);
  return database_->exec(script.c_str());
}

/// The oldest row is the one written first, whatever the times of its samples are.
Result<std::int64_t> Packer::delete_oldest(std::string_view from, std::string_view where) {
  auto query = database_->prepare(fmt::format(
      "DELETE FROM {0} WHERE id=(SELECT id FROM {0} WHERE {1} ORDER BY id LIMIT 1) RETURNING t_max_ns", from, where));
  if (!query) return fail(query.error());
  const auto row = query->step();
  if (!row) return fail(row.error());
  if (!*row) return INT64_MIN;
  const std::int64_t t_max_ns = query->integer(0);
  while (true) {
    const auto more = query->step();
    if (!more) return fail(more.error());
    if (!*more) return t_max_ns;
  }
}

Status Packer::keep_size() {
  if (!(config_.max_size_mb > 0)) return {};
  const double cap_bytes = config_.max_size_mb * kMiB;
  for (int deleted = 0; deleted < kTrimPerBlock; ++deleted) {
    const auto pages = database_->integer("PRAGMA page_count");
    if (!pages) return fail(pages.error());
    const auto free_pages = database_->integer("PRAGMA freelist_count");
    if (!free_pages) return fail(free_pages.error());
    const double page_bytes = 4096;
    if (static_cast<double>(pages->value_or(0)) * page_bytes > cap_bytes ||
        free_pages->value_or(0) > std::max<std::int64_t>(64, pages->value_or(0) / 8))
      vacuum_ = true;
    // A sixteenth is left free for the journal and for the tables, between two blocks.
    if (static_cast<double>(pages->value_or(0) - free_pages->value_or(0)) * page_bytes <= cap_bytes * 15 / 16)
      return {};
    const auto notify_once = [&](bool& is_notified, std::string text) {
      if (!is_notified) notices_->push_back(std::move(text));
      is_notified = true;
    };
    auto gone = delete_oldest("chunk", "true");
    if (!gone) return fail(gone.error());
    if (*gone != INT64_MIN) {
      notify_once(
          notified_raw_,
          fmt::format(
              "store: the size cap of {} MB is reached: raw samples up to {} were dropped before their {} hours were "
              "over, and the oldest will be dropped from now on; raise store.max-size-mb to keep them",
              config_.max_size_mb, iso8601(Timestamp(Duration(*gone))), config_.raw_hours));
      continue;
    }
    gone = delete_oldest("rollup", "resolution_s=60 AND merged=0");
    if (!gone) return fail(gone.error());
    if (*gone != INT64_MIN) {
      notify_once(
          notified_minutes_,
          fmt::format("store: the size cap of {} MB is reached with no raw samples left: minute rollups up to {} were "
                      "dropped before their {} days were over; raise store.max-size-mb",
                      config_.max_size_mb, iso8601(Timestamp(Duration(*gone))), config_.minute_days));
      continue;
    }
    notify_once(notified_hours_,
                fmt::format("store: over the size cap of {} MB with only hourly rollups left; these are kept: raise "
                            "store.max-size-mb or move the file away",
                            config_.max_size_mb));
    return {};
  }
  return {};
}

Status Packer::give_back_space() {
  const auto pages = database_->integer("PRAGMA page_count");
  if (!pages) return fail(pages.error());
  const auto free_pages = database_->integer("PRAGMA freelist_count");
  if (!free_pages) return fail(free_pages.error());
  const std::int64_t spare = std::max<std::int64_t>(16, pages->value_or(0) / 16);
  const std::int64_t give = std::min(kVacuumPages, free_pages->value_or(0) - spare);
  vacuum_ = give == kVacuumPages;
  if (give <= 0) return {};
  return database_->exec(fmt::format("PRAGMA incremental_vacuum({})", give).c_str());
}

}  // namespace vramtrack
