#include "store/uptime.hpp"

#include <gtest/gtest.h>

#include "store/schema.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;

class UptimeTest : public StoreTest {
 protected:
  UptimeTest() : database_(*sql::Database::open(config.path, sql::Database::Mode::write)) {
    EXPECT_TRUE(prepare_schema(database_, config.path));
  }
  /// Reads it like another run of vramtrack.
  Uptime reopen() { return *Uptime::open(database_); }
  static std::int64_t seconds(const Uptime& uptime) { return uptime.ns() / kSecond; }
  static ClockMark mark(const std::string& boot_id, std::int64_t since_boot_s) {
    ClockMark mark = mark_s(since_boot_s);
    mark.boot_id = boot_id;
    return mark;
  }
  static void keep(Uptime& uptime, bool now = true) {
    ASSERT_TRUE(uptime.write(now));
    uptime.committed();
  }

  sql::Database database_;
};

TEST_F(UptimeTest, GoesOnWithTheTimeSinceBootWhateverTheTimeOfDayIs) {
  Uptime uptime = reopen();
  for (std::int64_t t = 100; t <= 400; t += 100) {
    ClockMark now = mark("boot-1", t);
    now.wall = at_s(t * 1000);
    now.stamp = at_s(-t);
    uptime.advance(now);
  }
  EXPECT_EQ(seconds(uptime), 300);
}

TEST_F(UptimeTest, GoesOnOverARestartOfTheProgramAndOfTheMachine) {
  {
    Uptime uptime = reopen();
    uptime.advance(mark("boot-1", 100));
    uptime.advance(mark("boot-1", 200));
    keep(uptime);
  }
  {
    Uptime uptime = reopen();
    EXPECT_EQ(uptime.last(), mark("boot-1", 200));
    uptime.advance(mark("boot-1", 350));
    EXPECT_EQ(seconds(uptime), 250) << "150 s passed between the two runs";
    keep(uptime);
  }
  Uptime uptime = reopen();
  ClockMark booted = mark("boot-2", 10);
  booted.wall = at_s(500);
  uptime.advance(booted);
  EXPECT_EQ(seconds(uptime), 260) << "the time for which the machine was off is not known";
  uptime.advance(mark("boot-2", 15));
  EXPECT_EQ(seconds(uptime), 265);
}

TEST_F(UptimeTest, NeverFalls) {
  Uptime uptime = reopen();
  uptime.advance(mark("boot-1", 100));
  uptime.advance(mark("boot-1", 160));
  uptime.advance(mark("boot-1", 10));
  EXPECT_EQ(seconds(uptime), 60);
}

TEST_F(UptimeTest, OfAClockThatIsNoMachinesLastsAsLongAsItsRun) {
  {
    Uptime uptime = reopen();
    uptime.advance(mark("", 100));
    uptime.advance(mark("", 200));
    EXPECT_EQ(seconds(uptime), 100);
    keep(uptime);
  }
  Uptime uptime = reopen();
  EXPECT_EQ(uptime.last(), std::nullopt);
  uptime.advance(mark("", 900));
  EXPECT_EQ(seconds(uptime), 100);
}

TEST_F(UptimeTest, IsWrittenOnceAMinuteAndWhenTheClockWasSet) {
  Uptime uptime = reopen();
  uptime.advance(mark("boot-1", 100));
  keep(uptime, false);
  EXPECT_EQ(reopen().last(), mark("boot-1", 100)) << "the first is written at once";
  uptime.advance(mark("boot-1", 159));
  keep(uptime, false);
  EXPECT_EQ(reopen().last(), mark("boot-1", 100));
  uptime.advance(mark("boot-1", 160));
  keep(uptime, false);
  EXPECT_EQ(reopen().last(), mark("boot-1", 160));
  ClockMark set = mark("boot-1", 161);
  set.changed_at = set.since_boot;
  uptime.advance(set);
  keep(uptime, false);
  EXPECT_EQ(reopen().last(), set);
}

TEST_F(UptimeTest, AMarkThatNoClockCanHaveMadeIsNotCountedWith) {
  for (const char* damage : {"since_boot_ns=-1", "since_boot_ns=9223372036854775807", "wall_ns=-1",
                             "stamp_ns=9223372036854775807", "changed_at_ns=9000000000000000", "boot_id=''"}) {
    Uptime uptime = reopen();
    uptime.advance(mark("boot-1", 100));
    keep(uptime);
    ASSERT_TRUE(database_.exec((std::string("UPDATE clock SET ") + damage).c_str()));
    EXPECT_EQ(reopen().last(), std::nullopt) << damage;
  }
  ASSERT_TRUE(database_.exec("UPDATE clock SET uptime_ns=-5"));
  EXPECT_EQ(reopen().ns(), 0);
}

/// Otherwise a damaged sum would make all rows look old, and retention would delete them.
TEST_F(UptimeTest, ASumThatIsFarAheadOfTheRowsGoesOnFromTheirs) {
  const auto sum = [&](std::int64_t uptime_s) {
    const std::string text = std::to_string(uptime_s * kSecond);
    EXPECT_TRUE(database_.exec(("UPDATE clock SET uptime_ns=" + text).c_str()));
    return seconds(reopen());
  };
  Uptime uptime = reopen();
  uptime.advance(mark("boot-1", 100));
  keep(uptime);
  EXPECT_EQ(sum(16 * 60), 16 * 60) << "no block is written yet";
  EXPECT_EQ(sum(16 * 60 + 1), 0);
  EXPECT_EQ(sum((1LL << 62U) / kSecond), 0);
  ASSERT_TRUE(database_.exec("INSERT INTO chunk VALUES(1,0,0,1,x'',5000000000000)"));
  EXPECT_EQ(sum(5000 + 16 * 60), 5000 + 16 * 60);
  EXPECT_EQ(sum(5000 + 16 * 60 + 1), 5000);
  ASSERT_TRUE(database_.exec("INSERT INTO event VALUES(1,0,'note','',0,0,0,'',6000000000000)"));
  EXPECT_EQ(sum(5000 + 16 * 60 + 1), 5000 + 16 * 60 + 1);
  ASSERT_TRUE(database_.exec("UPDATE chunk SET uptime_ns=9223372036854775807"));
  EXPECT_EQ(sum(7000), 7000) << "a damaged row is not counted with";
  sum(9'223'372'036);
  Uptime most = reopen();
  most.advance(mark("boot-1", 110));
  EXPECT_EQ(most.ns(), std::numeric_limits<std::int64_t>::max()) << "and does not overflow";
}

TEST_F(UptimeTest, FromOneRunToTheNextItGoesNoFasterThanTheTimeOfDay) {
  Uptime first = reopen();
  first.advance(mark("boot-1", 1000));
  keep(first);
  ASSERT_TRUE(database_.exec("UPDATE clock SET boot_id='other'"));
  Uptime uptime = reopen();
  uptime.advance(mark("boot-1", 1030));
  EXPECT_EQ(seconds(uptime), 30) << "not 1030 s, the time since boot";
  ClockMark set = mark("boot-1", 1040);
  set.wall = at_s(0);
  uptime.advance(set);
  EXPECT_EQ(seconds(uptime), 40) << "of this run the time since boot alone tells";
}

}  // namespace
}  // namespace vramtrack
