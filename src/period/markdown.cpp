// The period report as Markdown (with GitHub's tables), for an issue or a wiki.
#include <fmt/format.h>

#include <algorithm>

#include "core/markup.hpp"
#include "period/document.hpp"

namespace vramtrack {
namespace {

std::string escaped(std::string_view text) {
  return escape_markup(text, Markup::markdown);
}

struct Markdown {
  std::string out;

  void operator()(const Heading& h) {
    out += fmt::format("\n{} {}\n\n", std::string(static_cast<std::size_t>(h.level), '#'), escaped(h.text));
  }
  void operator()(const Paragraph& p) { out += escaped(p.text) + "\n\n"; }
  void operator()(const Facts& f) {
    for (const auto& [label, text] : f.rows) out += fmt::format("- **{}** {}\n", escaped(label), escaped(text));
    out += '\n';
  }
  void operator()(const Table& t) {
    row(t.header);
    for (std::size_t c = 0; c < t.header.size(); ++c)
      out += std::find(t.right.begin(), t.right.end(), c) != t.right.end() ? "|--:" : "|---";
    out += "|\n";
    for (const auto& cells : t.rows) row(cells);
    out += '\n';
  }
  void operator()(const Chart&) {}
  void row(const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) out += "| " + escaped(cell) + ' ';
    out += "|\n";
  }
};

}  // namespace

std::string report_markdown(const PeriodReport& report) {
  const Document document = report_document(report);
  Markdown markdown;
  markdown.out = "# " + escaped(document.title) + "\n\n";
  for (const Block& block : document.blocks) std::visit(markdown, block);
  std::string out;
  for (const char c : markdown.out)  // one empty line is enough
    if (c != '\n' || !out.ends_with("\n\n")) out += c;
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace vramtrack
