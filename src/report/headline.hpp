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

/// "GPU 0 leaks: pid 4242 python train.py; out of memory in 0h 24m (19m–30m)." `command_of` gives the command line that
/// may be shown of a suspect; empty: the suspect's own. Pure.
Headline headline(const View& view, const std::function<std::string(const Suspect&)>& command_of = {});

}  // namespace vramtrack
