#include "agent/acknowledgements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.hpp"
#include "core/regular_file.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using json = Json;

constexpr std::size_t kMost = 4096;
constexpr std::string_view kSchema = "vramtrack.acknowledged.v1";

}  // namespace

std::string acknowledgements_path(const std::string& store_path) {
  return store_path + ".acknowledged.json";
}

Status Acknowledgements::take(const std::string* text) {
  if (text == nullptr) {
    table_.clear();
    return {};
  }
  const auto not_ours = [&] {
    return fail(fmt::format("{} is not a file of acknowledgements ({}); move it away to start a new one", file_.path(),
                            kSchema));
  };
  try {
    const json file = json::parse(*text).value_or(nullptr);
    if (file.value("schema", "") != kSchema || !file.at("alerts").is_object()) return not_ours();
    Table table;
    for (const auto& [id, entry] : file.at("alerts").items()) {
      const auto time = parse_exact_time(entry.get<std::string>("time"));
      if (time) table[id] = {*time, entry.value("by", ""), entry.value("note", "")};
    }
    table_ = std::move(table);
  } catch (const JsonMismatch&) {
    return not_ours();
  }
  return {};
}

Status Acknowledgements::change(Table next) {
  if (file_.is_in_memory()) {
    table_ = std::move(next);
    file_.changed();
    return {};
  }
  json alerts = json::object();
  for (const auto& [id, a] : next) alerts[id] = {{"time", exact_time(a.time)}, {"by", a.by}, {"note", a.note}};
  const json file = {{"schema", kSchema}, {"alerts", alerts}};
  return file_.replace(json_text(file, 1) + '\n', [this](const std::string* text) { return take(text); });
}

std::optional<Acknowledgement> Acknowledgements::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  // If the file cannot be read now, the content read before is kept.
  [[maybe_unused]] const Status fresh = refresh();
  const auto it = table_.find(id);
  if (it == table_.end()) return std::nullopt;
  return it->second;
}

Status Acknowledgements::set(const std::string& id, Acknowledgement acknowledgement) {
  const std::lock_guard lock(mutex_);
  const auto alone = lock_beside(file_.path());
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  next[id] = std::move(acknowledgement);
  if (next.size() > kMost)
    next.erase(std::min_element(next.begin(), next.end(),
                                [](const auto& a, const auto& b) { return a.second.time < b.second.time; }));
  return change(std::move(next));
}

Status Acknowledgements::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto alone = lock_beside(file_.path());
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  if (next.erase(id) == 0) return {};
  return change(std::move(next));
}

std::uint64_t Acknowledgements::revision() {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const Status fresh = refresh();
  return file_.revision();
}

}  // namespace vramtrack::agent
