// Failures around the file: each is reported in words, and affects no more than the damaged part.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>

#include "store/schema.hpp"
#include "store/sqlite.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using DamageTest = StoreTest;

void fill(Store& store, Catalog& catalog, int from_s, int to_s, int series = 3) {
  std::vector<SeriesId> ids;
  for (int s = 0; s < series; ++s) ids.push_back(catalog.intern(device_key(s)));
  for (int t = from_s; t < to_s; ++t) {
    Batch batch;
    for (const SeriesId id : ids)
      batch.samples.push_back({at_s(t), id, static_cast<std::uint64_t>(t) * 1315423911U + index_of(id)});
    ASSERT_TRUE(store.append(batch));
  }
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string why_not(const StoreConfig& config, const Catalog& catalog) {
  const auto store = Store::open(config, catalog, at_s(0));
  return store ? std::string() : store.error().message;
}

TEST_F(DamageTest, ASecondWriterIsToldWhoHoldsTheFile) {
  const auto first = open();
  const std::string why = why_not(config, catalog);
  EXPECT_THAT(why, AllOf(HasSubstr(config.path), HasSubstr("pid " + std::to_string(::getpid())),
                         HasSubstr("since 2026-01-01T00:00:00Z"), HasSubstr("store_test")));
  EXPECT_TRUE(StoreReader::open(config.path));  // readers are not kept out
}

TEST_F(DamageTest, TheLockOfAKilledWriterIsFree) {
  int up[2];
  ASSERT_EQ(::pipe(up), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = Store::open(config, catalog, at_s(0));
    const char answer = store ? 'y' : 'n';
    (void)!::write(up[1], &answer, 1);
    while (true) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(up[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(why_not(config, catalog), HasSubstr("pid " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(why_not(config, catalog), "");
  ::close(up[0]);
  ::close(up[1]);
}

TEST_F(DamageTest, ANewerSchemaIsLeftAlone) {
  { const auto store = open(); }
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->exec(fmt::format("PRAGMA user_version={}", kSchemaVersion + 1).c_str()));
  }
  const std::string before = bytes_of(config.path);
  EXPECT_THAT(why_not(config, catalog),
              AllOf(HasSubstr(config.path),
                    HasSubstr(fmt::format("newer vramtrack (schema {}, this one knows up to ", kSchemaVersion + 1)),
                    HasSubstr("store.path")));
  const auto reader = StoreReader::open(config.path);
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr(fmt::format("schema {}", kSchemaVersion + 1)));
  EXPECT_EQ(bytes_of(config.path), before);
}

TEST_F(DamageTest, AnotherProgramsFileIsLeftAlone) {
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->exec("CREATE TABLE bookmarks(url)"));
  }
  const std::string before = bytes_of(config.path);
  EXPECT_THAT(why_not(config, catalog), AllOf(HasSubstr(config.path), HasSubstr("another program")));
  EXPECT_EQ(bytes_of(config.path), before);
  write_bytes(config.path, "no database at all, but long enough to look like one" + std::string(2000, 'x'));
  EXPECT_THAT(why_not(config, catalog), AllOf(HasSubstr(config.path), HasSubstr("mv '")));
  EXPECT_FALSE(StoreReader::open(config.path));
}

TEST_F(DamageTest, ReaderErrorsNameTheFile) {
  auto reader = StoreReader::open(folder.file("none.db"));
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, AllOf(HasSubstr("none.db"), HasSubstr("No such file")));
  write_bytes(folder.file("empty.db"), "");
  reader = StoreReader::open(folder.file("empty.db"));
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("not a vramtrack store"));
}

/// Root may write everywhere, so the test continues as the user nobody.
class WithoutRights {
 public:
  WithoutRights() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(65534) != 0) was_root_ = false;
  }
  ~WithoutRights() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

