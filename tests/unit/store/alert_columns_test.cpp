// The store's alerts and the declared fields (core/verdict_fields.hpp): the tables agree, and every field comes back.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "core/verdict_fields.hpp"
#include "paths.hpp"
#include "store/rows.hpp"
#include "store/schema.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

/// A value that is never a default, different with each call.
class Filler {
 public:
  void fill(bool& v) { v = true; }
  void fill(double& v) { v = 0.125 * ++count_; }
  void fill(std::string& v) { v = fmt::format("text {}", ++count_); }
  void fill(Timestamp& v) { v = Timestamp{Duration{1'767'600'000'000'000'000 + ++count_}}; }
  template <class E>
  requires std::is_enum_v<E>
  void fill(E& v) { v = static_cast<E>(words_of<E>().size() - 1); }
  template <class T>
  void fill(std::optional<T>& v) {
    fill(v.emplace());
  }
  template <HasFields T>
  void fill(T& v) {
    for_each_field<T>([&](const auto& field) {
      if constexpr (std::remove_cvref_t<decltype(field)>::kStored) fill(field.of(v));
    });
  }

 private:
  int count_ = 0;
};

template <class T>
void expect_same(const T& a, const T& b, std::string_view name) {
  if constexpr (HasFields<T>)
    for_each_field<T>([&](const auto& field) { expect_same(field.of(a), field.of(b), field.name); });
  else
    EXPECT_TRUE(a == b) << name << " is not what was stored";
}

class AlertRow : public testing::StoreTest {};

TEST_F(AlertRow, EveryDeclaredFieldOfAnAlertComesBack) {
  Alert full;
  Filler().fill(full);
  full.series = catalog.intern(testing::process_key(3, 77));
  Alert empty;
  empty.series = full.series;
  empty.raised = full.raised + Duration{1};
  const auto store = open();
  ASSERT_TRUE(store->record(full));
  ASSERT_TRUE(store->record(empty));

  auto reader = StoreReader::open(config.path);
  ASSERT_TRUE(reader);
  Catalog seen;
  const auto alerts = (*reader)->alerts(seen);
  ASSERT_TRUE(alerts) << alerts.error().message;
  ASSERT_EQ(alerts->size(), 2U);
  expect_same((*alerts)[0], full, "alert");
  expect_same((*alerts)[1], empty, "alert");
}

/// Schema 6 recorded only in words that memory had run out.
TEST_F(AlertRow, AnOlderStoreIsReadAndLearnsWhichAlertsEndedForWantOfMemory) {
  {
    auto database = sql::Database::open(config.path, sql::Database::Mode::write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(prepare_schema(*database, config.path, 6));
    for (const auto& [raised, ended, reason] :
         {std::tuple{1, "process_ended", "memory ran out at 23.9 GiB, and pid 4242 ended"},
          {2, "process_ended", "pid 4242 ended, and its memory was released"},
          {3, "withdrawn", "memory ran out at no time"}})
      ASSERT_TRUE(database->exec(
          fmt::format("INSERT INTO alert(series_id, raised_ns, cleared_ns, ended, severity, detector, leak, state, "
                      "pattern, spike, because, end_reason) VALUES(1, {}, 9, '{}', 'critical', 'judge', 1, 'leaking', "
                      "'gradual_leak', 'none', '', '{}')",
                      raised, ended, reason)
              .c_str()));
    ASSERT_TRUE(database->exec(
        "INSERT INTO series(id, metric, device_id, pid, pid_start_ticks) VALUES(1, 'device_used', 'GPU-1', 0, 0)"));
  }
  const auto read = [this] {
    auto reader = StoreReader::open(config.path);
    EXPECT_TRUE(reader);
    Catalog seen;
    auto alerts = (*reader)->alerts(seen);
    EXPECT_TRUE(alerts) << alerts.error().message;
    return std::move(*alerts);
  };
  for (const Alert& alert : read()) EXPECT_FALSE(alert.end_kind) << "a reader changes nothing";
  { const auto store = open(); }
  const std::vector<Alert> alerts = read();
  ASSERT_EQ(alerts.size(), 3U);
  EXPECT_EQ(alerts[0].end_kind, EndKind::out_of_memory);
  EXPECT_FALSE(alerts[1].end_kind);
  EXPECT_FALSE(alerts[2].end_kind);
}

TEST_F(AlertRow, TheTableHasTheDeclaredColumns) {
  const auto store = open();
  auto database = sql::Database::open(config.path, sql::Database::Mode::read);
  ASSERT_TRUE(database);
  std::map<std::string, std::string> types;
  auto query = database->prepare(
      "SELECT name, type || CASE WHEN \"notnull\" THEN ' NOT NULL' ELSE '' END FROM "
      "pragma_table_info('alert')");
  ASSERT_TRUE(query) << query.error().message;
  while (query->step().value()) types[std::string(query->text(0))] = std::string(query->text(1));
  for (const rows::AlertColumn& column : rows::alert_columns())
    EXPECT_EQ(types[column.name], column.type)
        << "mend src/store/schema.cpp: a new step and a higher kSchemaVersion with ALTER TABLE alert ADD COLUMN "
        << column.name << ' ' << column.type;
}

TEST(StoreDocument, NamesTheColumnsOfAnAlert) {
  std::stringstream text;
  text << std::ifstream(source_dir() + "/docs/formats/store.md").rdbuf();
  const std::string document = text.str();
  const auto begin = document.find("| `alert(");
  ASSERT_NE(begin, std::string::npos);
  const std::string row = document.substr(begin, document.find(")`", begin) - begin) + ',';
  const auto columns = rows::alert_columns();
  const auto is_column = [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(), [&](const auto& column) { return column.name == name; });
  };
  for_each_field<Alert>([&](const auto& field) {
    if constexpr (!std::remove_cvref_t<decltype(field)>::kStored) {
      if (is_column(field.name)) return;  // the old name of a field that is stored
      EXPECT_EQ(row.find(field.name), std::string::npos) << field.name << " is derived, no column";
    }
  });
  // "oom_low_s", "oom_mid_s" and "oom_high_s" are written as "oom_*_s".
  for (const rows::AlertColumn& column : rows::alert_columns()) {
    std::string name = column.name;
    for (const std::string_view part : {"_low_", "_mid_", "_high_"})
      if (const auto found = name.find(part); found != std::string::npos) name.replace(found, part.size(), "_*_");
    EXPECT_THAT(row, ::testing::HasSubstr(' ' + name + ',')) << "mend docs/formats/store.md, table alert";
  }
}

}  // namespace
}  // namespace vramtrack
