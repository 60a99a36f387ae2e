// The row of table alert, produced by visiting the declared fields: every declared field is bound and read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/verdict_fields.hpp"
#include "store/rows.hpp"

namespace vramtrack::rows {
namespace {

/// "oom_*_s" with `part` for the star.
std::string column_of_part(std::string_view columns, std::string_view part) {
  const std::size_t star = columns.find('*');
  return fmt::format("{}{}{}", columns.substr(0, star), part, columns.substr(star + 1));
}

/// Calls take(field, value) for each stored field of `object`, including those of its finding.
template <class Object, class Take>
void for_each_stored(Object& object, Take&& take) {
  for_each_field<std::remove_const_t<Object>>([&](const auto& field) {
    if constexpr (std::remove_cvref_t<decltype(field)>::kStored) {
      auto& value = field.of(object);
      if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, Finding>)
        for_each_stored(value, take);
      else
        take(field, value);
    }
  });
}

/// The type of the value, or of what the optional would hold.
template <class T>
struct Held {
  using type = T;
};
template <class T>
struct Held<std::optional<T>> {
  using type = T;
};

/// The columns of one field, with their SQL types. A figure that is not finite is NULL in SQLite, hence no NOT NULL.
template <class Get, class T>
std::vector<AlertColumn> columns_of(const Field<Get>& field, const T&) {
  using Value = typename Held<T>::type;
  constexpr bool kOptional = !std::same_as<T, Value>;
  const std::string name(field.options.columns.empty() ? field.name : field.options.columns);
  if constexpr (std::same_as<Value, Interval>) {
    const std::string_view columns = field.options.columns;
    return {{column_of_part(columns, "low"), "REAL"},
            {column_of_part(columns, "mid"), "REAL"},
            {column_of_part(columns, "high"), "REAL"}};
  } else if constexpr (std::same_as<Value, Timestamp>) {
    return {{name + "_ns", kOptional ? "INTEGER" : "INTEGER NOT NULL"}};
  } else if constexpr (std::same_as<Value, double>) {
    return {{name, "REAL"}};
  } else if constexpr (std::integral<Value>) {
    return {{name, kOptional ? "INTEGER" : "INTEGER NOT NULL"}};
  } else {
    return {{name, kOptional ? "TEXT" : "TEXT NOT NULL"}};
  }
}

struct Binder {
  sql::Statement& to;
  int index = 2;  ///< 1 is the series

  void value(double v) { to.bind(index++, v); }
  void value(bool v) { to.bind(index++, std::int64_t{v}); }
  void value(Timestamp v) { to.bind(index++, std::int64_t{v.time_since_epoch().count()}); }
  void value(const std::string& v) { to.bind(index++, std::string_view(v)); }
  void value(const Interval& v) {
    for (const double part : {v.low, v.mid, v.high}) value(part);
  }
  template <class E>
  requires std::is_enum_v<E>
  void value(E v) { to.bind(index++, to_string(v)); }
  template <class T>
  void value(const std::optional<T>& v) {
    if (v) return value(*v);
    index += std::same_as<T, Interval> ? 3 : 1;  // a parameter that is not bound is NULL
  }
};

/// The columns of a row by name. They mostly come in the order of the fields, so a search begins after the last match.
class Columns {
 public:
  explicit Columns(const sql::Statement& row) : row_(row), count_(row.columns()) {}

  /// The column's number; -1 if the file has none of that name.
  int find(std::string_view name) {
    for (int i = 0; i < count_; ++i, next_ = (next_ + 1) % count_)
      if (row_.name(next_) == name) return next_;
    return -1;
  }

 private:
  const sql::Statement& row_;
  int count_;
  int next_ = 0;
};

struct Reader {
  const sql::Statement& row;
  Columns& columns;
  Status status;

  void value(int at, double& v) const { v = row.real(at); }
  void value(int at, bool& v) const { v = row.integer(at) != 0; }
  void value(int at, Timestamp& v) const { v = Timestamp(Duration(row.integer(at))); }
  void value(int at, std::string& v) const { v = std::string(row.text(at)); }
  template <class E>
  requires std::is_enum_v<E>
  void value(int at, E& v) {
    const auto words = words_of<E>();
    const auto known = std::find(words.begin(), words.end(), row.text(at));
    if (known == words.end())
      status = fail(fmt::format("unknown {} '{}': expected {}", row.name(at), row.text(at), fmt::join(words, ", ")));
    else
      v = static_cast<E>(known - words.begin());
  }

  template <class Get, class T>
  void operator()(const Field<Get>& field, T& into) {
    using Value = typename Held<T>::type;
    const auto named = columns_of(field, into);
    const int first = columns.find(named.front().name);
    if (first < 0) return;
    if constexpr (!std::same_as<T, Value>) {
      into.reset();
      if (row.is_null(first)) return;
      into.emplace();
      part(named, first, *into);
    } else {
      part(named, first, into);
    }
  }

 private:
  template <class Value>
  void part(const std::vector<AlertColumn>& named, int first, Value& into) {
    if constexpr (std::same_as<Value, Interval>) {
      into.low = row.real(first);
      if (const int at = columns.find(named[1].name); at >= 0) into.mid = row.real(at);
      if (const int at = columns.find(named[2].name); at >= 0) into.high = row.real(at);
    } else {
      value(first, into);
    }
  }
};

std::string put_statement() {
  std::string names = "series_id";
  std::string marks = "?";
  for (const AlertColumn& column : alert_columns()) {
    names += ',' + column.name;
    marks += ",?";
  }
  return fmt::format("INSERT OR REPLACE INTO alert({}) VALUES({})", names, marks);
}

}  // namespace

std::vector<AlertColumn> alert_columns() {
  std::vector<AlertColumn> out;
  const Alert none;
  for_each_stored(none, [&](const auto& field, const auto& value) {
    for (AlertColumn& column : columns_of(field, value)) out.push_back(std::move(column));
  });
  return out;
}

std::string_view put_alert() {
  static const std::string statement = put_statement();
  return statement;
}

const std::string_view kSelectAlert = "SELECT * FROM alert ";

void bind_alert(sql::Statement& to, std::uint32_t store_id, const Alert& alert) {
  to.bind(1, std::int64_t{store_id});
  for_each_stored(alert, [binder = Binder{to}](const auto&, const auto& value) mutable { binder.value(value); });
}

Result<Alert> read_alert(const sql::Statement& row, std::uint32_t& store_id) {
  Columns columns(row);
  store_id = static_cast<std::uint32_t>(row.integer(columns.find("series_id")));
  Alert alert;
  Reader reader{row, columns, {}};
  for_each_stored(alert, [&](const auto& field, auto& value) { reader(field, value); });
  if (!reader.status) return fail(reader.status.error());
  return alert;
}

}  // namespace vramtrack::rows
