// Any bytes as a whole store: read in every way there is, then opened for writing and read again. SQLite and the
// checksums of chunks refuse nearly all plain mutations, so the mutator also changes one value of one row through
// SQLite, and packs a changed chunk again.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace vramtrack;

constexpr std::size_t kMostBytes = 1U << 20;
/// A scan ends; this only bounds one that does not.
constexpr int kMostReads = 100'000;

/// A file in memory, and what SQLite puts beside it.
class File {
 public:
  File() {
    std::string name = (std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                            : std::filesystem::temp_directory_path()) /
                       "vramtrack-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] std::string path() const { return folder_ + "/store.db"; }
  void put(const std::uint8_t* data, std::size_t size) const {
    for (const char* beside : {"-wal", "-shm", "-journal", ".lock"}) ::unlink((path() + beside).c_str());
    const int fd = ::open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
    ::close(fd);
  }
  /// Bytes read; 0 when they are more than `most`.
  std::size_t get(std::uint8_t* data, std::size_t most) const {
    const int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    const off_t size = fd < 0 ? 0 : ::lseek(fd, 0, SEEK_END);
    std::size_t got = 0;
    if (size > 0 && static_cast<std::size_t>(size) <= most)
      got = static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(fd, data, static_cast<std::size_t>(size), 0)));
    if (fd >= 0) ::close(fd);
    return got;
  }

 private:
  std::string folder_;
};

template <class Value>
void need_words(const Result<Value>& result) {
  if (!result && result.error().message.empty()) std::abort();
}

void read_all(const std::string& path) {
  auto opened = StoreReader::open(path);
  need_words(opened);
  if (!opened) return;
  StoreReader& reader = **opened;
  need_words(reader.raw_extent());
  Catalog catalog;
  need_words(reader.alerts(catalog));
  const auto series = reader.series();
  need_words(series);
  for (std::size_t i = 0; series && i < series->size() && i < 4; ++i) {
    const SeriesKey& key = (*series)[i].key;
    for (const Resolution resolution : {Resolution::minute, Resolution::hour}) {
      const auto rollups = reader.rollups(key, resolution);
      need_words(rollups);
      if (!rollups) continue;
      for (const Rollup& rollup : *rollups)
        if (rollup.count == 0) std::abort();
    }
    need_words(reader.device_minutes(key.device_id));
  }
  Batch batch;
  for (int i = 0;; ++i) {
    if (i == kMostReads) std::abort();
    const auto more = reader.read(catalog, batch);
    need_words(more);
    if (more && !*more) break;
    for (const Sample& sample : batch.samples)
      if (index_of(sample.series) >= catalog.size()) std::abort();
  }
}

/// As a watch does that finds the file.
void write_into(const std::string& path) {
  StoreConfig config;
  config.path = path;
  Catalog catalog;
  const SeriesId id = catalog.intern({Metric::device_used, "GPU-new", 0, 0, {}});
  constexpr Timestamp kBegin{std::chrono::hours{500'000}};
  auto store = Store::open(config, catalog, kBegin);
  need_words(store);
  if (!store) return;
  Batch batch;
  for (int i = 0; i < 100; ++i)  // 16 minutes: a block is packed
    batch.samples.push_back({kBegin + std::chrono::seconds(10 * i), id, static_cast<std::uint64_t>(i) << 20U});
  const auto appended = (*store)->append(batch);
  if (!appended && appended.error().message.empty()) std::abort();
  const auto flushed = (*store)->flush();
  if (!flushed && flushed.error().message.empty()) std::abort();
  static_cast<void>((*store)->take_notices());
}

File& file() {
  static File the_file;
  return the_file;
}

/// A frame's content mutated and packed again; other bytes are mutated as they are.
std::vector<std::uint8_t> mutated(const void* data, std::size_t size, std::mt19937& random) {
  const unsigned long long whole = ZSTD_getFrameContentSize(data, size);
  std::vector<std::uint8_t> bytes(whole < kMostBytes ? static_cast<std::size_t>(whole) : size);
  const bool unpacked = whole < kMostBytes && !ZSTD_isError(ZSTD_decompress(bytes.data(), bytes.size(), data, size));
  if (!unpacked) bytes.assign(static_cast<const std::uint8_t*>(data), static_cast<const std::uint8_t*>(data) + size);
  const std::size_t room = bytes.size() + 64;
  const std::size_t before = bytes.size();
  bytes.resize(room);
  bytes.resize(LLVMFuzzerMutate(bytes.data(), before, room));
  if (!unpacked || random() % 16 == 0) return bytes;
  std::vector<std::uint8_t> packed(ZSTD_compressBound(bytes.size()));
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

std::int64_t wild(std::mt19937& random, std::int64_t value) {
  static constexpr std::int64_t kWild[] = {0, 1, -1, INT64_MAX, INT64_MIN, UINT32_MAX, INT32_MAX, 4096, 3600, 60};
  switch (random() % 4) {
    case 0:
      return kWild[random() % std::size(kWild)];
    case 1:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + random() % 3 - 1);
    default:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) ^ (1ULL << (random() % 64)));
  }
}

