#include "cli/telemetry_source.hpp"

#ifdef VRAMTRACK_HAS_TELEMETRY
#include "telemetry/lifetimes_source.hpp"
#endif

namespace vramtrack::cli {

#ifdef VRAMTRACK_HAS_TELEMETRY

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories> categories) {
  return std::make_unique<telemetry::LifetimesSource>(std::move(categories));
}

#else

namespace {

class NoTelemetry final : public Source {
 public:
  Result<Progress> poll(Timestamp, Batch&) override {
    return fail(
        "this build cannot trace running programs: it was made without clang's BPF target or libbpf, or for another "
        "processor than x86-64; set telemetry.enabled to false");
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
