#include "live/sources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/command.hpp"
#include "core/option.hpp"

namespace vramtrack {

namespace {

bool wanted(const SourcesConfig& config, std::string_view name) {
  return config.enabled.empty() ||
         std::find(config.enabled.begin(), config.enabled.end(), name) != config.enabled.end();
}

/// Errors read "what: why; next step". One line for all sources has room only for the first part: `doctor` shows the
/// steps.
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

std::string no_gpu_to_watch(std::string_view command, const std::string& reasons) {
  return fmt::format("no GPU to watch: {}; {} shows what to do, and 'vramtrack {} {}' shows a simulated job that leaks",
                     reasons, command_hint("vramtrack doctor"), command, name_of(Option::or_simulate));
}

Progress poll_live(LiveSource& live, Timestamp now, Batch& batch, const Warn& warn) {
  const Result<Progress> polled = live.source->poll(now, batch);
  const std::string error = polled ? std::string() : polled.error().message;
  if (error != live.error) {
    warn(error.empty() ? fmt::format("{} answers again", live.name) : fmt::format("{}: {}", live.name, error));
    live.error = error;
  }
  report_new(live.source->notes(), live.reported, warn);
  return polled ? *polled : Progress::more;
}

void report_new(const SourceNotes& notes, std::set<std::string>& reported, const Warn& warn) {
  for (const std::string& warning : notes.warnings)
    if (reported.insert(warning).second) warn(warning);
  // Over months, warnings may contain new figures each time, so only current ones are remembered.
  constexpr std::size_t kMost = 256;
  if (reported.size() > std::max(kMost, notes.warnings.size()))
    reported = std::set<std::string>(notes.warnings.begin(), notes.warnings.end());
}

std::vector<std::string> standing_warnings(const std::vector<LiveSource>& sources) {
  std::vector<std::string> out;
  for (const LiveSource& live : sources) {
    if (!live.error.empty()) out.push_back(fmt::format("{}: {}", live.name, live.error));
    if (!live.source) continue;
    const std::vector<std::string>& warnings = live.source->notes().warnings;
    out.insert(out.end(), warnings.begin(), warnings.end());
  }
  return out;
}

}  // namespace vramtrack