void run(sqlite3* database, const std::string& sql) {
  sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
}

/// Another value for one column of one row.
void change_value(sqlite3* database, std::mt19937& random) {
  static constexpr std::string_view kTables[] = {"chunk",       "chunk",  "journal", "journal", "rollup",
                                                 "rollup",      "series", "meta",    "device",  "process",
                                                 "utilisation", "event",  "alert"};
  const std::string table(kTables[random() % std::size(kTables)]);
  sqlite3_stmt* row = nullptr;
  sqlite3_prepare_v2(database, ("SELECT * FROM " + table + " ORDER BY random() LIMIT 1").c_str(), -1, &row, nullptr);
  if (row != nullptr && sqlite3_step(row) == SQLITE_ROW) {
    const int columns = sqlite3_column_count(row);
    const int changed =
        table == "chunk" || table == "journal" || table == "rollup"
            ? (random() % 4 != 0 ? columns - 1 : static_cast<int>(random() % static_cast<unsigned>(columns)))
            : static_cast<int>(random() % static_cast<unsigned>(columns));
    std::string sql = "UPDATE OR REPLACE " + table + " SET " + sqlite3_column_name(row, changed) + "=? WHERE ";
    for (int i = 0; i < columns; ++i) sql += std::string(i ? " AND " : "") + sqlite3_column_name(row, i) + " IS ?";
    sqlite3_stmt* update = nullptr;
    sqlite3_prepare_v2(database, sql.c_str(), -1, &update, nullptr);
    for (int i = 0; update != nullptr && i < columns; ++i)
      sqlite3_bind_value(update, i + 2, sqlite3_column_value(row, i));
    const int type = random() % 32 == 0 ? static_cast<int>(1 + random() % 5) : sqlite3_column_type(row, changed);
    std::vector<std::uint8_t> bytes;
    if (type == SQLITE_INTEGER)
      sqlite3_bind_int64(update, 1, wild(random, sqlite3_column_int64(row, changed)));
    else if (type == SQLITE_FLOAT)
      sqlite3_bind_double(update, 1, random() % 8 == 0 ? 1e308 : static_cast<double>(wild(random, 0)));
    else if (type != SQLITE_NULL) {
      const void* blob = sqlite3_column_blob(row, changed);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, changed));
      bytes = mutated(blob == nullptr ? "" : blob, blob == nullptr ? 0 : size, random);
      if (type == SQLITE_TEXT)
        sqlite3_bind_text64(update, 1, reinterpret_cast<const char*>(bytes.data()), bytes.size(), SQLITE_STATIC,
                            SQLITE_UTF8);
      else
        sqlite3_bind_blob64(update, 1, bytes.data(), bytes.size(), SQLITE_STATIC);
    }
    if (update != nullptr) sqlite3_step(update);
    sqlite3_finalize(update);
  }
  sqlite3_finalize(row);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  file().put(data, size);
  sqlite3* database = nullptr;
  if (sqlite3_open(file().path().c_str(), &database) == SQLITE_OK) {
    run(database, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF");
    for (unsigned i = 0, n = 1 + static_cast<unsigned>(random() % 3); i < n; ++i) change_value(database, random);
    run(database, "PRAGMA journal_mode=WAL");
  }
  sqlite3_close(database);
  std::vector<std::uint8_t> bytes(most);
  const std::size_t got = file().get(bytes.data(), most);
  if (got == 0) return LLVMFuzzerMutate(data, size, most);
  std::copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(got), data);
  return got;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostBytes) return 0;
  file().put(data, size);
  read_all(file().path());
  write_into(file().path());
  read_all(file().path());
  return 0;
}
