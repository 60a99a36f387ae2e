// holders: which processes hold memory of each GPU now.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "live/clock.hpp"
#include "live/ledger.hpp"
#include "live/sources.hpp"

namespace vramtrack::cli {
namespace {

struct HoldersOptions {
  ConfigRequest config;
  std::string format = "text";
  std::optional<int> gpu;
};

int holders(const HoldersOptions& options, const LayeredConfig& layers, Console& console) {
  const SourcesConfig& config = layers.config().sources;
  Catalog catalog;
  std::string reasons;
  std::vector<LiveSource> sources = open_live_sources(config, catalog, reasons);
  if (sources.empty()) {
    console.error(fmt::format("no GPU found: {}; 'vramtrack doctor' says what to do", reasons));
    return 2;
  }
  Batch batch;
  for (LiveSource& source : sources)
    poll_live(source, time_of_day(), batch, [&console](const std::string& text) { console.warn(text); });
  const std::set<std::uint32_t> listed = listed_pids(batch, catalog);
  HoldersFound found = find_holders(config.proc_root, listed);
  // Asking the driver opens its files in this process too.
  const auto self = static_cast<std::uint32_t>(::getpid());
  if (!listed.contains(self)) std::erase_if(found.holders, [self](const Holder& h) { return h.info.pid == self; });
  Ledger ledger = make_ledger(batch, catalog, found, config.proc_root, config.sys_root);
  if (options.gpu) {
    std::erase_if(ledger.devices, [&](const DeviceLedger& one) { return one.device.index != options.gpu; });
    ledger.elsewhere.clear();
    if (ledger.devices.empty()) {
      console.error(fmt::format("there is no GPU {} here; 'vramtrack doctor' lists the GPUs", *options.gpu));
      return 2;
    }
  }
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
  return configured<HoldersOptions>(options, holders);
}

}  // namespace

const CommandInfo holders_command{"holders",
                                  "List the processes that hold the memory of each GPU, and whether each seems alive",
                                  "Examples:\n"
                                  "  vramtrack holders\n"
                                  "  vramtrack holders --gpu 0 --format json\n"
                                  "As root it sees the open files of every user's processes.\n"
                                  "Exit: 0 listed, 2 failed.",
                                  declare};

}  // namespace vramtrack::cli
