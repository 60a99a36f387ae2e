// What a process log holds where no process was visible: nothing, or nvidia-smi's words for that.
#pragma once

#include <string_view>

#include "source/log/format.hpp"

namespace vramtrack {

/// Not in formats.def: a log is taken for one only where it has nothing else.
extern const LogFormatInfo no_processes_log_format;

}  // namespace vramtrack