TEST_F(DamageTest, AFolderThatCannotBeWrittenIsNamed) {
  { const auto store = open(); }
  ::chmod(config.path.c_str(), 0444);
  ::chmod((config.path + ".lock").c_str(), 0444);
  ::chmod(folder.path().c_str(), 0555);
  std::string existing, fresh, deeper;
  std::size_t readable = 0;
  {
    const WithoutRights nobody;
    existing = why_not(config, catalog);
    StoreConfig other = config;
    other.path = folder.file("new.db");
    fresh = why_not(other, catalog);
    other.path = folder.file("sub/folder/new.db");
    deeper = why_not(other, catalog);
    readable = StoreReader::open(config.path) ? 1 : 0;  // a reader needs no write permission
  }
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_THAT(existing, AllOf(HasSubstr(config.path), HasSubstr("Permission denied"), HasSubstr("store.path")));
  EXPECT_THAT(fresh, AllOf(HasSubstr("new.db"), HasSubstr("Permission denied"), HasSubstr("store.path")));
  EXPECT_THAT(deeper, AllOf(HasSubstr("sub"), HasSubstr("cannot create the folder"), HasSubstr("store.path")));
  EXPECT_EQ(readable, 1U);
}

TEST_F(DamageTest, AFileInPlaceOfAFolderIsNamed) {
  write_bytes(folder.file("file"), "x");
  config.path = folder.file("file/vramtrack.db");
  EXPECT_THAT(why_not(config, catalog), HasSubstr(folder.file("file")));
}

/// SQLite's own system calls, made to report "no space left on device": a full disk on any test machine.
class FullDisk {
 public:
  FullDisk() {
    full() = true;
    sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
    for (const char* name : {"pwrite", "pwrite64", "write"}) {
      if (!original(name)) original(name) = vfs->xGetSystemCall(vfs, name);
      if (!original(name)) continue;
      if (std::string(name) == "write") {
        vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(&write));
      } else {
        vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(&pwrite));
      }
    }
  }
  ~FullDisk() {
    sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
    for (const char* name : {"pwrite", "pwrite64", "write"}) vfs->xSetSystemCall(vfs, name, nullptr);
    full() = false;
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  static bool& full() {
    static bool value = false;
    return value;
  }
  static sqlite3_syscall_ptr& original(const std::string& name) {
    static std::map<std::string, sqlite3_syscall_ptr> calls;
    return calls[name];
  }
  static ssize_t pwrite(int, const void*, size_t, off_t) {
    errno = ENOSPC;
    return -1;
  }
  static ssize_t write(int, const void*, size_t) {
    errno = ENOSPC;
    return -1;
  }
};

TEST_F(DamageTest, AFullDiskIsSaidOnceAndNothingIsLostWhenSpaceReturns) {
  const auto store = open();
  fill(*store, catalog, 0, 1000);
  ASSERT_TRUE(store->flush());
  const SeriesId fresh = catalog.intern(process_key(0, 5));  // first seen while the disk is full
  std::vector<std::string> errors;
  {
    const FullDisk full;
    for (int t = 1000; t < 3000; ++t) {
      Batch batch;
      for (int s = 0; s < 3; ++s)
        batch.samples.push_back({at_s(t), catalog.intern(device_key(s)), static_cast<std::uint64_t>(t)});
      batch.samples.push_back({at_s(t), fresh, 9});
      if (t == 1500) batch.events = {{.time = at_s(t), .text = "while full"}};
      if (const Status s = store->append(batch); !s) errors.push_back(s.error().message);
    }
    ASSERT_THAT(errors, SizeIs(1));
    EXPECT_THAT(errors[0], AllOf(HasSubstr(config.path), HasSubstr("disk is full"), HasSubstr("free some space")));
    EXPECT_FALSE(store->flush());  // flush reports it every time
  }
  const auto committed = scan(config.path);
  EXPECT_THAT(committed.errors, IsEmpty());
  EXPECT_THAT(committed.of(device_key(0)), SizeIs(1000));  // committed samples are there and readable meanwhile
  EXPECT_THAT(store->take_notices(), IsEmpty());
  fill(*store, catalog, 3000, 3100);
  ASSERT_TRUE(store->flush());
  EXPECT_THAT(store->take_notices(), ::testing::ElementsAre(HasSubstr("written again; nothing was lost")));
  const auto all = scan(config.path);
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_THAT(all.of(device_key(2)), SizeIs(3100));
  EXPECT_THAT(all.of(process_key(0, 5)), SizeIs(2000));
  EXPECT_THAT(all.events, SizeIs(1));
}

