// report: what happened in a period, who leaks, what it will cost; from the store or from recordings.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/recorded.hpp"
#include "period/gather.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kNoLeak = 0;
constexpr int kLeak = 1;
constexpr int kFailed = 2;

Result<CostRules> cost_rules(const Options& o, const CostConfig& config, Timestamp now) {
  CostRules rules;
  rules.usd_per_gpu_hour = config.usd_per_gpu_hour;
  if (config.checkpoint_every_minutes > 0) rules.checkpoint_every_s = config.checkpoint_every_minutes * 60;
  if (o.checkpoint_every_s) rules.checkpoint_every_s = o.checkpoint_every_s;
  for (const std::string& text : o.last_checkpoints) {
    const std::size_t equals = text.find('=');
    CostRules::LastCheckpoint last;
    if (equals != std::string::npos) last.job = text.substr(0, equals);
    const std::string time = equals == std::string::npos ? text : text.substr(equals + 1);
    const auto moment = parse_moment("--last-checkpoint", time, o.timezone, now);
    if (!moment) return fail(moment.error());
    last.time = *moment;
    rules.last_checkpoints.push_back(std::move(last));
  }
  return rules;
}

/// --since and --until; what goes on being written is reported of its last day unless something else is said.
Result<TimeRange> period(const Options& o, bool is_ongoing, Timestamp now) {
  TimeRange range;
  for (const auto& [option, text, bound] :
       {std::tuple{"--since", &o.from, &range.from}, std::tuple{"--until", &o.to, &range.to}}) {
    if (text->empty()) continue;
    const auto moment = parse_moment(option, *text, o.timezone, now);
    if (!moment) return fail(moment.error());
    *bound = *moment;
  }
  if (o.from.empty() && is_ongoing) range.from = range.to.value_or(now) - std::chrono::hours{24};
  if (range.from && range.to && *range.from >= *range.to) return fail("--since is not before --until; exchange them");
  return range;
}

/// Keeps the devices of --gpu (index or id); an error when one of them is not there.
Status choose(PeriodReport& report, const std::vector<std::string>& gpus) {
  if (gpus.empty()) return {};
  std::set<std::string> wanted;
  std::string known;
  std::set<std::string> named;
  for (const std::string& gpu : gpus) {
    bool found = false;
    for (const PeriodSeries& s : report.series) {
      const bool same = s.view.key.device_id == gpu || (s.view.device.index && s.view.device.parent_id.empty() &&
                                                        std::to_string(*s.view.device.index) == gpu);
      if (same) wanted.insert(s.view.key.device_id);
      found = found || same;
      if (named.insert(s.view.key.device_id).second)
        known += fmt::format("{}{}", known.empty() ? "" : ", ",
                             s.view.device.index ? fmt::format("{} {}", s.view.device.parent_id.empty() ? "GPU" : "MIG",
                                                               *s.view.device.index)
                                                 : s.view.key.device_id);
    }
    if (!found) return fail(fmt::format("--gpu {}: there is no such GPU in this period; it has {}", gpu, known));
  }
  std::erase_if(report.series, [&](const PeriodSeries& s) {
    return !wanted.contains(s.view.key.device_id) && !wanted.contains(s.view.device.parent_id);
  });
  return {};
}

/// A file beside it first: a report that cannot be written whole leaves the one from before.
Status write_file(const std::string& path, std::string_view text) {
  const std::string next = path + ".new";
  const auto failed = [&] {
    return fail(fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
  };
  const int fd = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed();
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const auto error = failed();
      ::close(fd);
      ::unlink(next.c_str());
      return error;
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::close(fd) != 0 || ::rename(next.c_str(), path.c_str()) != 0) {
    const auto error = failed();
    ::unlink(next.c_str());
    return error;
  }
  return {};
}

std::string render(const PeriodReport& report, const std::string& format, bool colour) {
  if (format == "md") return report_markdown(report);
  if (format == "json") return report_json(report);
  if (format == "html") return report_html(report);
  return report_text(report, colour);
}

}  // namespace

int report(const Options& options, const LayeredConfig& layers, Console& console) {
  const auto failed = [&console](const std::string& why) {
    console.error("cannot report: " + why);
    return kFailed;
  };
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  const Config& config = layers.config();
  std::vector<std::string> files = options.files;
  if (files.empty()) files.push_back(store_path(config.store));
  const auto kind = recorded_kind(options);
  if (!kind) return failed(kind.error().message);
  const auto rules = cost_rules(options, config.cost, now);
  if (!rules) return failed(rules.error().message);
  const auto range = period(options, (*kind)->is_ongoing, now);
  if (!range) return failed(range.error().message);
  const auto logs = log_options(options);
  if (!logs) return failed(logs.error().message);

  ReportGatherer gatherer(config, *range);
  auto gathered = gatherer.gather(**kind, files, *logs);
  if (!gathered) return failed(gathered.error().message);
  gathered->rules = *rules;
  if (const Status chosen = choose(*gathered, options.gpus); !chosen) return failed(chosen.error().message);
  reckon(*gathered);
  const std::string text = render(*gathered, options.report_format, options.output.empty() && console.style().colour);
  if (options.output.empty()) {
    console.write(text);
  } else if (const Status written = write_file(options.output, text); !written) {
    return failed(written.error().message);
  }
  return has_leak(*gathered) ? kLeak : kNoLeak;
}

}  // namespace vramtrack::cli
