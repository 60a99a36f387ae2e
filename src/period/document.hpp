// Document: a report as blocks, so that all readable forms have the same content. Each form escapes the raw texts.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "period/period.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {

struct Heading {
  int level = 2;
  std::string text;
  Tone tone = Tone::plain;  ///< the tone of the part after ": "
};

struct Paragraph {
  std::string text;
};

/// Label and text, one pair per line.
struct Facts {
  std::vector<std::pair<std::string, std::string>> rows;
};

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<Tone> tones;         ///< the tones of the rows' first column; may be shorter
  std::vector<std::size_t> right;  ///< columns of figures: right-aligned
  bool prose = false;              ///< the last column is a sentence, shown below its row if the form can do that
};

/// The chart of report.series[index], if the form has charts.
struct Chart {
  std::size_t index = 0;
};

using Block = std::variant<Heading, Paragraph, Facts, Table, Chart>;

struct Document {
  std::string title;
  std::vector<Block> blocks;
};

Document report_document(const PeriodReport& report);

/// All series of the report as one View.
View view_of(const PeriodReport& report);

/// The words for each of report.series, in their order.
std::vector<ConclusionWords> series_words(const PeriodReport& report);

/// The chart as an SVG element, coloured by the page's style sheet; empty with fewer than two points.
std::string report_svg(const PeriodReport& report, const PeriodSeries& series);

}  // namespace vramtrack
