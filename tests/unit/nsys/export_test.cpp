#include "nsys/export.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <random>
#include <sstream>

#include "../temp_folder.hpp"
#include "store/sqlite.hpp"
#include "trace/compare.hpp"
#include "trace/usage.hpp"

namespace vramtrack::nsys {
namespace {

using ::testing::HasSubstr;

/// The part that is read of the schema written by nsys 2024.6.2 (schema 3.16.1).
constexpr const char* kSchema = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
  memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER,
  localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER,
  importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER);
CREATE TABLE CUDA_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, unresolved INTEGER,
  originalIP INTEGER, stackDepth INTEGER NOT NULL, PRIMARY KEY (id, stackDepth));
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),
  (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static');
INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'),
  (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020'), (2, 'cuMemAlloc_v2'), (3, 'Cache::keep(int)'), (4, '/opt/job/train'),
  (5, 'main'), (6, 'load_weights'), (7, 'cudaFree_v3020'), (8, '/usr/local/cuda/lib64/libcudart.so.12.6.77');
INSERT INTO CUDA_CALLCHAINS VALUES (9, 1, 8, NULL, 0, 0), (9, 5, 4, NULL, 0, 2), (9, 3, 4, NULL, 0, 1), (8, 6, 4, NULL, 0, 0), (8, 5, 4, NULL, 0, 1);
)";
constexpr std::int64_t kPid = (1LL << 48) + (4242LL << 24);

class Export : public ::testing::Test {
 protected:
  Export() : path_(folder_.path() + "/report.sqlite") {}

  void make(const std::string& rows, const char* schema = kSchema) {
    auto database = sql::Database::open(path_, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    const Status done = database->exec(schema);
    ASSERT_TRUE(done) << done.error().message;
    const Status filled = database->exec(("BEGIN;" + rows + "COMMIT;").c_str());
    ASSERT_TRUE(filled) << filled.error().message;
  }

  static std::string event(std::int64_t start, int operation, std::uint64_t address, std::uint64_t bytes, int call = 0,
                           int kind = 2, int device = 0, std::int64_t process = kPid, const char* name = "NULL") {
    return fmt::format(
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({}, {}, {}, 1, {}, 0, {}, {}, {}, {}, {}, 7, NULL, NULL, "
        "NULL, NULL, NULL, NULL);",
        start, process, device, address, bytes, kind, operation, name, call);
  }
  static std::string call(std::int64_t start, int id, int name, int chain, std::int64_t process = kPid) {
    return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, {}, 0, {});", start,
                       start + 10, process + 77, id, name, chain);
  }

  Result<trace::Snapshot> read() {
    auto input = trace::open_trace(path_, kFormats);
    if (!input) return fail(input.error());
    return trace::read_trace(std::move(*input), symbols_);
  }
  std::string error() {
    const auto snapshot = read();
    return snapshot ? "none" : snapshot.error().message;
  }
  std::string words(trace::StackId stack) {
    std::string out;
    for (const trace::FrameId frame : symbols_.stack(stack))
      out += fmt::format("{}{}", out.empty() ? "" : ";", symbols_.text(symbols_.frame(frame).name));
    return out;
  }

  static constexpr const trace::TraceFormatInfo* kFormats[] = {&export_trace_format};
  TempFolder folder_;
  std::string path_;
  trace::Symbols symbols_;
};

TEST_F(Export, BlocksWithTheirCallChains) {
  make(call(1000, 1, 1, 8) + event(1005, 0, 0x1000, 4096, 1) + call(2000, 2, 2, 0) + call(2001, 2, 1, 9) +
       event(2005, 0, 0x9000, 1 << 20, 2) + call(2990, 3, 1, 0) + event(3000, 0, 0x20000, 512, 3) +
       event(4000, 1, 0x20000, 512, 0));
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(trace::total_usage(*snapshot).requested_bytes, 4096U + (1U << 20U));
  const auto& events = snapshot->traces.at(0).events;
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(words(events[0].stack), "load_weights;main");
  EXPECT_EQ(words(events[1].stack), "Cache::keep(int);main");
  EXPECT_EQ(words(events[2].stack), "cudaMalloc_v3020");
  EXPECT_EQ(events[0].time_us, 1'700'000'000'000'001);
}

TEST_F(Export, HostMemoryIsNoDeviceMemory) {
  make(event(1, 0, 1, 100, 0, 0) + event(2, 0, 2, 100, 0, 1) + event(3, 0, 3, 64, 0, 5, 0, kPid, "'lookup_table'"));
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(trace::total_usage(*snapshot).requested_bytes, 64U);
  EXPECT_EQ(words(snapshot->traces.at(0).events[0].stack), "lookup_table");
}

TEST_F(Export, ProcessesThatShareAnAddressAreApart) {
  const std::int64_t other = kPid + (1LL << 24);
  make(event(1, 0, 0x1000, 100) + event(2, 0, 0x1000, 50, 0, 2, 0, other) + event(3, 1, 0x1000, 100) +
       event(4, 0, 0x1000, 7, 0, 2, 1, other));
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(trace::total_usage(*snapshot, 0).requested_bytes, 50U);
  EXPECT_EQ(trace::total_usage(*snapshot, 1).requested_bytes, 7U);
  EXPECT_EQ(words(snapshot->traces.at(0).events[1].stack), "process 4243");
  EXPECT_TRUE(snapshot->notes.empty());
}

TEST_F(Export, NumbersMeanWhatTheExportSays) {
  std::string schema = kSchema;
  const auto replace = [&](std::string_view from, std::string_view to) {
    schema.replace(schema.find(from), from.size(), to);
  };
  replace("(1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION'", "(7, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION'");
  replace("(1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED'", "(9, 'CUDA_MEMOPR_MEMORY_KIND_PINNED'");
  make(event(1, 0, 1, 100, 0, 1) + event(2, 0, 2, 30) + event(3, 7, 2, 30) + event(4, 0, 3, 1, 0, 9), schema.c_str());
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(trace::total_usage(*snapshot).requested_bytes, 100U);
}

TEST_F(Export, OfAnOldVersionWithoutCalls) {
  make("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (5, 0, 0, 4096, 10, 2, 0);",
       "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, address INT, bytes INT, "
       "memKind INT, memoryOperationType INT);");
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(trace::total_usage(*snapshot).requested_bytes, 10U);
}

TEST_F(Export, IsReplayedInBoundedMemory) {
  std::string rows = call(1, 1, 1, 9);
  for (int step = 0; step < 600; ++step)
    rows += event(1000 * step + 1, 0, 0x100000ULL + static_cast<unsigned>(step), 1 << 20, 1) +
            event(1000 * step + 2, 0, 0x10, 100) + event(1000 * step + 3, 1, 0x10, 100);
  make(rows);
  auto input = trace::open_trace(path_, kFormats);
  ASSERT_TRUE(input);
  const auto replays = trace::replay_stream(std::move(*input), symbols_, {});
  ASSERT_TRUE(replays) << replays.error().message;
  ASSERT_EQ(replays->size(), 1U);
  EXPECT_EQ(replays->front().timeline(symbols_).end.live_bytes, 600LL << 20);
  const auto growths = trace::compare_devices(*replays);
  ASSERT_EQ(growths.size(), 1U);
  EXPECT_EQ(growths.front().growth.condition, trace::Condition::leak);
}

TEST_F(Export, Refusals) {
  make("", "CREATE TABLE t (x);");
  EXPECT_THAT(error(), HasSubstr("has no CUDA memory events"));
  EXPECT_THAT(error(), HasSubstr("--cuda-memory-usage=true"));
}

TEST_F(Export, NothingInItIsExecuted) {
  make("",
       "CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
       "SELECT i AS start, i AS globalPid, i AS deviceId, i AS address, i AS bytes, i AS memKind, i AS "
       "memoryOperationType FROM n;");
  EXPECT_THAT(error(), HasSubstr("has no CUDA memory events"));
}

TEST_F(Export, ColumnsThatAreMissingAreNamed) {
  make("",
       "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, address INT, memKind INT);");
  EXPECT_THAT(error(), HasSubstr("has no column bytes"));
}

TEST_F(Export, WrongNumbersAreErrors) {
  make(event(1, 0, 1, 1ULL << 60U) + event(5, 0, 2, 1));
  EXPECT_THAT(error(), HasSubstr("report.sqlite: at 1 ns: "));
}

TEST_F(Export, ADeviceThatIsNone) {
  make(event(1, 0, 1, 1, 0, 2, -1));
  EXPECT_THAT(error(), HasSubstr("-1 is not the number of a device"));
}

TEST_F(Export, DamageIsAnErrorOrATrace) {
  make(call(1000, 1, 1, 8) + event(1005, 0, 0x1000, 4096, 1) + call(2001, 2, 1, 9) +
       event(2005, 0, 0x9000, 1 << 20, 2));
  std::ostringstream whole;
  whole << std::ifstream(path_, std::ios::binary).rdbuf();
  const std::string good = whole.str();
  std::mt19937 random(7);
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    if (round % 4 == 0)
      bad.resize(16 + random() % (bad.size() - 16));
    else
      for (unsigned i = 0; i < 1 + random() % 8; ++i)
        bad[16 + random() % (bad.size() - 16)] = static_cast<char>(random());
    auto input =
        trace::open_trace({reinterpret_cast<const std::uint8_t*>(bad.data()), bad.size()}, "damaged", kFormats);
    ASSERT_TRUE(input);
    const auto snapshot = trace::read_trace(std::move(*input), symbols_);
    if (!snapshot) {
      EXPECT_THAT(snapshot.error().message, HasSubstr("damaged: "));
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
  EXPECT_LT(errors, 400) << "not one of them was read";
}

}  // namespace
}  // namespace vramtrack::nsys
