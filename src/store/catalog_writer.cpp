#include "store/catalog_writer.hpp"

#include <functional>
#include <string>
#include <string_view>

#include "store/rows.hpp"

namespace vramtrack {
namespace {

void mix(std::size_t& into, std::size_t with) {
  into ^= with + 0x9e3779b97f4a7c15U + (into << 6) + (into >> 2);
}

std::size_t fingerprint(std::initializer_list<const std::string*> texts) {
  std::size_t value = 1;
  for (const std::string* text : texts) mix(value, std::hash<std::string_view>{}(*text));
  return value;
}

std::size_t fingerprint(const DeviceInfo& d) {
  std::size_t value = fingerprint({&d.id, &d.name, &d.pci_bus_id, &d.parent_id});
  mix(value, d.index ? static_cast<std::size_t>(*d.index) + 1 : 0);
  mix(value, d.capacity_bytes ? *d.capacity_bytes + 1 : 0);
  return value;
}

std::size_t fingerprint(const ProcessInfo& p) {
  std::size_t value =
      fingerprint({&p.user, &p.command, &p.name, &p.kind, &p.cgroup, &p.container, &p.pod, &p.slurm_job, &p.framework});
  mix(value, p.ns_pid);
  return value;
}

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

Result<std::uint32_t> CatalogWriter::id_of(SeriesId series) {
  const std::uint32_t index = index_of(series);
  if (index < ids_.size() && ids_[index] != 0) return ids_[index];
  const SeriesKey& key = catalog_->key(series);
  find_series_.bind(1, to_string(key.metric)).bind(2, std::string_view(key.device_id));
  find_series_.bind(3, std::int64_t{key.pid}).bind(4, static_cast<std::int64_t>(key.pid_start_ticks));
  const auto found = find_series_.step();
  const std::int64_t known = found && *found ? find_series_.integer(0) : 0;
  find_series_.reset();
  if (!found) return fail(found.error());
  std::uint32_t id = static_cast<std::uint32_t>(known);
  if (!*found) {
    if (last_id_ == UINT32_MAX) return fail("table series: full");
    id = ++last_id_;
    unwritten_.emplace_back(id, series);
  }
  if (index >= ids_.size()) ids_.resize(catalog_->size(), 0);
  ids_[index] = id;
  return id;
}

Status CatalogWriter::write() {
  for (const auto& [id, series] : unwritten_) {
    rows::bind_series(put_series_, id, catalog_->key(series));
    if (auto s = put_series_.run(); !s) return s;
  }
  new_revision_ = catalog_->revision();
  new_devices_ = devices_;
  new_processes_ = processes_;
  if (described_ && new_revision_ == described_revision_) return {};

  const auto changed = [](std::vector<std::size_t>& known, std::size_t i, std::size_t print) {
    if (i < known.size() && known[i] == print) return false;
    if (i >= known.size()) known.resize(i + 1);
    known[i] = print;
    return true;
  };
  std::size_t i = 0;
  for (const DeviceInfo& device : catalog_->devices()) {
    if (!changed(new_devices_, i++, fingerprint(device))) continue;
    rows::bind_device(put_device_, device);
    if (auto s = put_device_.run(); !s) return s;
  }
  i = 0;
  for (const ProcessInfo& process : catalog_->processes()) {
    if (!changed(new_processes_, i++, fingerprint(process))) continue;
    rows::bind_process(put_process_, process);
    if (auto s = put_process_.run(); !s) return s;
  }
  return {};
}

void CatalogWriter::committed() {
  unwritten_.clear();
  described_ = true;
  described_revision_ = new_revision_;
  devices_.swap(new_devices_);
  processes_.swap(new_processes_);
}

}  // namespace vramtrack
