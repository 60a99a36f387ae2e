#include "fault_vfs.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace vramtrack::testing {
namespace {

/// A change to a file that has not been synced.
struct Change {
  enum class Kind : std::uint8_t { write, truncate, remove };
  Kind kind = Kind::write;
  std::size_t offset = 0;  ///< for a truncate: the new length
  std::string bytes;
};

struct History {
  std::optional<std::string> safe;  ///< nullopt: no such file
  std::vector<Change> changes;
};

struct State {
  FaultPlan plan;
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs shim{};
  bool recording = false;
  std::int64_t changes_left = 0;  ///< until the power fails
  std::map<std::string, History> files;
  std::function<void(const std::string&)> heard;
} g;

/// The real file's bytes follow it in the memory that SQLite provides.
struct File {
  sqlite3_file base;
  sqlite3_file* real;
  std::string* path;  ///< empty: a temporary file
};

File* of(sqlite3_file* file) {
  return reinterpret_cast<File*>(file);
}

std::optional<std::string> content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void change(std::string& bytes, const Change& c) {
  if (c.kind == Change::Kind::truncate) {
    bytes.resize(c.offset, '\0');
  } else {
    if (bytes.size() < c.offset + c.bytes.size()) bytes.resize(c.offset + c.bytes.size(), '\0');
    bytes.replace(c.offset, c.bytes.size(), c.bytes);
  }
}

void apply(std::optional<std::string>& bytes, const Change& c) {
  if (c.kind == Change::Kind::remove) {
    bytes.reset();
  } else {
    if (!bytes) bytes.emplace();
    change(*bytes, c);
  }
}

bool has_power() {
  return g.recording && g.changes_left > 0;
}

void note(const std::string& path, Change c) {
  if (!has_power() || path.empty()) return;
  g.files[path].changes.push_back(std::move(c));
  --g.changes_left;
}

/// A file counts as safe in the state in which it is first seen.
void remember(const std::string& path) {
  if (g.recording && !path.empty() && !g.files.contains(path)) g.files[path] = {content(path), {}};
}

void make_durable(History& history) {
  for (const Change& c : history.changes) apply(history.safe, c);
  history.changes.clear();
}

// The methods of a file. Each consults the plan, then calls the real file.

int x_close(sqlite3_file* file) {
  const int rc = of(file)->real->pMethods != nullptr ? of(file)->real->pMethods->xClose(of(file)->real) : SQLITE_OK;
  delete of(file)->path;
  return rc;
}
int x_read(sqlite3_file* file, void* into, int n, sqlite3_int64 offset) {
  if (g.plan.fails(vfs_call::read)) return SQLITE_IOERR_READ;
  return of(file)->real->pMethods->xRead(of(file)->real, into, n, offset);
}
int x_write(sqlite3_file* file, const void* bytes, int n, sqlite3_int64 offset) {
  if (g.plan.fails(vfs_call::full)) return SQLITE_FULL;
  if (g.plan.fails(vfs_call::write)) {
    // Half of it may be written, as after a real failure.
    (void)of(file)->real->pMethods->xWrite(of(file)->real, bytes, n / 2, offset);
    return SQLITE_IOERR_WRITE;
  }
  note(*of(file)->path, {Change::Kind::write, static_cast<std::size_t>(offset),
                         std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(n))});
  return of(file)->real->pMethods->xWrite(of(file)->real, bytes, n, offset);
}
int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (g.plan.fails(vfs_call::truncate)) return SQLITE_IOERR_TRUNCATE;
  note(*of(file)->path, {Change::Kind::truncate, static_cast<std::size_t>(size), {}});
  return of(file)->real->pMethods->xTruncate(of(file)->real, size);
}
int x_sync(sqlite3_file* file, int flags) {
  if (g.plan.fails(vfs_call::sync)) return SQLITE_IOERR_FSYNC;
  const std::string& path = *of(file)->path;
  if (g.recording && !path.empty()) {
    if (has_power() && g.heard) g.heard(path);
    if (has_power()) make_durable(g.files[path]);
    return SQLITE_OK;  // safe data is kept here, so there is no need to wait for the disk
  }
  return of(file)->real->pMethods->xSync(of(file)->real, flags);
}
int x_size(sqlite3_file* file, sqlite3_int64* size) {
  if (g.plan.fails(vfs_call::size)) return SQLITE_IOERR_FSTAT;
  return of(file)->real->pMethods->xFileSize(of(file)->real, size);
}
int x_lock(sqlite3_file* file, int level) {
  if (g.plan.fails(vfs_call::lock)) return SQLITE_IOERR_LOCK;
  return of(file)->real->pMethods->xLock(of(file)->real, level);
}
int x_unlock(sqlite3_file* file, int level) {
  return of(file)->real->pMethods->xUnlock(of(file)->real, level);
}
int x_reserved(sqlite3_file* file, int* out) {
  if (g.plan.fails(vfs_call::lock)) return SQLITE_IOERR_CHECKRESERVEDLOCK;
  return of(file)->real->pMethods->xCheckReservedLock(of(file)->real, out);
}
int x_control(sqlite3_file* file, int op, void* argument) {
  return of(file)->real->pMethods->xFileControl(of(file)->real, op, argument);
}
int x_sector(sqlite3_file* file) {
  return of(file)->real->pMethods->xSectorSize(of(file)->real);
}
int x_characteristics(sqlite3_file* file) {
  return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}
