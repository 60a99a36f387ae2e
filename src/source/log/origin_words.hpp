// The words that name the origin of readings: a machine, a program, a job, a thread. One table for the titles of
// columns and for the keys in lines of text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace vramtrack {

/// Where a word distinguishes readings. A column may have another role that takes precedence (its pid, the GPU name),
/// or change within one program (its user, its current task): such a word counts only in lines of text.
enum class OriginWordIn : std::uint8_t { lines, titles_and_lines };

struct OriginWord {
  std::string_view words;  ///< lower case, separated by spaces: "pod name" is also pod_name and pod-name
  OriginWordIn where = OriginWordIn::titles_and_lines;
};

inline constexpr std::array kOriginWords = std::to_array<OriginWord>({
    // machines
    {"host"},
    {"hostname"},
    {"host name"},
    {"node"},
    {"nodename", OriginWordIn::lines},
    {"node name"},
    {"node id"},
    {"machine"},
    {"server"},
    {"instance"},
    {"ip", OriginWordIn::lines},
    {"addr", OriginWordIn::lines},
    {"address", OriginWordIn::lines},
    // containers and services
    {"pod"},
    {"pod name"},
    {"container"},
    {"container name"},
    {"replica"},
    {"service"},
    {"app", OriginWordIn::lines},
    {"tenant", OriginWordIn::lines},
    {"user", OriginWordIn::lines},
    {"model", OriginWordIn::lines},
    {"logger"},
    // programs and threads
    {"program", OriginWordIn::lines},
    {"process", OriginWordIn::lines},
    {"proc", OriginWordIn::lines},
    {"pid", OriginWordIn::lines},
    {"tid", OriginWordIn::lines},
    {"thread", OriginWordIn::lines},
    {"threadname", OriginWordIn::lines},
    {"rank"},
    {"local rank"},
    {"worker"},
    {"worker id"},
    {"actor"},
    {"actor id"},
    {"task", OriginWordIn::lines},
    {"task id", OriginWordIn::lines},
    // jobs and runs
    {"series"},
    {"run"},
    {"run name"},
    {"run id"},
    {"job"},
    {"jobid"},
    {"job name"},
    {"job id"},
    {"trial"},
    {"session"},
    {"session id"},
    {"experiment"},
    // GPUs
    {"gpu", OriginWordIn::lines},
    {"gpu id", OriginWordIn::lines},
    {"uuid", OriginWordIn::lines},
    {"device", OriginWordIn::lines},
});

/// The word of the table that `same`, called with its words, accepts; nullptr: none. O(table).
template <class Same>
const OriginWord* origin_word(Same same) {
  const auto it =
      std::find_if(kOriginWords.begin(), kOriginWords.end(), [&](const OriginWord& word) { return same(word.words); });
  return it == kOriginWords.end() ? nullptr : &*it;
}

}  // namespace vramtrack
