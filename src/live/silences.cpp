#include "live/silences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/json.hpp"
#include "core/order.hpp"
#include "core/printable.hpp"
#include "core/regular_file.hpp"
#include "report/view_json.hpp"

namespace vramtrack {
namespace {

using json = Json;

constexpr std::string_view kSchema = "vramtrack.silences.v1";
constexpr std::chrono::hours kLongest{24 * 366};
/// For a silence that does not end: the latest time that all our formats can write.
const Timestamp kNever = Timestamp{std::chrono::sys_days{std::chrono::year{2200} / 1 / 1}};

struct TextField {
  const char* name;
  std::size_t most_bytes;
  std::string Silence::*member;
};
constexpr TextField kTexts[] = {{"gpu", 128, &Silence::gpu},
                                {"command", 256, &Silence::command},
                                {"user", 64, &Silence::user},
                                {"by", 64, &Silence::by},
                                {"comment", 512, &Silence::comment}};

json object_of(const Silence& s) {
  json out = {{"id", s.id}};
  for (const TextField& field : kTexts) out[field.name] = s.*field.member;
  out["pid"] = s.pid;
  out["all"] = s.all;
  out["begins"] = s.begins == Timestamp{} ? json(nullptr) : json(exact_time(s.begins));
  out["ends"] = s.ends == kNever ? json(nullptr) : json(exact_time(s.ends));
  return out;
}

Result<Silence> silence_of(const json& in) {
  if (!in.is_object()) return fail(R"(a silence must be a JSON object such as {"gpu": "0", "ends": "..."})");
  Silence out;
  if (const json* const gpu = in.find("gpu"); gpu != nullptr && gpu->is_number_unsigned())
    out.gpu = std::to_string(gpu->get<std::uint64_t>());
  for (const TextField& field : kTexts) {
    const json* const it = in.find(field.name);
    if (it == nullptr || it->is_null() || !(out.*field.member).empty()) continue;
    if (!it->is_string() || it->text().size() > field.most_bytes)
      return fail(fmt::format("'{}' must be a string of at most {} bytes", field.name, field.most_bytes));
    out.*field.member = it->text();
  }
  if (const json* const it = in.find("id"); it != nullptr && it->is_string() && it->text().size() <= 64)
    out.id = it->text();
  if (const json* const it = in.find("pid"); it != nullptr && !it->is_null()) {
    if (!it->is_number_unsigned() || it->get<std::uint64_t>() > UINT32_MAX) return fail("'pid' must be a process id");
    out.pid = it->get<std::uint32_t>();
  }
  if (const json* const it = in.find("all"); it != nullptr && !it->is_null()) {
    if (!it->is_boolean()) return fail("'all' must be true or false");
    out.all = it->get<bool>();
  }
  for (const auto& [name, member] : {std::pair{"begins", &Silence::begins}, std::pair{"ends", &Silence::ends}}) {
    const json* const it = in.find(name);
    // Without an end: it comes from the configuration.
    if (it != nullptr && it->is_null() && member == &Silence::ends) out.ends = kNever;
    if (it == nullptr || it->is_null()) continue;
    const auto time = it->is_string() ? parse_exact_time(it->text()) : std::nullopt;
    if (!time) return fail(fmt::format("'{}' must be a time such as 2026-01-02T03:04:05Z", name));
    out.*member = *time;
  }
  return out;
}

bool matches(const Silence& s, const std::optional<Regex>& command, const SilenceSubject& subject) {
  const auto is_gpu = [&] {
    return s.gpu == subject.device_id || (subject.device_index && s.gpu == std::to_string(*subject.device_index));
  };
  return (s.gpu.empty() || is_gpu()) && (!command || command->found_in(subject.command)) &&
         (s.user.empty() || s.user == subject.user) && (s.pid == 0 || s.pid == subject.pid);
}

}  // namespace

bool Silence::endless() const {
  return ends >= kNever;
}

SilenceSubject silence_subject(const View& view, const SeriesView& series) {
  SilenceSubject out;
  out.device_id = series.key.device_id;
  out.device_index = series.device.index;
  const auto take = [&out](const ProcessInfo& process) {
    out.pid = process.pid;
    out.command = process.command.empty() ? process.name : process.command;
    out.user = process.user;
  };
  if (series.process) take(*series.process);
  if (series.key.pid != 0 || !series.verdict.suspect) return out;
  const Suspect& suspect = *series.verdict.suspect;
  out.pid = suspect.pid;
  out.command = suspect.command;
  for (const SeriesView& s : view.series)
    if (suspect.pid != 0 && s.process && s.key.host == series.key.host && s.key.pid == suspect.pid &&
        s.key.pid_start_ticks == suspect.pid_start_ticks)
      take(*s.process);
  return out;
}

Status check_silence(const Silence& s, Timestamp now) {
  for (const TextField& field : kTexts)
    if (printable(s.*field.member) != s.*field.member)
      return fail(fmt::format("'{}' must not contain control characters", field.name));
  const bool any = !s.gpu.empty() || !s.command.empty() || !s.user.empty() || s.pid != 0;
  if (!any && !s.all) return fail("choose what to silence: a GPU, a command, a user or a pid; or all");
  if (any && s.all) return fail("'all' silences everything: leave out either 'all' or the other conditions");
  const Timestamp begins = std::max(s.begins, now);
  if (s.ends <= s.begins) return fail("the silence must end after it begins");
  if (s.ends <= now) return fail("the silence must end in the future");
  if (begins > now + kLongest || s.ends > begins + kLongest)
    return fail("a silence must begin within a year and last at most a year; for longer, use notify.silenced-gpus");
  if (const auto regex = Regex::compile(s.command); !regex) return fail(regex.error());
  return {};
}

std::string silences_path(const std::string& store_path) {
  return store_path + ".silences.json";
}

std::string silence_json(const Silence& silence) {
  return json_text(object_of(silence));
}

Result<Silence> parse_silence(std::string_view text) {
  return silence_of(json::parse(text).value_or(nullptr));
}

Result<Silence> asked_silence(std::string_view text) {
  const json in = json::parse(text).value_or(nullptr);
  const json known = object_of({});
  for (const auto& [name, value] : in.items())
    if (known.find(name) == nullptr)
      return fail(
          printable(fmt::format("unknown field '{}'; a silence has gpu, command, user, pid, all, begins, ends, "
                                "by and comment",
                                name)));
  auto silence = silence_of(in);
  if (silence && silence->ends == Timestamp{}) return fail("'ends' is missing: a time such as 2026-01-02T03:04:05Z");
  return silence;
}

Result<std::string> gpu_of(const View& view, const std::string& name) {
  std::vector<std::string> found;
  std::vector<std::string> there;
  for (const SeriesView& s : view.series) {
    if (s.key.metric != Metric::device_used) continue;
    const std::string index = s.device.index ? std::to_string(*s.device.index) : std::string();
    if (name == s.key.device_id || name == index) return name;
    if (s.key.device_id.starts_with(name)) found.push_back(s.key.device_id);
    there.push_back(index.empty() ? s.key.device_id : fmt::format("{} ({})", index, s.key.device_id));
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1)
    return fail(printable(fmt::format("'{0}' is not unique: the names of {1} GPUs begin with it", name, found.size())));
  return fail(printable(fmt::format("there is no GPU '{}' here; give one of: {}", name, fmt::join(there, ", "))));
}

Result<Silences::Entry> Silences::entry_of(Silence silence) {
  Entry out;
  if (!silence.command.empty()) {
    auto regex = Regex::compile(silence.command);
    if (!regex) return fail(std::move(regex.error()));
    out.command = std::move(*regex);
  }
  out.silence = std::move(silence);
  return out;
}

void Silences::configure(const NotifyConfig& config) {
  std::vector<Entry> next;
  Silence silence;
  silence.ends = kNever;
  silence.by = "the configuration";
  silence.id = "notify.silenced-gpus";
  for (const std::string& gpu : config.silenced_gpus) {
    silence.gpu = gpu;
    if (!gpu.empty()) next.push_back({silence, std::nullopt});
  }
  silence.gpu.clear();
  silence.id = "notify.silenced-commands";
  for (const std::string& command : config.silenced_commands) {
    silence.command = command;
    auto entry = entry_of(silence);
    if (entry && !command.empty()) next.push_back(std::move(*entry));
  }
  const std::lock_guard lock(mutex_);
  configured_ = std::move(next);
  file_.changed();
}

Status Silences::take(const std::string* text) {
  if (text == nullptr) {
    entries_.clear();
    return {};
  }
  const json file = json::parse(*text).value_or(nullptr);
  const json* const schema = file.find("schema");
  const json* const list = file.find("silences");
  if (schema == nullptr || !schema->is_string() || schema->text() != kSchema || list == nullptr || !list->is_array())
    return fail(
        fmt::format("{} is not a file of silences ({}); move it away to start a new one", file_.path(), kSchema));
  std::vector<Entry> next;
  for (const json& one : *list) {
    auto silence = silence_of(one);
    if (!silence) return fail(silence.error().during("reading " + file_.path()));
    auto entry = entry_of(std::move(*silence));
    if (!entry) return fail(entry.error().during("reading " + file_.path()));
    if (next.size() < kMost) next.push_back(std::move(*entry));
  }
  entries_ = std::move(next);
  return {};
}

Status Silences::write(std::vector<Entry> next, Timestamp now) {
  std::erase_if(next, [&](const Entry& e) { return e.silence.ends <= now; });
  if (file_.is_in_memory()) {
    entries_ = std::move(next);
    file_.changed();
    return {};
  }
  json list = json::array();
  for (const Entry& e : next) list.push_back(object_of(e.silence));
  const json file = {{"schema", kSchema}, {"silences", list}};
  return file_.replace(json_text(file, 1) + '\n', [this](const std::string* text) { return take(text); });
}

std::vector<Silence> Silences::list(Timestamp now) {
  const std::lock_guard lock(mutex_);
  // If a file cannot be read now, what was read before stays.
  [[maybe_unused]] const Status fresh = refresh();
  std::vector<Silence> out;
  for (const Entry& e : entries_)
    if (e.silence.ends > now) out.push_back(e.silence);
  order(out, [](const Silence& a, const Silence& b) { return a.begins < b.begins; });
  for (const Entry& e : configured_) out.push_back(e.silence);
  return out;
}

Result<Silence> Silences::add(Silence silence, Timestamp now) {
  if (silence.begins == Timestamp{}) silence.begins = now;
  if (Status good = check_silence(silence, now); !good) return fail(good.error());
  std::random_device random;
  silence.id = fmt::format("{:08x}", random());
  auto entry = entry_of(silence);
  if (!entry) return fail(entry.error());
  const std::lock_guard lock(mutex_);
  const auto alone = lock_beside(file_.path());
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fail(fresh.error());
  std::vector<Entry> next = entries_;
  std::erase_if(next, [&](const Entry& e) { return e.silence.ends <= now; });
  if (next.size() >= kMost) return fail(fmt::format("there are {} silences already; end some of them", kMost));
  next.push_back(std::move(*entry));
  if (Status written = write(std::move(next), now); !written) return fail(written.error());
  return silence;
}

Result<bool> Silences::end(std::string_view id, Timestamp now) {
  const std::lock_guard lock(mutex_);
  for (const Entry& e : configured_)
    if (e.silence.id == id) return fail(fmt::format("it is set in the configuration; change {} to end it", id));
  const auto alone = lock_beside(file_.path());
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fail(fresh.error());
  std::vector<Entry> next = entries_;
  if (std::erase_if(next, [&](const Entry& e) { return e.silence.id == id && e.silence.ends > now; }) == 0)
    return false;
  if (Status written = write(std::move(next), now); !written) return fail(written.error());
  return true;
}

std::optional<Silence> Silences::covering(const SilenceSubject& subject, Timestamp now) {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const Status fresh = refresh();
  const Silence* found = nullptr;
  for (const std::vector<Entry>* list : {&entries_, &configured_})
    for (const Entry& e : *list)
      if (e.silence.begins <= now && now < e.silence.ends && matches(e.silence, e.command, subject) &&
          (found == nullptr || e.silence.ends > found->ends))
        found = &e.silence;
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::string Silences::state(Timestamp now) {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const Status fresh = refresh();
  const auto active = std::count_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return e.silence.begins <= now && now < e.silence.ends; });
  return fmt::format("{}.{}", file_.revision(), active);
}

}  // namespace vramtrack
