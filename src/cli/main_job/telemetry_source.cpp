// The program that `make run` builds traces no running programs.
#include "cli/telemetry_source.hpp"

namespace vramtrack::cli {

std::string_view why_no_telemetry() {
  return "'make run' built it, and 'make build' builds all of it";
}

namespace {

class NoTelemetry final : public Source {
 public:
  Result<Progress> poll(Timestamp, Batch&) override {
    return fail(
        "this program, which 'make run' built, cannot trace running programs: build all of it with 'make build'");
  }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  SourceNotes notes_;
};

}  // namespace

std::unique_ptr<Source> open_telemetry(std::shared_ptr<TracedCategories>) {
  return std::make_unique<NoTelemetry>();
}

}  // namespace vramtrack::cli
