// Source: where samples come from. One of the three interfaces that are chosen at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/result.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"

namespace vramtrack {

/// What a source reports besides samples, so that nothing broken is dropped silently.
struct SourceNotes {
  std::uint64_t skipped_lines = 0;         ///< lines of a recording that could not be read
  std::vector<std::string> first_skipped;  ///< the first few: "file:line: reason"
  std::vector<std::string> warnings;       ///< assumptions made, things not visible, and remedies
};

enum class Progress : std::uint8_t { more, end };

/// A stream of samples. Not thread-safe; polled by the single writer thread.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Appends new samples to `out`, which is not cleared here. A live source reads the hardware once and stamps
  /// everything with `now`; it returns an Error only for a persistent problem that the user should know of (the caller
  /// keeps polling), and never for a lost GPU, which is a `device_lost` event. A recorded source ignores `now` and
  /// appends its next stretch (any number of samples, in time order over all of its series); it returns `end` when
  /// there is no more.
  virtual Result<Progress> poll(Timestamp now, Batch& out) = 0;

  [[nodiscard]] virtual const SourceNotes& notes() const = 0;
};

/// A live source as registered in sources.def. `make` opens it with `catalog`, which must outlive it; an Error says why
/// there is nothing to read here (no driver, no such GPU) and what to do.
struct SourceInfo {
  std::string_view name;
  std::string_view help;
  Result<std::unique_ptr<Source>> (*make)(const SourcesConfig& config, Catalog& catalog);
};

/// The registered live sources in the order of sources.def.
std::span<const SourceInfo* const> live_sources();

}  // namespace vramtrack
