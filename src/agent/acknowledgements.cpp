#include "agent/acknowledgements.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/errno_words.hpp"
#include "core/json.hpp"
#include "core/regular_file.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using json = Json;

constexpr std::size_t kMost = 4096;
constexpr std::string_view kSchema = "vramtrack.acknowledged.v1";

constexpr std::size_t kMostBytes = 8U << 20U;

}  // namespace

std::string acknowledgements_path(const std::string& store_path) {
  return store_path + ".acknowledged.json";
}

Status Acknowledgements::refresh() {
  if (path_.empty()) return {};
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0) {
    if (errno != ENOENT) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
    if (seen_ns_ >= 0) {
      table_.clear();
      seen_ns_ = -1;
      ++revision_;
    }
    return {};
  }
  const std::int64_t changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (changed_ns == seen_ns_ && info.st_ino == seen_inode_) return {};
  const auto text = read_regular_file(path_, kMostBytes, Links::refused);
  if (!text) return fail(text.error());
  if (!*text) return {};
  const auto not_ours = [&] {
    return fail(
        fmt::format("{} is not a file of acknowledgements ({}); move it away to start a new one", path_, kSchema));
  };
  try {
    const json file = json::parse(**text).value_or(nullptr);
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
  seen_ns_ = changed_ns;
  seen_inode_ = info.st_ino;
  ++revision_;
  return {};
}

Status Acknowledgements::write(const Table& table) {
  json alerts = json::object();
  for (const auto& [id, a] : table) alerts[id] = {{"time", exact_time(a.time)}, {"by", a.by}, {"note", a.note}};
  const json file = {{"schema", kSchema}, {"alerts", alerts}};
  if (Status written = replace_file(path_, json_text(file, 1) + '\n'); !written) return fail(written.error());
  return refresh();
}

std::optional<Acknowledgement> Acknowledgements::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  // A file that cannot be read now leaves what was read before.
  [[maybe_unused]] const Status fresh = refresh();
  const auto it = table_.find(id);
  if (it == table_.end()) return std::nullopt;
  return it->second;
}

Status Acknowledgements::set(const std::string& id, Acknowledgement acknowledgement) {
  const std::lock_guard lock(mutex_);
  const auto alone = lock_beside(path_);
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  next[id] = std::move(acknowledgement);
  if (next.size() > kMost)
    next.erase(std::min_element(next.begin(), next.end(),
                                [](const auto& a, const auto& b) { return a.second.time < b.second.time; }));
  if (!path_.empty()) return write(next);
  table_ = std::move(next);
  ++revision_;
  return {};
}

Status Acknowledgements::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto alone = lock_beside(path_);
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  if (next.erase(id) == 0) return {};
  if (!path_.empty()) return write(next);
  table_ = std::move(next);
  ++revision_;
  return {};
}

std::uint64_t Acknowledgements::revision() {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const Status fresh = refresh();
  return revision_;
}

}  // namespace vramtrack::agent
