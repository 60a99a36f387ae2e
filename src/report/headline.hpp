// The whole machine in one sentence: the first thing that a page shows.
#pragma once

#include <functional>
#include <string>

#include "core/view.hpp"

namespace vramtrack {

struct Headline {
  std::string tone;  ///< "critical", "warning", "watch": of a leak; "notice": something grows; "ok"; "faint": not known
  std::string text;
};

/// The command line that may be shown of the suspect of a device's series.
using CommandOf = std::function<std::string(const SeriesView& device, const Suspect& suspect)>;

/// "GPU 0 leaks: pid 4242 python train.py; out of memory in 0h 24m (19m–30m)." Empty `command_of`: the suspect's own
/// command. Pure.
Headline headline(const View& view, const CommandOf& command_of = {});

}  // namespace vramtrack
