// Reads the text of a str object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/python_layout.hpp"
#include "probe/unwind_table.hpp"

namespace vramtrack::probe {

/// UTF-8 of the str at `object`, truncated at a character to fit `bytes`; 0: empty, or an unsupported kind of text.
std::size_t read_text(ReadMemory read, const PythonLayout& layout, std::uint64_t object, char* into, std::size_t bytes);

}  // namespace vramtrack::probe
