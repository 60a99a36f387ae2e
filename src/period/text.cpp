// The period report as text: for a terminal, or the body of a mail.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "period/document.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostColumn = 80;  ///< of a table's cell, except in the last column
constexpr std::size_t kLabel = 10;

class Text {
 public:
  explicit Text(bool colour) : style_{colour} {}

  void operator()(const Heading& h) {
    const std::size_t colon = h.tone == Tone::plain ? std::string::npos : h.text.find(": ");
    if (colon == std::string::npos)
      out += '\n' + h.text + '\n';
    else
      out += '\n' + h.text.substr(0, colon + 2) + toned(h.text.substr(colon + 2), h.tone, style_) + '\n';
  }
  void operator()(const Paragraph& p) { out += "  " + p.text + '\n'; }
  void operator()(const Facts& f) {
    std::string_view last;
    for (const auto& [label, text] : f.rows) {
      const std::string shown = label == last ? "" : label;
      out += fmt::format("  {} {}\n", columns(shown) > kLabel ? shown + ' ' : fit(shown, kLabel), text);
      last = label;
    }
  }
  void operator()(const Table& t) {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < t.header.size(); ++c) {
      std::size_t width = columns(t.header[c]);
      for (const auto& row : t.rows) width = std::max(width, columns(row[c]));
      widths.push_back(c + 1 == t.header.size() ? width : std::min(width, kMostColumn));
    }
    line(t, t.header, widths, Tone::faint);
    for (std::size_t r = 0; r < t.rows.size(); ++r)
      line(t, t.rows[r], widths, r < t.tones.size() ? t.tones[r] : Tone::plain);
  }
  void operator()(const Chart&) {}

  std::string out;

 private:
  void line(const Table& t, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths, Tone tone) {
    std::string row;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool right = std::find(t.right.begin(), t.right.end(), c) != t.right.end();
      row += "  ";
      row += right ? fit_right(cells[c], widths[c]) : fit(cells[c], widths[c]);
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    out += toned(row, tone == Tone::ok ? Tone::plain : tone, style_) + '\n';
  }

  ReportStyle style_;
};

}  // namespace

std::string report_text(const PeriodReport& report, bool colour) {
  const Document document = report_document(report);
  Text text(colour);
  text.out = document.title + '\n';
  for (const Block& block : document.blocks) std::visit(text, block);
  return text.out;
}

}  // namespace vramtrack
