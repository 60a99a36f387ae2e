#include "store/catalog_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "store/rows.hpp"

namespace vramtrack {
namespace {

/// While the disk refuses, the names of this many series that have come and gone are kept until they can be written.
constexpr std::size_t kWaiting = 4096;

}  // namespace

Result<CatalogWriter> CatalogWriter::open(sql::Database& database, const Catalog& catalog) {
  CatalogWriter writer(catalog);
  const auto last = database.integer("SELECT max(id) FROM series");
  if (!last) return fail(last.error());
  if (last->value_or(0) < 0 || last->value_or(0) >= UINT32_MAX) return fail("table series: an id out of range");
  writer.last_id_ = static_cast<std::uint32_t>(last->value_or(0));
  const std::string find =
      std::string(rows::kSelectSeries) + "WHERE metric=? AND device_id=? AND pid=? AND pid_start_ticks=?";
  for (const auto& [statement, text] :
       {std::pair{&writer.find_series_, std::string_view(find)}, std::pair{&writer.put_series_, rows::kPutSeries},
        std::pair{&writer.put_device_, rows::kPutDevice}, std::pair{&writer.put_process_, rows::kPutProcess}}) {
    auto prepared = database.prepare(text);
    if (!prepared) return fail(prepared.error());
    *statement = std::move(*prepared);
  }
  return writer;
}

void CatalogWriter::collect() {
  if (collected_revision_ == catalog_->revision()) return;
  for (; next_series_ < catalog_->size(); ++next_series_) {
    const auto id = static_cast<SeriesId>(next_series_);
    if (catalog_->holds(id)) series_.try_emplace(next_series_, Series{catalog_->key(id), 0});
  }
  catalog_->processes_since(collected_revision_, [&](const ProcessInfo& info) {
    const ProcessId id{info.pid, info.start_ticks};
    Process& process = processes_[id];
    if (process.used && !process.unwritten) unwritten_processes_.push_back(id);
    process.unwritten = info;
  });
  collected_revision_ = catalog_->revision();
  // Reached only while the disk refuses: otherwise committed() has forgotten them.
  if (series_.size() > 2 * catalog_->live() + kWaiting) {
    forget_retired();
    const std::size_t excess = std::max(unwritten_series_.size(), kWaiting) - kWaiting;
    unwritten_series_.erase(unwritten_series_.begin(), unwritten_series_.begin() + static_cast<std::ptrdiff_t>(excess));
  }
}

Result<std::uint32_t> CatalogWriter::id_of(SeriesId series) {
  collect();
  const auto it = series_.find(index_of(series));
  if (it == series_.end()) return 0;
  Series& known = it->second;
  if (known.file_id != 0) return known.file_id;
  const SeriesKey& key = known.key;
  if (!key.host.empty())
    return fail(fmt::format(
        "series of host {}: a store holds the series of one machine; give each machine its own store", key.host));
  find_series_.bind(1, to_string(key.metric)).bind(2, std::string_view(key.device_id));
  find_series_.bind(3, std::int64_t{key.pid}).bind(4, static_cast<std::int64_t>(key.pid_start_ticks));
  const sql::ResetAtEnd reset_at_end(find_series_);
  const auto found = find_series_.step();
  if (!found) return fail(found.error());
  // Handed out last, when nothing can fail any more: an id that was given out but not kept would name nothing.
  std::uint32_t file_id = *found ? static_cast<std::uint32_t>(find_series_.integer(0)) : 0;
  if (file_id == 0) {
    // A key that was retired and interned again may already be waiting to be written.
    const auto same = std::find_if(unwritten_series_.begin(), unwritten_series_.end(),
                                   [&](const auto& waiting) { return waiting.second == key; });
    if (same != unwritten_series_.end()) {
      file_id = same->first;
    } else {
      if (last_id_ == UINT32_MAX) return fail("table series: full");
      unwritten_series_.emplace_back(last_id_ + 1, key);
      file_id = ++last_id_;
    }
  }
  if (key.pid != 0) {
    const ProcessId id{key.pid, key.pid_start_ticks};
    Process& process = processes_[id];
    if (!process.used && process.unwritten) unwritten_processes_.push_back(id);
    process.used = true;
  }
  known.file_id = file_id;
  return file_id;
}

Status CatalogWriter::write() {
  collect();
  for (const auto& [id, key] : unwritten_series_) {
    rows::bind_series(put_series_, id, key);
    if (auto s = put_series_.run(); !s) return s;
  }
  for (const ProcessId& id : unwritten_processes_) {
    const auto it = processes_.find(id);
    if (it == processes_.end() || !it->second.unwritten) continue;
    rows::bind_process(put_process_, *it->second.unwritten);
    if (auto s = put_process_.run(); !s) return s;
  }
  new_device_revision_ = catalog_->device_revision();
  if (new_device_revision_ == device_revision_) return {};
  for (const DeviceInfo& device : catalog_->devices()) {
    rows::bind_device(put_device_, device);
    if (auto s = put_device_.run(); !s) return s;
  }
  return {};
}

void CatalogWriter::committed() {
  unwritten_series_.clear();
  for (const ProcessId& id : unwritten_processes_)
    if (const auto it = processes_.find(id); it != processes_.end()) it->second.unwritten.reset();
  unwritten_processes_.clear();
  device_revision_ = new_device_revision_;
  // Only when half of them are gone, so that a sweep costs no more than adding them did.
  if (series_.size() > 2 * catalog_->live() + 64) forget_retired();
}

void CatalogWriter::forget_retired() {
  std::erase_if(series_, [&](const auto& entry) { return !catalog_->holds(static_cast<SeriesId>(entry.first)); });
  std::erase_if(processes_,
                [&](const auto& entry) { return catalog_->process(entry.first.first, entry.first.second) == nullptr; });
  std::erase_if(unwritten_processes_, [&](const ProcessId& id) { return !processes_.contains(id); });
}

}  // namespace vramtrack
