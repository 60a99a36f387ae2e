#include <array>
#include <utility>

#include "core/registry.hpp"
#include "source/log/format.hpp"
#include "source/log/recognise.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

std::span<const LogFormatInfo* const> log_formats() {
  static const std::array formats = {
#define VRAMTRACK_LOG_FORMAT(name) &name##_log_format,
#include "source/log/formats.def"
#undef VRAMTRACK_LOG_FORMAT
  };
  return formats;
}

const LogFormatInfo* find_log_format(std::string_view name) {
  std::string wanted = logtext::lower(name);
  for (char& c : wanted)
    if (c == '_') c = '-';
  return find_named(log_formats(), wanted);
}

namespace {

class Rewritten final : public LogParser {
 public:
  Rewritten(Rewriting rewriting, std::unique_ptr<LogParser> parser)
      : rewriting_(std::move(rewriting)), parser_(std::move(parser)) {
    assumptions_ = parser_->assumptions();
    if (!rewriting_.assumption.empty()) assumptions_.push_back(rewriting_.assumption);
  }

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool complete, LogRows& rows) override {
    return parser_->parse(rewriting_.lines(lines), first_line, complete, rows);
  }
  void finish(LogRows& rows) override { parser_->finish(rows); }
  [[nodiscard]] bool clock_is_relative() const override { return parser_->clock_is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return parser_->clock_wraps(); }
  [[nodiscard]] Scale scale() const override { return parser_->scale(); }
  [[nodiscard]] bool processes_only() const override { return parser_->processes_only(); }
  [[nodiscard]] std::string_view needs_file_order() const override { return parser_->needs_file_order(); }
  [[nodiscard]] std::optional<std::string> misfit() const override {
    if (rewriting_.doubt)
      if (std::string why = rewriting_.doubt(); !why.empty()) return why;
    return parser_->misfit();
  }

 private:
  Rewriting rewriting_;
  std::unique_ptr<LogParser> parser_;
};

}  // namespace

Result<std::unique_ptr<LogParser>> make_rewritten(
    const LogHead& head, Rewriting rewriting,
    const std::function<Result<std::unique_ptr<LogParser>>(const LogHead&)>& make) {
  const std::string text = rewriting.lines(head.text);
  if (rewriting.doubt)
    if (std::string why = rewriting.doubt(); !why.empty()) return fail(std::move(why));
  LogHead rewritten = head;
  rewritten.text = text;
  auto parser = make(rewritten);
  if (!parser) return fail(std::move(parser.error()));
  return std::make_unique<Rewritten>(std::move(rewriting), std::move(*parser));
}

}  // namespace vramtrack
