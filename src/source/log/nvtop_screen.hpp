// The screen of nvtop, as pasted or captured from a terminal.
#pragma once

#include <memory>
#include <string_view>

#include "source/log/format.hpp"

namespace vramtrack {

bool has_nvtop_screen(std::string_view head);
Result<std::unique_ptr<LogParser>> make_nvtop_screens(const LogHead& head);

}  // namespace vramtrack
