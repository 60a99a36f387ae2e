#include "core/end_words.hpp"

#include <fmt/format.h>

#include "core/scale.hpp"

// Adding a kind without its words must be an error here, not a gap on some surface.
#pragma GCC diagnostic error "-Wswitch"

namespace vramtrack {

EndWords words_of_end(EndKind how) {
  switch (how) {
    case EndKind::ended:
      return {.plain = "ended",
              .verdict = "",
              .leaked = "LEAKED until its process ended",
              .sentence = "leaked until its process ended",
              .reached = "was at",
              .word = "ended",
              .alert = "process ended"};
    case EndKind::ended_near_limit:
      return {.plain = "ended near the limit",
              .verdict = "ended near the limit",
              .leaked = "LEAKED and ended near the limit",
              .sentence = "leaked and ended near the limit",
              .reached = "reached",
              .word = "ended",
              .alert = "process ended"};
    case EndKind::out_of_memory:
      return {.plain = "ran out of memory",
              .verdict = "ran out of memory",
              .leaked = "LEAKED until memory ran out",
              .sentence = "leaked and ran out of memory",
              .reached = "reached",
              .word = "ran out",
              .alert = "out of memory",
              .is_bad = true};
    case EndKind::host_out_of_memory:
      return {.plain = "lost its process as the host's memory ran out",
              .verdict = "the host's memory ran out: the kernel ended the process",
              .leaked = "LEAKED until the host's memory ran out",
              .sentence = "leaked until the host's memory ran out",
              .reached = "was at",
              .word = "ran out",
              .alert = "host memory",
              .is_bad = true};
  }
  return {};
}

EndWords words_of_end(const End& end) {
  EndWords words = words_of_end(end.how);
  if (!end.while_loading) return words;
  words.plain = "ran out of memory while it loaded";
  words.verdict = "ran out of memory while loading: it did not fit";
  return words;
}

std::string reason_of_end(const End& end, const Scale& scale) {
  const std::string who = end.pid != 0 ? fmt::format("pid {}", end.pid) : "its process";
  const std::string level = scale.bytes(end.used_bytes);
  switch (end.how) {
    case EndKind::out_of_memory:
      if (end.while_loading) return fmt::format("memory ran out at {} while {} loaded: it did not fit", level, who);
      return fmt::format("memory ran out at {}, and {} ended", level, who);
    case EndKind::host_out_of_memory:
      return fmt::format("the host's memory ran out, and the kernel ended {}", who);
    case EndKind::ended_near_limit:
      return fmt::format("{} ended near the limit, at {}", who, level);
    case EndKind::ended:
      break;
  }
  return who + " ended, and its memory was released";
}

}  // namespace vramtrack
