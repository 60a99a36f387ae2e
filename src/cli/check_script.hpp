// The Python source of `check`: the modules check*.py of the package as one text, which defines main(arguments).
#pragma once

#include <string_view>

namespace vramtrack::cli {

/// Needs only Python 3.8 or newer and its standard library.
std::string_view check_script();

}  // namespace vramtrack::cli
