#include "live/sources.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {

using std::chrono::steady_clock;

Timestamp StampClock::now() {
  const auto wall = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  const auto steady = steady_clock::now();
  if (last_ && wall > *last_) offset_ = Duration{0};  // set forward again
  if (last_ && wall + offset_ <= *last_) {
    const Timestamp expected = *last_ + (steady - last_steady_);
    offset_ = expected - wall;
    set_back_ = true;
  }
  last_ = wall + offset_;
  last_steady_ = steady;
  return *last_;
}

steady_clock::time_point next_deadline(steady_clock::time_point deadline, steady_clock::duration interval,
                                       steady_clock::time_point now) {
  return deadline + interval * std::max<std::int64_t>(1, (now - deadline + interval) / interval);
}

namespace {

bool wanted(const SourcesConfig& config, std::string_view name) {
  return config.enabled.empty() ||
         std::find(config.enabled.begin(), config.enabled.end(), name) != config.enabled.end();
}

/// Errors read "what: why; next step". In one line for all sources there is room for the first part: the
/// steps are doctor's to tell.
std::string without_next_step(const std::string& message) {
  return message.substr(0, message.find(';'));
}

}  // namespace

std::vector<LiveSource> open_live_sources(const SourcesConfig& config, Catalog& catalog, std::string& reasons) {
  std::vector<LiveSource> open;
  for (const SourceInfo* info : live_sources()) {
    if (!wanted(config, info->name)) continue;
    auto source = info->make(config, catalog);
    if (source)
      open.push_back({info->name, std::move(*source), {}, {}});
    else
      reasons +=
          fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", info->name, without_next_step(source.error().message));
  }
  return open;
}

void poll_live(LiveSource& live, Timestamp now, Batch& batch, const std::function<void(const std::string&)>& warn) {
  const Result<Progress> polled = live.source->poll(now, batch);
  const std::string error = polled ? std::string() : polled.error().message;
  if (error == live.error) return;
  warn(error.empty() ? fmt::format("{} answers again", live.name) : fmt::format("{}: {}", live.name, error));
  live.error = error;
}

void tell_new(const SourceNotes& notes, std::set<std::string>& told,
              const std::function<void(const std::string&)>& warn) {
  for (const std::string& warning : notes.warnings)
    if (told.insert(warning).second) warn(warning);
  // Months of warnings with ever new figures in them: only those that still stand are remembered.
  constexpr std::size_t kMost = 256;
  if (told.size() > std::max(kMost, notes.warnings.size()))
    told = std::set<std::string>(notes.warnings.begin(), notes.warnings.end());
}

}  // namespace vramtrack