int x_shm_map(sqlite3_file* file, int page, int bytes, int extend, void volatile** out) {
  if (g.plan.fails(vfs_call::memory)) return SQLITE_IOERR_SHMMAP;
  return of(file)->real->pMethods->xShmMap(of(file)->real, page, bytes, extend, out);
}
int x_shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  if ((flags & SQLITE_SHM_LOCK) != 0 && g.plan.fails(vfs_call::lock)) return SQLITE_IOERR_SHMLOCK;
  return of(file)->real->pMethods->xShmLock(of(file)->real, offset, n, flags);
}
void x_shm_barrier(sqlite3_file* file) {
  of(file)->real->pMethods->xShmBarrier(of(file)->real);
}
int x_shm_unmap(sqlite3_file* file, int remove) {
  return of(file)->real->pMethods->xShmUnmap(of(file)->real, remove);
}

const sqlite3_io_methods kMethods = {
    2,           x_close,    x_read,    x_write,  x_truncate,        x_sync,    x_size,     x_lock,
    x_unlock,    x_reserved, x_control, x_sector, x_characteristics, x_shm_map, x_shm_lock, x_shm_barrier,
    x_shm_unmap, nullptr,    nullptr};

int v_open(sqlite3_vfs*, const char* name, sqlite3_file* out, int flags, int* out_flags) {
  out->pMethods = nullptr;
  if (g.plan.fails(vfs_call::open)) return SQLITE_CANTOPEN;
  File* const file = of(out);
  file->real = reinterpret_cast<sqlite3_file*>(file + 1);
  const std::string path = name != nullptr ? name : "";
  remember(path);
  const int rc = g.real->xOpen(g.real, name, file->real, flags, out_flags);
  if (rc != SQLITE_OK) {
    if (file->real->pMethods != nullptr) file->real->pMethods->xClose(file->real);
    return rc;
  }
  file->path = new std::string(path);
  file->base.pMethods = &kMethods;
  return SQLITE_OK;
}
int v_delete(sqlite3_vfs*, const char* name, int sync_folder) {
  if (g.plan.fails(vfs_call::remove)) return SQLITE_IOERR_DELETE;
  remember(name);
  const int rc = g.real->xDelete(g.real, name, sync_folder);
  if (rc != SQLITE_OK) return rc;
  note(name, {Change::Kind::remove, 0, {}});
  if (has_power() && sync_folder != 0) make_durable(g.files[name]);
  return rc;
}
int v_access(sqlite3_vfs*, const char* name, int flags, int* out) {
  if (g.plan.fails(vfs_call::access)) return SQLITE_IOERR_ACCESS;
  return g.real->xAccess(g.real, name, flags, out);
}
int v_full_path(sqlite3_vfs*, const char* name, int n, char* out) {
  if (g.plan.fails(vfs_call::open)) return SQLITE_CANTOPEN_FULLPATH;
  return g.real->xFullPathname(g.real, name, n, out);
}

