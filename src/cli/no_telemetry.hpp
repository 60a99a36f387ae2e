// NoTelemetry: replaces the tracing source in a program without the tracer, and reports that once.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "source/source.hpp"

namespace vramtrack::cli {

class NoTelemetry final : public Source {
 public:
  /// `error`: the reason why running programs cannot be traced, and the remedy.
  explicit NoTelemetry(std::string error) : error_(std::move(error)) {}
  Result<Progress> poll(Timestamp, Batch&) override { return fail(error_); }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  std::string error_;
  SourceNotes notes_;
};

}  // namespace vramtrack::cli