TEST_F(DamageTest, ADiskThatStaysFullCostsOnlyTheOldestAndBoundedMemory) {
  const auto store = open();
  fill(*store, catalog, 0, 10);
  std::size_t appended = 30;
  {
    const FullDisk full;
    std::uint64_t noise = 1;
    for (int t = 10; t < 40000; ++t) {
      Batch batch;
      for (int s = 0; s < 16; ++s) {
        noise = noise * 6364136223846793005U + 1442695040888963407U;
        batch.samples.push_back({at_s(t), catalog.intern(device_key(s)), noise >> 20});
      }
      appended += batch.samples.size();
      (void)store->append(batch);
    }
  }
  ASSERT_TRUE(store->flush());
  const auto notices = store->take_notices();
  ASSERT_THAT(notices, SizeIs(1));
  const auto all = scan(config.path);
  EXPECT_THAT(all.errors, IsEmpty());
  EXPECT_EQ(all.of(device_key(15)).back().first, kStart + 39999 * kSecond);
  EXPECT_GT(all.samples, 100'000U);  // a MiB holds that much even if it is noise
  EXPECT_THAT(notices[0], HasSubstr(std::to_string(appended - all.samples) + " samples were lost"));
}

TEST_F(DamageTest, AFullDiskAtTheStartIsAnError) {
  const FullDisk full;
  EXPECT_THAT(why_not(config, catalog), AllOf(HasSubstr(config.path), HasSubstr("disk is full")));
}

TEST_F(DamageTest, AnotherProgramsLockDelaysAndLosesNothing) {
  const auto store = open();
  fill(*store, catalog, 0, 100);
  auto other = sql::Database::open(config.path, sql::Database::Mode::write);
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->exec("BEGIN IMMEDIATE"));
  Batch batch;
  batch.samples = {{at_s(110), catalog.intern(device_key(0)), 1}};
  const Status locked = store->append(batch);
  ASSERT_FALSE(locked);
  EXPECT_THAT(locked.error().message, AllOf(HasSubstr(config.path), HasSubstr("another program holds a lock")));
  ASSERT_TRUE(other->exec("ROLLBACK"));
  ASSERT_TRUE(store->flush());
  EXPECT_THAT(scan(config.path).of(device_key(0)), SizeIs(101));
}

TEST_F(DamageTest, ARemovedFileIsStartedAnew) {
  const auto store = open();
  fill(*store, catalog, 0, 100);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(config.path + suffix);
  fill(*store, catalog, 100, 200);
  ASSERT_TRUE(store->flush());
  EXPECT_THAT(store->take_notices(), ::testing::Contains(HasSubstr("was removed or replaced")));
  EXPECT_GE(scan(config.path).of(device_key(2)).size(), 100U);
  EXPECT_THAT(why_not(config, catalog), HasSubstr("another vramtrack"));  // and it still belongs to this writer
}

/// Every position in the file, damaged in turn: an error or data, never a crash, and the data is correct.
TEST_F(DamageTest, FlippedBytesAreFoundOrHarmless) {
  {
    const auto store = open();
    fill(*store, catalog, 0, 4000);
    Alert alert;
    alert.series = catalog.intern(device_key(0));
    ASSERT_TRUE(store->record(alert));
  }
  const std::string good = bytes_of(config.path);
  std::map<std::pair<int, std::int64_t>, std::uint64_t> truth;
  const Scan whole = scan(config.path);
  for (int s = 0; s < 3; ++s)
    for (const auto& [time, bytes] : whole.of(device_key(s))) truth[{s, time}] = bytes;
  ASSERT_THAT(truth, SizeIs(12000));
  int chunk_errors = 0, refused = 0;
  for (std::size_t at = 0; at < good.size(); at += at < 200 ? 1 : 127) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5a);
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(config.path + suffix);
    write_bytes(config.path, bad);
    const Scan seen = scan(config.path);
    for (const std::string& error : seen.errors) {
      EXPECT_THAT(error, HasSubstr(config.path));
      chunk_errors += error.find("is damaged and skipped") != std::string::npos;
    }
    for (int s = 0; s < 3; ++s)
      for (const auto& [time, bytes] : seen.of(device_key(s))) {
        const auto known = truth.find({s, time});
        ASSERT_TRUE(known != truth.end() && known->second == bytes) << "byte " << at << ", series " << s;
      }
    if (auto reader = StoreReader::open(config.path)) {
      Catalog ignored;
      (void)(*reader)->alerts(ignored);
      (void)(*reader)->series();
      (void)(*reader)->rollups(device_key(0), Resolution::minute);
    }
    Catalog fresh;
    auto store = Store::open(config, fresh, at_s(0));
    if (!store) {
      ++refused;
      EXPECT_THAT(store.error().message, HasSubstr(config.path));
      continue;
    }
    Batch batch;
    batch.samples = {{at_s(10000), fresh.intern(device_key(0)), 1}, {at_s(12000), fresh.intern(device_key(0)), 1}};
    (void)(*store)->append(batch);
    (void)(*store)->flush();
  }
  EXPECT_GT(chunk_errors, 10);
  EXPECT_GT(refused, 10);
}

