// The table program: the remembered data about programs, written and read, and its migration.
#include "core/program.hpp"

#include "store/program_row.hpp"
#include "store/schema.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using testing::at_s;
using testing::StoreTest;

class ProgramStoreTest : public StoreTest {
 protected:
  std::vector<Program> read() {
    const auto reader = StoreReader::open(config.path);
    EXPECT_TRUE(reader);
    const auto programs = (*reader)->programs();
    EXPECT_TRUE(programs) << programs.error().message;
    return programs ? *programs : std::vector<Program>{};
  }
};

Program some_program(const std::string& key, std::size_t runs) {
  Program program;
  program.key = key;
  program.name = "python train.py";
  program.user = "ann";
  program.first = at_s(0);
  program.last = at_s(7200);
  program.runs = 40;
  program.leaked = 3;
  program.out_of_memory = 1;
  for (std::size_t i = 0; i < runs; ++i) {
    FinishedRun run;
    run.begin = at_s(static_cast<std::int64_t>(i) * 100000);
    run.end = run.begin + std::chrono::seconds{3600};
    run.outcome = static_cast<RunOutcome>(i % 4);
    run.seen_from_start = i % 2 == 0;
    run.warm_up_s = 540.25;
    run.settled_bytes = 12e9;
    run.peak_bytes = 13e9;
    run.points = 9;
    for (std::size_t p = 0; p < run.points; ++p) run.floor_bytes[p] = 1e9F * static_cast<float>(p + 1);
    program.recent.push_back(run);
  }
  return program;
}

void expect_same(const Program& one, const Program& other) {
  EXPECT_EQ(one.key, other.key);
  EXPECT_EQ(one.name, other.name);
  EXPECT_EQ(one.user, other.user);
  EXPECT_EQ(one.first, other.first);
  EXPECT_EQ(one.last, other.last);
  EXPECT_EQ(one.runs, other.runs);
  EXPECT_EQ(one.leaked, other.leaked);
  EXPECT_EQ(one.out_of_memory, other.out_of_memory);
  ASSERT_EQ(one.recent.size(), other.recent.size());
  for (std::size_t i = 0; i < one.recent.size(); ++i) {
    const FinishedRun& a = one.recent[i];
    const FinishedRun& b = other.recent[i];
    EXPECT_EQ(a.begin, b.begin);
    EXPECT_EQ(a.end, b.end);
    EXPECT_EQ(a.outcome, b.outcome);
    EXPECT_EQ(a.seen_from_start, b.seen_from_start);
    EXPECT_EQ(a.warm_up_s, b.warm_up_s);
    EXPECT_NEAR(a.settled_bytes, b.settled_bytes, a.settled_bytes * 0.001);
    EXPECT_NEAR(a.peak_bytes, b.peak_bytes, a.peak_bytes * 0.001);
    ASSERT_EQ(a.points, b.points);
    for (std::size_t p = 0; p < a.points; ++p)
      EXPECT_NEAR(a.floor_bytes[p], b.floor_bytes[p], a.floor_bytes[p] * 0.001F);
  }
}

TEST_F(ProgramStoreTest, IsReadAsItWasWritten) {
  const Program program = some_program("a", Program::kMostRuns);
  EXPECT_LT(encode_runs(program.recent).size(), 700U) << "a few hundred bytes a program";
  {
    const auto store = open();
    ASSERT_TRUE(store->remember(program));
    expect_same(program, store->program("a").value());  // not written yet
    EXPECT_FALSE(store->program("b"));
    ASSERT_TRUE(store->flush());
    expect_same(program, store->program("a").value());
  }
  ASSERT_EQ(read().size(), 1U);
  expect_same(program, read().front());
}

TEST_F(ProgramStoreTest, IsReplacedAndForgotten) {
  {
    const auto store = open();
    ASSERT_TRUE(store->remember(some_program("a", 1)));
    ASSERT_TRUE(store->flush());
    ASSERT_TRUE(store->remember(some_program("a", 2)));
    ASSERT_TRUE(store->remember(some_program("b", 2)));
  }
  ASSERT_EQ(read().size(), 2U);
  EXPECT_EQ(read().front().recent.size(), 2U);
  EXPECT_EQ(forget_programs(config.path, "a").value(), 1U);
  EXPECT_EQ(forget_programs(config.path, "a").value(), 0U);
  EXPECT_EQ(forget_programs(config.path, "").value(), 1U);
  EXPECT_TRUE(read().empty());
  EXPECT_FALSE(forget_programs(config.path + ".not-there", ""));
}

TEST_F(ProgramStoreTest, OlderStoresAreReadAndBroughtUpToDate) {
  for (const int version : {1, 2, 3}) {
    config.path = folder.file("schema" + std::to_string(version) + ".db");
    {
      auto database = sql::Database::open(config.path, sql::Database::Mode::write);
      ASSERT_TRUE(database);
      ASSERT_TRUE(prepare_schema(*database, config.path, version));
    }
    EXPECT_TRUE(read().empty());
    EXPECT_EQ(forget_programs(config.path, "").value(), 0U);
    {
      const auto store = open();
      ASSERT_TRUE(store);
      ASSERT_TRUE(store->remember(some_program("a", 1)));
    }
    EXPECT_EQ(read().size(), 1U);
  }
}

TEST_F(ProgramStoreTest, DamagedRunsAreAnErrorOrNothing) {
  Bytes bytes = encode_runs(some_program("a", 3).recent);
  ASSERT_TRUE(decode_runs(bytes));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(decode_runs(std::span(bytes).first(cut))) << cut;
  for (std::size_t i = 0; i < bytes.size(); ++i) {  // whatever it contains, it is read or refused
    Bytes damaged = bytes;
    damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ 0xff);
    (void)decode_runs(damaged);
  }
  bytes.push_back(0);
  EXPECT_FALSE(decode_runs(bytes));
}

}  // namespace
}  // namespace vramtrack
