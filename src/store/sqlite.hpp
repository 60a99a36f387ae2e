// The small part of SQLite that the store uses, with errors as Results. Only src/store includes this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace vramtrack::sql {

/// Twice the part of a command line that is read, the longest of the stored names.
inline constexpr std::size_t kMostTextBytes = 8192;
/// Limit for one value in the file: a chunk has some kilobytes.
inline constexpr int kMostValueBytes = 64 << 20;

class Statement;

/// One connection. Not for sharing between threads.
class Database {
 public:
  enum class Mode : std::uint8_t {
    write,      ///< read and write, created if absent
    read,       ///< read only
    immutable,  ///< read only, and nobody writes: needs no permission to write next to the file
  };
  static Result<Database> open(const std::string& path, Mode mode);

  /// Runs statements that return no rows (or whose rows do not matter).
  Status exec(const char* statements);
  Result<Statement> prepare(std::string_view statement);
  /// The first column of the first row; nullopt if there is no row.
  Result<std::optional<std::int64_t>> integer(std::string_view statement);
  Result<std::string> text(std::string_view statement);

  /// Undoes what a transaction has done so far; does nothing if none is open. Never fails: what cannot be undone now is
  /// undone by the next call, or at the latest when the database is closed.
  void roll_back() noexcept;

  /// The last failure in words: the file, what SQLite and the system reported, what to do next.
  [[nodiscard]] Error error() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

/// A prepared statement; must not outlive its Database. bind() counts from 1, columns from 0. Text and blobs are not
/// copied: they must live until the statement has run. Throws std::bad_alloc if SQLite has no memory for a value, which
/// would otherwise look empty.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::span<const std::uint8_t> blob);

  /// True: a row is available. False: done. The error of an earlier bind() is returned here.
  Result<bool> step();
  /// Runs to the end and resets the statement for the next run.
  Status run();
  void reset() noexcept;

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  /// Valid until the next step. At most kMostTextBytes of it, in whole characters: a damaged or hostile file may hold
  /// names of megabytes, which must not inflate output or memory.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::span<const std::uint8_t> blob(int column) const;  ///< valid until the next step
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string_view name(int column) const;  ///< of a column, as the query names it

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  [[nodiscard]] Error error() const;
  void need_memory() const;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  bool bind_failed_ = false;
};

/// Resets a statement at the end of the scope, however that is left: without a reset, it keeps a transaction open.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.reset(); }
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;

 private:
  Statement& statement_;
};

/// Runs `body` (a function that returns Status) as one transaction: all of it or, if anything fails or throws,
/// nothing.
template <class Body>
Status transaction(Database& database, Body body) {
  struct Undo {
    ~Undo() {
      if (!done) database.roll_back();
    }
    Database& database;
    bool done = false;
  } undo{database};
  database.roll_back();  // in case one could not be undone when it failed
  if (auto begun = database.exec("BEGIN IMMEDIATE"); !begun) return begun;
  Status status = body();
  if (status) status = database.exec("COMMIT");
  undo.done = status.has_value();
  return status;
}

}  // namespace vramtrack::sql
