// Pasted: texts that show GPU memory at one moment and no failure: one torch.cuda.memory_summary(), `ollama ps`, a
// browser's table, lines before and after.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack::explain {

/// Only this much of a text is examined. A longer one is a log.
inline constexpr std::size_t kPastedBytes = 16384;

struct Pasted {
  std::string what;          ///< "is one torch.cuda.memory_summary() of device 0: ..."; empty: not such a text
  std::string next_step;     ///< how to see more
  bool is_for_logs = false;  ///< its lines may belong to a log, which `analyze` reads
};
/// Its words come from the text: print them through core/printable. O(text).
Pasted pasted(std::string_view text);

}  // namespace vramtrack::explain
