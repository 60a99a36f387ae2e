// An Explanation as text and as JSON (docs/formats/explain.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// Some lines of text; ends with a newline. `source`: the file; empty: none, and no line is named.
std::string explanation_text(const Explanation& explanation, std::string_view source);

/// One JSON object in one line, without a newline: vramtrack.explain.v1.
std::string explanation_json(const Explanation& explanation, std::string_view source);

/// "TOO BIG".
std::string_view cause_words(Cause cause);

/// "train.log:281: TOO BIG: 1.12 GiB were requested while ...": the answer in one line, without a newline.
std::string headline(const Explanation& explanation, std::string_view source);

}  // namespace vramtrack::explain
