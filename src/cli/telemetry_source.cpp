#include "cli/telemetry_source.hpp"

#include <fmt/format.h>

#ifdef VRAMTRACK_HAS_TELEMETRY
#include "telemetry/lifetimes_source.hpp"
#endif

namespace vramtrack::cli {

std::string_view why_no_telemetry() {
  return VRAMTRACK_NO_TELEMETRY;
}

#ifdef VRAMTRACK_HAS_TELEMETRY

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories) {
  return std::make_unique<telemetry::LifetimesSource>(std::move(categories));
}

#else

namespace {

class NoTelemetry final : public Source {
 public:
  Result<Progress> poll(Timestamp, Batch&) override {
    return fail(fmt::format("this build cannot trace running programs: {}; set telemetry.enabled to false",
                            why_no_telemetry()));
  }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  SourceNotes notes_;
};

}  // namespace

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories>) {
  return std::make_unique<NoTelemetry>();
}

#endif

}  // namespace vramtrack::cli
