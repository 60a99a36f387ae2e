#include "store/sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <new>

#include "core/errno_words.hpp"

namespace vramtrack::sql {
namespace {

/// The user's remedy for this kind of failure.
std::string next_step(int extended, int system_errno, const std::string& path) {
  if (extended == SQLITE_READONLY_ROLLBACK || extended == SQLITE_READONLY_RECOVERY)
    return "it was cut off while it was written: a watch that records into it repairs it, and needs write permission "
           "for that";
  switch (extended & 0xff) {
    case SQLITE_FULL:
      return "the disk is full: free some space, or set store.path to another disk";
    case SQLITE_READONLY:
      return "the file or its folder cannot be written: change its permissions, or set store.path to a place that you "
             "can write";
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "check that the file and its folder exist and are yours, or set store.path to another place";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a missing table or column
    case SQLITE_SCHEMA:
      return fmt::format(
          "the file is damaged or not a store: move it away (mv '{0}' '{0}.damaged') and start again, which creates a "
          "new one; `sqlite3 '{0}.damaged' .recover` saves what can be saved",
          path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program holds a lock on the file: `fuser` on it shows which";
    case SQLITE_IOERR:
      return fmt::format("reading or writing it failed{}{}: check the disk (dmesg), quota and file size limit",
                         system_errno ? ": " : "", system_errno ? errno_words(system_errno) : "");
    case SQLITE_NOMEM:
      return "there is not enough memory";
    default:
      return "please report this";
  }
}

Error make_error(sqlite3* handle, const std::string& path) {
  const int extended = handle ? sqlite3_extended_errcode(handle) : SQLITE_NOMEM;
  const int system_errno = handle ? sqlite3_system_errno(handle) : 0;
  return Error{fmt::format("{}: {} (SQLite {}); {}", path, handle ? sqlite3_errmsg(handle) : "out of memory", extended,
                           next_step(extended, system_errno, path))};
}

/// `path` as a file: URI, so that immutable=1 can be added; its special characters are escaped.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}
void Statement::Finalize::operator()(sqlite3_stmt* handle) const {
  sqlite3_finalize(handle);
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX;
  flags |= mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (mode == Mode::immutable) flags |= SQLITE_OPEN_URI;
  sqlite3* handle = nullptr;
  const int rc = sqlite3_open_v2((mode == Mode::immutable ? uri_of(path) : path).c_str(), &handle, flags, nullptr);
  Database database;
  database.handle_.reset(handle);
  database.path_ = path;
  if (rc != SQLITE_OK) return fail(make_error(handle, path));
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMostValueBytes);
  return database;
}

Status Database::exec(const char* statements) {
  if (sqlite3_exec(handle_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK) return fail(error());
  return {};
}

void Database::roll_back() noexcept {
  if (handle_ && sqlite3_get_autocommit(handle_.get()) == 0)
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<Statement> Database::prepare(std::string_view statement) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), statement.data(), static_cast<int>(statement.size()), &handle, nullptr) !=
      SQLITE_OK)
    return fail(error());
  return Statement(handle);
}

Result<std::optional<std::int64_t>> Database::integer(std::string_view statement) {
  auto query = prepare(statement);
  if (!query) return fail(query.error());
  const auto row = query->step();
  if (!row) return fail(row.error());
  if (!*row || query->is_null(0)) return std::nullopt;
  return query->integer(0);
}

Result<std::string> Database::text(std::string_view statement) {
  auto query = prepare(statement);
  if (!query) return fail(query.error());
  const auto row = query->step();
  if (!row) return fail(row.error());
  return *row ? std::string(query->text(0)) : std::string();
}

Error Database::error() const {
  return make_error(handle_.get(), path_);
}

Error Statement::error() const {
  sqlite3* database = sqlite3_db_handle(handle_.get());
  const char* path = sqlite3_db_filename(database, "main");
  return make_error(database, path ? path : "");
}

Statement& Statement::bind(int index, std::int64_t value) {
  bind_failed_ |= sqlite3_bind_int64(handle_.get(), index, value) != SQLITE_OK;
  return *this;
}
Statement& Statement::bind(int index, double value) {
  bind_failed_ |= sqlite3_bind_double(handle_.get(), index, value) != SQLITE_OK;
  return *this;
}
Statement& Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL: an empty text must stay a text.
  const char* data = text.data() ? text.data() : "";
  bind_failed_ |= sqlite3_bind_text64(handle_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK;
  return *this;
}
Statement& Statement::bind(int index, std::span<const std::uint8_t> blob) {
  bind_failed_ |= sqlite3_bind_blob64(handle_.get(), index, blob.data(), blob.size(), SQLITE_STATIC) != SQLITE_OK;
  return *this;
}

Result<bool> Statement::step() {
  if (bind_failed_) {
    bind_failed_ = false;
    return fail(error());
  }
  switch (sqlite3_step(handle_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      break;
  }
  return fail(error());
}

Status Statement::run() {
  const ResetAtEnd reset_at_end(*this);
  Result<bool> row = step();
  while (row && *row) row = step();
  if (!row) return fail(row.error());
  return {};
}

void Statement::reset() noexcept {
  bind_failed_ = false;
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(handle_.get(), column);
}
std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  if (!data) return need_memory(), std::string_view();
  auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  if (bytes > kMostTextBytes) {
    bytes = kMostTextBytes;
    while (bytes > 0 && (static_cast<unsigned char>(data[bytes]) & 0xc0U) == 0x80) --bytes;  // not within a character
  }
  return {data, bytes};
}
std::span<const std::uint8_t> Statement::blob(int column) const {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(handle_.get(), column));
  if (!data) return need_memory(), std::span<const std::uint8_t>();
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column))};
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}
int Statement::columns() const {
  return sqlite3_column_count(handle_.get());
}
std::string_view Statement::name(int column) const {
  const char* name = sqlite3_column_name(handle_.get(), column);
  return name != nullptr ? name : throw std::bad_alloc();
}
/// A missing value is NULL, or there was no memory for it.
void Statement::need_memory() const {
  if (sqlite3_errcode(sqlite3_db_handle(handle_.get())) == SQLITE_NOMEM) throw std::bad_alloc();
}

}  // namespace vramtrack::sql
