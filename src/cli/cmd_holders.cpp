// holders: which processes currently hold memory on each GPU.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "agent/client.hpp"
#include "cli/commands.hpp"
#include "cli/output_option.hpp"
#include "cli/shared_arguments.hpp"
#include "live/ledger_reader.hpp"
#include "top/sites_watch.hpp"

namespace vramtrack::cli {
namespace {

struct HoldersOptions {
  ConfigRequest config;
  std::string format = "text";
  std::optional<int> gpu;
};

constexpr std::size_t kMostSites = 3;
constexpr double kPatience_s = 2;

/// What the process's source lines hold, as reported by a running agent or by the program's own `vramtrack run`.
std::vector<LedgerSite> sites_of(const std::optional<std::string>& agent, std::uint32_t pid) {
  auto answer = agent ? agent::AgentClient(*agent, kPatience_s).sites(pid) : top::sites_of_run(pid);
  if (!answer || answer->state != SitesNow::State::known) return {};
  std::vector<MemorySite>& all = answer->report.sites;
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.live_bytes > b.live_bytes; });
  std::vector<LedgerSite> sites;
  for (const MemorySite& site : all)
    if (site.live_bytes > 0 && sites.size() < kMostSites)
      sites.push_back({site.site, static_cast<std::uint64_t>(site.live_bytes)});
  return sites;
}

int holders(const HoldersOptions& options, const LayeredConfig& layers, Console& console) {
  LedgerReader reader(layers.config().sources, [&console](const std::string& text) { console.warn(text); });
  if (!reader.is_open()) {
    console.error(fmt::format("no GPU found: {}; 'vramtrack doctor' shows what to do", reader.reasons()));
    return 2;
  }
  Ledger ledger = reader.look();
  if (options.gpu) {
    std::erase_if(ledger.devices, [&](const DeviceLedger& one) { return one.device.index != options.gpu; });
    ledger.elsewhere.clear();
    if (ledger.devices.empty()) {
      console.error(fmt::format("there is no GPU {} here; 'vramtrack doctor' lists the GPUs", *options.gpu));
      return 2;
    }
  }
  const std::optional<std::string> agent = agent::find_agent(layers.config().agent);
  for (DeviceLedger& one : ledger.devices)
    for (LedgerLine& line : one.lines) line.sites = sites_of(agent, line.holder.info.pid);
  console.write(options.format == "json" ? ledger_json(ledger) : ledger_text(ledger));
  return 0;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<HoldersOptions>();
  arguments.format({"text", "json"}, "Print as: text (default), json", text(options->format));
  constexpr std::uint64_t kMostGpus = 4095;
  arguments.option(
      "--gpu", "N", "Show only this GPU",
      whole_number([options = options.get()](std::uint64_t n) { options->gpu = static_cast<int>(n); }, 0, kMostGpus));
  add_sources(arguments, options->config);
  add_config(arguments, options->config);
  return with_output(arguments, configured<HoldersOptions>(options, holders));
}

}  // namespace

const CommandInfo holders_command{"holders",
                                  "List the processes that hold the memory of each GPU, and whether each seems alive",
                                  "Examples:\n"
                                  "  vramtrack holders\n"
                                  "  vramtrack holders --gpu 0 --format json\n"
                                  "As root, it sees the open files of every user's processes.\n"
                                  "Exit: 0 listed, 2 failed.",
                                  declare};

}  // namespace vramtrack::cli
