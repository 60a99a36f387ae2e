#include "store/uptime.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace vramtrack {
namespace {

std::int64_t ns_of(Timestamp time) {
  return time.time_since_epoch().count();
}

/// The machine's uptime between the two marks: for another boot, since that boot began; 0 in the wrong order.
std::int64_t passed_ns(const ClockMark& earlier, const ClockMark& later) {
  const bool same_boot = earlier.boot_id == later.boot_id;
  const Duration passed = same_boot ? later.since_boot - earlier.since_boot : later.since_boot;
  return std::max<std::int64_t>(passed.count(), 0);
}

/// Values that a damaged file may contain are excluded: with dates from 1970 to 2116, to which Linux lets a clock be
/// set and which are half of what a Timestamp holds, no sum or difference overflows.
bool plausible(const ClockMark& mark) {
  const auto within = [](std::int64_t ns) { return ns >= 0 && ns <= std::numeric_limits<std::int64_t>::max() / 2; };
  return within(mark.since_boot.count()) && within(mark.changed_at.count()) && mark.changed_at <= mark.since_boot &&
         within(ns_of(mark.wall)) && within(ns_of(mark.stamp));
}

/// The sum as the file has it, if its rows confirm it. They carry the sum of their time, and follow a mark within a
/// block. A sum that is further ahead is damaged, or its rows were never written: counting then continues from theirs,
/// because counting too little only keeps rows longer.
Result<std::int64_t> borne_out(sql::Database& database, std::int64_t uptime_ns) {
  const auto rows_ns = database.integer(
      "SELECT max(uptime_ns) FROM (SELECT max(uptime_ns) AS uptime_ns FROM chunk UNION ALL SELECT max(uptime_ns) FROM "
      "rollup UNION ALL SELECT max(uptime_ns) FROM event)");
  if (!rows_ns) return fail(rows_ns.error());
  const std::int64_t newest_ns = std::max<std::int64_t>(rows_ns->value_or(0), 0);
  if (uptime_ns <= newest_ns || uptime_ns - newest_ns <= Uptime::kAheadOfRows.count())
    return std::max<std::int64_t>(uptime_ns, 0);
  return newest_ns;
}

}  // namespace

Result<Uptime> Uptime::open(sql::Database& database) {
  auto put = database.prepare(
      "INSERT OR REPLACE INTO clock(id,boot_id,since_boot_ns,wall_ns,stamp_ns,changed_at_ns,uptime_ns) "
      "VALUES(0,?,?,?,?,?,?)");
  if (!put) return fail(put.error());
  Uptime uptime(std::move(*put));
  auto query =
      database.prepare("SELECT boot_id,since_boot_ns,wall_ns,stamp_ns,changed_at_ns,uptime_ns FROM clock WHERE id=0");
  if (!query) return fail(query.error());
  const auto row = query->step();
  if (!row) return fail(row.error());
  if (*row) {
    uptime.last_ = ClockMark{.boot_id = std::string(query->text(0)),
                             .since_boot = Duration(query->integer(1)),
                             .wall = Timestamp(Duration(query->integer(2))),
                             .stamp = Timestamp(Duration(query->integer(3))),
                             .changed_at = Duration(query->integer(4))};
    const auto sum = borne_out(database, query->integer(5));
    if (!sum) return fail(sum.error());
    uptime.uptime_ns_ = *sum;
    // A mark without a machine's boot comes from a clock that has ended.
    if (uptime.last_->boot_id.empty() || !plausible(*uptime.last_)) uptime.last_.reset();
    uptime.written_ = uptime.last_;
    uptime.last_is_read_ = true;
  }
  return uptime;
}

void Uptime::advance(const ClockMark& mark) {
  std::int64_t passed = last_ ? passed_ns(*last_, mark) : 0;
  // A damaged boot id or time since boot would add all the time since boot. The time of day can only reduce that.
  if (last_ && last_is_read_) passed = std::clamp<std::int64_t>(ns_of(mark.wall) - ns_of(last_->wall), 0, passed);
  if (__builtin_add_overflow(uptime_ns_, passed, &uptime_ns_)) uptime_ns_ = std::numeric_limits<std::int64_t>::max();
  last_ = mark;
  last_is_read_ = false;
}

Status Uptime::write(bool now) {
  writing_ = written_;
  if (!last_ || last_ == written_) return {};
  const bool due = !written_ || written_->boot_id != last_->boot_id || written_->changed_at != last_->changed_at ||
                   passed_ns(*written_, *last_) >= kWriteEvery.count();
  if (!due && !now) return {};
  put_.bind(1, std::string_view(last_->boot_id)).bind(2, last_->since_boot.count()).bind(3, ns_of(last_->wall));
  put_.bind(4, ns_of(last_->stamp)).bind(5, last_->changed_at.count()).bind(6, uptime_ns_);
  if (auto s = put_.run(); !s) return s;
  writing_ = last_;
  return {};
}

}  // namespace vramtrack
