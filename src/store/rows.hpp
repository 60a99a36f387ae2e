// One row each of the store's small tables: how the types of core/ are bound to SQL and read back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/verdict.hpp"
#include "store/sqlite.hpp"

namespace vramtrack::rows {

// Each statement takes what the bind_ function of the same name binds. An empty field never erases a known value.
extern const std::string_view kPutDevice;
extern const std::string_view kPutProcess;
extern const std::string_view kPutSeries;
extern const std::string_view kPutEvent;

std::string_view put_alert();

void bind_device(sql::Statement& to, const DeviceInfo& device);
void bind_process(sql::Statement& to, const ProcessInfo& process);
void bind_series(sql::Statement& to, std::uint32_t store_id, const SeriesKey& key);
/// The column `text` of an event.
std::string event_text(const Event& event);
/// `text`, the event's own, must live until the statement has run.
void bind_event(sql::Statement& to, const Event& event, std::string_view text);
void bind_alert(sql::Statement& to, std::uint32_t store_id, const Alert& alert);

/// A column of table alert, derived from the declared fields of Alert and Finding (core/verdict_fields.hpp).
struct AlertColumn {
  std::string name;
  std::string_view type;  ///< as in ALTER TABLE ADD COLUMN
};
/// In the order in which bind_alert binds them.
std::vector<AlertColumn> alert_columns();

// Each select returns the columns that the read_ function of the same name takes; append WHERE or ORDER BY.
extern const std::string_view kSelectDevice;
extern const std::string_view kSelectProcess;
extern const std::string_view kSelectSeries;
extern const std::string_view kSelectEvent;
extern const std::string_view kSelectAlert;

/// A row of table series, including columns id, first_ns and last_ns. first_ns > last_ns: nothing packed yet.
struct SeriesRow {
  std::uint32_t id = 0;
  SeriesKey key;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
};

DeviceInfo read_device(const sql::Statement& row);
ProcessInfo read_process(const sql::Statement& row);
Result<SeriesRow> read_series(const sql::Statement& row);
Result<Event> read_event(const sql::Statement& row);
/// `alert.series` stays 0; `store_id` is its id in the file. If an older file lacks a column, its field stays as it
/// is.
Result<Alert> read_alert(const sql::Statement& row, std::uint32_t& store_id);

}  // namespace vramtrack::rows
