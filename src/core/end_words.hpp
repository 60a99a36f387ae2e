// How a run ended, in words. Each EndKind is worded only here: for the surfaces
// (report/conclusion_words), and for the reason that the engine stores with an alert.
//
// That reason is text, as `because` is: it is stored and sent with its alert, and it is still reported when the device
// shows the end of a later run.
#pragma once

#include <string>
#include <string_view>

#include "core/verdict.hpp"

namespace vramtrack {

struct EndWords {
  std::string_view plain;     ///< in a sentence, after the device or the run: "ran out of memory"
  std::string_view verdict;   ///< the same as a verdict; empty where such an end is not news
  std::string_view leaked;    ///< for a run that leaked until then: "LEAKED until memory ran out"
  std::string_view sentence;  ///< the same in a sentence, after the device's name
  std::string_view reached;   ///< the words before the level it reached
  std::string_view word;      ///< for a narrow column
  std::string_view alert;     ///< the state of an alert that ended with the run
  bool is_bad = false;        ///< whether it is bad even if the run had not leaked
};

EndWords words_of_end(EndKind how);
/// The same for an end of which more is known: whether its program was loading.
EndWords words_of_end(const End& end);

/// Why an alert ended with its run: "memory ran out at 24.0 GiB, and pid 4242 ended".
std::string reason_of_end(const End& end, const Scale& scale);

}  // namespace vramtrack
