// The whole machine in one sentence: the first thing that a page shows.
#pragma once

#include <string>

#include "core/view.hpp"
#include "report/told.hpp"

namespace vramtrack {

struct Headline {
  Tone tone = Tone::faint;
  std::string text;
};

/// "GPU 0 leaks: pid 4242 python train.py; out of memory in 0h 24m (19m–30m)." Pure.
Headline headline(const View& view, const MaySeeCommand& may_see = {});

}  // namespace vramtrack