std::size_t pick(std::mt19937& random, std::size_t below) {
  return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
}

/// A possible result of `changes` on `safe`.
std::string left_of(std::string safe, const std::vector<Change>& changes, std::mt19937& random) {
  if (random() % 2 == 0) {  // whole writes, each present or absent
    const unsigned in_eight = static_cast<unsigned>(random() % 9);
    for (const Change& c : changes)
      if (random() % 8 < in_eight) change(safe, c);
    return safe;
  }
  // Every sector in one of its states, and one of the lengths.
  const std::size_t sector = random() % 2 == 0 ? 512 : 4096;
  std::vector<std::size_t> lengths{safe.size()};
  std::map<std::size_t, std::vector<std::string>> states;
  const auto sector_of = [&](const std::string& bytes, std::size_t at) {
    std::string part = at < bytes.size() ? bytes.substr(at, sector) : std::string();
    part.resize(sector, '\0');
    return part;
  };
  std::string now = safe;
  std::size_t longest = safe.size();
  for (const Change& c : changes) {
    const std::string before = c.kind == Change::Kind::write ? std::string() : now;
    const std::size_t first = c.kind == Change::Kind::write ? c.offset : std::min(c.offset, now.size());
    const std::size_t last = c.kind == Change::Kind::write ? c.offset + c.bytes.size() : std::max(c.offset, now.size());
    const std::size_t from = first / sector * sector;
    for (std::size_t at = from; at < last; at += sector)
      if (!states.contains(at)) states[at].push_back(sector_of(now, at));
    change(now, c);
    for (std::size_t at = from; at < last; at += sector) states[at].push_back(sector_of(now, at));
    lengths.push_back(now.size());
    longest = std::max(longest, now.size());
  }
  safe.resize(longest, '\0');
  for (const auto& [at, seen] : states) {
    const std::string& one = seen[pick(random, seen.size())];
    for (std::size_t i = 0; i < sector && at + i < safe.size(); ++i) safe[at + i] = one[i];
  }
  safe.resize(lengths[pick(random, lengths.size())]);
  return safe;
}

}  // namespace

FaultVfs::FaultVfs() {
  sqlite3_initialize();
  g.plan.disarm();
  g.real = sqlite3_vfs_find(nullptr);
  g.shim = *g.real;
  g.shim.pNext = nullptr;
  g.shim.zName = "fault";
  g.shim.szOsFile = static_cast<int>(sizeof(File)) + g.real->szOsFile;
  g.shim.xOpen = v_open;
  g.shim.xDelete = v_delete;
  g.shim.xAccess = v_access;
  g.shim.xFullPathname = v_full_path;
  sqlite3_vfs_register(&g.shim, 1);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&g.shim);
  sqlite3_vfs_register(g.real, 1);
  g.recording = false;
  g.files.clear();
  g.heard = nullptr;
}

FaultPlan& FaultVfs::plan() {
  return g.plan;
}

void FaultVfs::record(std::int64_t last) {
  g.files.clear();
  g.recording = true;
  g.changes_left = last;
}

bool FaultVfs::is_dark() const {
  return g.recording && g.changes_left <= 0;
}

void FaultVfs::on_sync(std::function<void(const std::string& path)> heard) {
  g.heard = std::move(heard);
}

void FaultVfs::lose_power(std::mt19937& random) {
  g.recording = false;
  for (auto& [path, history] : g.files) {
    // Any number of several removals has reached the folder; writes to a file that was not yet created there are gone.
    std::vector<Change>& changes = history.changes;
    while (true) {
      const auto removal =
          std::find_if(changes.begin(), changes.end(), [](const Change& c) { return c.kind == Change::Kind::remove; });
      if (removal == changes.end()) break;
      if (random() % 2 == 0) {
        changes.erase(removal, changes.end());
        break;
      }
      history.safe.reset();
      changes.erase(changes.begin(), removal + 1);
    }
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    std::filesystem::remove(path + "-shm", ignored);
    if (!history.safe && (changes.empty() || random() % 2 == 0)) continue;
    const std::string left = left_of(history.safe.value_or(std::string()), changes, random);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << left;
  }
  g.files.clear();
}

}  // namespace vramtrack::testing