TEST_F(DamageTest, ADamagedChunkIsNamedAndTheRestIsRead) {
  {
    const auto store = open();
    fill(*store, catalog, 0, 4000);
  }
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->exec("UPDATE chunk SET data=substr(data,1,100)||x'00'||substr(data,102) WHERE id=2"));
    ASSERT_TRUE(database->exec("UPDATE journal SET data=x'1234' WHERE seq=(SELECT max(seq) FROM journal)"));
  }
  const Scan seen = scan(config.path);
  ASSERT_THAT(seen.errors, SizeIs(2));
  EXPECT_THAT(seen.errors[0], AllOf(HasSubstr("chunk 2 (2026-01-01T00:15"), HasSubstr("is damaged and skipped")));
  EXPECT_THAT(seen.errors[1], HasSubstr("journal row"));
  EXPECT_GT(seen.of(device_key(0)).size(), 3000U);
  EXPECT_LT(seen.of(device_key(0)).size(), 3200U);
  const auto store = open();  // the writer continues, and reports what it skipped
  EXPECT_THAT(store->take_notices(), ::testing::ElementsAre(HasSubstr("journal row")));
}

TEST_F(DamageTest, ATruncatedFileIsFound) {
  {
    const auto store = open();
    fill(*store, catalog, 0, 4000);
  }
  const std::string good = bytes_of(config.path);
  int found = 0;
  for (std::size_t size = 1; size < good.size(); size += 1 + good.size() / 40) {
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(config.path + suffix);
    write_bytes(config.path, good.substr(0, size));
    const Scan seen = scan(config.path);
    // The end of the file may be free pages, in which case nothing is missing.
    EXPECT_TRUE(!seen.errors.empty() || seen.samples == 12000U) << size;
    found += !seen.errors.empty();
    for (const std::string& error : seen.errors) EXPECT_THAT(error, HasSubstr(config.path));
    (void)why_not(config, catalog);
  }
  EXPECT_GT(found, 20);
}

TEST_F(DamageTest, NamesThatNobodyWroteAreCut) {
  {
    const auto store = open();
    const SeriesId id = catalog.intern(device_key(0));
    DeviceInfo device;
    device.id = device_key(0).device_id;
    device.name = "GPU";
    catalog.describe(device);
    Batch batch;
    batch.samples.push_back({at_s(1), id, 1});
    ASSERT_TRUE(store->append(batch));
    ASSERT_TRUE(store->flush());
  }
  auto database = sql::Database::open(config.path, sql::Database::Mode::write);
  ASSERT_TRUE(database);
  // 6 MB of a name with characters of three bytes each.
  ASSERT_TRUE(database->exec("UPDATE device SET name = replace(hex(zeroblob(1000000)), '0', char(8364))"));
  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader) << reader.error().message;
  Catalog read;
  Batch batch;
  (*reader)->select({at_s(0), at_s(10)});
  ASSERT_TRUE((*reader)->read(read, batch));
  const DeviceInfo* device = read.device(device_key(0).device_id);
  ASSERT_NE(device, nullptr);
  EXPECT_GT(device->name.size(), sql::kMostTextBytes - 4);
  EXPECT_LE(device->name.size(), sql::kMostTextBytes);
  EXPECT_EQ(device->name.size() % 3, 0U) << "no character is cut in two";
}

}  // namespace
}  // namespace vramtrack
