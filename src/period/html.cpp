// The period report as one page: no scripts, no references to other files, all data included.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/markup.hpp"
#include "core/printable.hpp"
#include "period/document.hpp"
#include "report/scaled.hpp"

namespace vramtrack {
namespace {

std::string base64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((text.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < text.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, text.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8U | (k < n ? static_cast<unsigned char>(text[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

std::string_view tone_class(Tone tone) {
  return is_bad(tone) ? "bad" : to_string(tone);
}

// Colours that are safe for colour-blind readers (Okabe and Ito 2008), lightened for the dark page; the words carry the
// same information.
constexpr std::string_view kStyle = R"(
:root{--page:#fff;--ink:#1b1f24;--faint:#5b6570;--line:#d5dbe1;--mean:#0062a3;--band:#56b4e955;--bad:#b3261e;--notice:#8a5a00;--good:#00694c;--end:#d55e0033;--row:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--page:#14181d;--ink:#e4e8ec;--faint:#9aa5b1;--line:#333c46;--mean:#6cc1ff;--band:#56b4e944;--bad:#ff8a7a;--notice:#f0b93a;--good:#4fd1a5;--end:#d55e0055;--row:#1b2128}}
body{background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
h1{font-size:1.5rem;line-height:1.3}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1rem}
table{border-collapse:collapse;font-size:.85rem}th,td{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:break-word;max-width:26rem}
th{font-weight:600;color:var(--faint);vertical-align:bottom}td.r,th.r{text-align:right}td.r,td.short,time{white-space:nowrap}.scroll{overflow-x:auto}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.6rem 0}dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}
tr.told td{border-bottom:0}tr.prose td{max-width:none;padding-top:0;color:var(--faint)}
.bad{color:var(--bad);font-weight:600}.notice{color:var(--notice)}.ok{color:var(--good)}.faint{color:var(--faint)}
a{color:var(--mean)}svg{width:100%;height:auto;display:block;margin:.6rem 0}.tick{fill:var(--faint);font-size:11px}@media (max-width:600px){svg{overflow:visible;margin-bottom:1.2rem}.tick{font-size:22px}.low{transform:translateY(10px)}}.grid{stroke:var(--line);stroke-width:.6}
.mean{fill:none;stroke:var(--mean);stroke-width:1.8}.band{fill:var(--band);stroke:none}.capacity{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:6 4}.wall{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:6 4}
.end{fill:var(--end)}.trend{stroke:var(--bad);stroke-width:1.6;stroke-dasharray:4 3}.alert{stroke:var(--bad);stroke-width:1.4}.onset{stroke:var(--notice);stroke-width:1.4;stroke-dasharray:2 3}
.legend{color:var(--faint);font-size:.8rem;margin:0}
/* On a phone each row is a list: the name of the column before each cell. */
@media (max-width:600px){table,tbody,tr,td{display:block}tr.head{display:none}tr{border-bottom:1px solid var(--line);padding:.5rem 0}tr.told{border-bottom:0;padding-bottom:0}tr.prose{padding-top:0}
td{display:grid;grid-template-columns:7rem 1fr;gap:1rem;border:0;padding:.1rem 0;max-width:none;overflow-wrap:anywhere}td.r{text-align:left}td.r,td.short{white-space:normal}td::before{content:attr(data-column);color:var(--faint)}td:empty,td:empty::before{display:none}
tr.prose td{display:block}tr.prose td::before{content:none}}
@media print{body{margin:0;max-width:none}a{color:inherit}}
)";

/// `text` with its markup escaped, and with each "2026-01-05T08:59:20Z" kept on one line.
std::string with_whole_times(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  const auto is_time = [&](std::size_t at) {
    for (std::size_t i = 0; i < kShape.size(); ++i)
      if (kShape[i] == '0' ? text[at + i] < '0' || text[at + i] > '9' : text[at + i] != kShape[i]) return false;
    return true;
  };
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; at + kShape.size() <= text.size(); ++at) {
    if (!is_time(at)) continue;
    const std::size_t end = std::min(text.size(), at + kShape.size() + (text.substr(at + kShape.size(), 1) == "Z"));
    out +=
        escape_markup(text.substr(done, at - done)) + "<time>" + escape_markup(text.substr(at, end - at)) + "</time>";
    done = end;
    at = end - 1;
  }
  return out + escape_markup(text.substr(done));
}

class Html {
 public:
  explicit Html(const PeriodReport& report) : report_(report) {}

  void operator()(const Heading& h) {
    const std::size_t colon = h.tone == Tone::plain ? std::string::npos : h.text.find(": ");
    std::string inside = escape_markup(h.text);
    if (colon != std::string::npos)
      inside = fmt::format("{} <span class=\"{}\">{}</span>", escape_markup(h.text.substr(0, colon + 1)),
                           tone_class(h.tone), escape_markup(h.text.substr(colon + 2)));
    out += fmt::format("<h{0}>{1}</h{0}>\n", h.level, inside);
  }
  void operator()(const Paragraph& p) { out += "<p>" + escape_markup(p.text) + "</p>\n"; }
  void operator()(const Facts& f) {
    out += "<dl>\n";
    std::string_view last;
    for (const auto& [label, text] : f.rows) {
      out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", label == last ? "" : escape_markup(label), with_whole_times(text));
      last = label;
    }
    out += "</dl>\n";
  }
  void operator()(const Table& t) {
    out += "<div class=\"scroll\"><table>\n<tr class=\"head\">";
    const std::size_t columns = t.header.size() - (t.prose ? 1 : 0);
    for (std::size_t c = 0; c < columns; ++c)
      out += fmt::format("<th{}>{}</th>", is_right(t, c) ? " class=\"r\"" : "", escape_markup(t.header[c]));
    out += "</tr>\n";
    for (std::size_t r = 0; r < t.rows.size(); ++r) {
      const Tone tone = r < t.tones.size() ? t.tones[r] : Tone::plain;
      out += t.prose ? "<tr class=\"told\">" : "<tr>";
      for (std::size_t c = 0; c < columns && c < t.rows[r].size(); ++c) {
        std::string cell = with_whole_times(t.rows[r][c]);
        // Only the verdict's words are coloured: they carry the same information as the colour. Each cell has one
        // element, because a phone lays out its elements in columns.
        if (t.header[c] == "verdict" || (t.header[c] == "end" && is_bad(tone)))
          cell = fmt::format("<span class=\"{}\">{}</span>", tone_class(tone), cell);
        else if (cell.find('<') != std::string::npos)
          cell = fmt::format("<span>{}</span>", cell);
        out += fmt::format("<td{} data-column=\"{}\">{}</td>", cell_class(t, r, c), escape_markup(t.header[c]), cell);
      }
      out += "</tr>\n";
      if (t.prose)
        out += fmt::format("<tr class=\"prose\"><td colspan=\"{}\">{}: {}</td></tr>\n", columns,
                           escape_markup(t.header.back()), escape_markup(t.rows[r].back()));
    }
    out += "</table></div>\n";
  }
  void operator()(const Chart& chart) {
    const std::string svg = report_svg(report_, report_.series[chart.index]);
    if (svg.empty()) return;
    out += svg;
    out += "<p class=\"legend\">The band goes from minimum to maximum. " +
           (report_.scale.counts_steps()
                ? fmt::format("The axis counts {}", plural(report_.scale.step))
                : std::string(report_.clock_is_relative ? "Times are since the start" : "Times are UTC")) +
           ".</p>\n";
  }

  std::string out;

 private:
  static constexpr std::size_t kShort = 21;  ///< a time, a pair of words: never wrapped on a wide page

  static bool is_right(const Table& t, std::size_t column) {
    return std::find(t.right.begin(), t.right.end(), column) != t.right.end();
  }
  static std::string_view cell_class(const Table& t, std::size_t row, std::size_t column) {
    if (is_right(t, column)) return " class=\"r\"";
    return t.rows[row][column].size() <= kShort ? " class=\"short\"" : "";
  }

  const PeriodReport& report_;
};

std::string link(std::string_view name, std::string_view type, const std::string& data, std::string_view words) {
  return fmt::format("<a download=\"{}\" href=\"data:{};base64,{}\">{}</a>", name, type, base64(data), words);
}

}  // namespace

std::string report_csv(const PeriodReport& report) {
  const ScaledName offset = scaled_name("offset_s", report.scale);
  const double unit = scaled_name("bytes", report.scale).factor;
  std::string out = report.clock_is_relative ? offset.name : "time";
  out += ",metric,device,pid";
  for (const char* bytes : {"min_bytes", "mean_bytes", "max_bytes"}) out += ',' + scaled_name(bytes, report.scale).name;
  out += ",samples\n";
  const auto amount = [unit](double bytes) {
    return unit == 1 ? fmt::format("{:.0f}", bytes) : fmt::format("{:.3f}", bytes * unit);
  };
  const std::vector<bool> charted = charted_series(report);
  for (std::size_t i = 0; i < report.series.size(); ++i) {
    if (!charted[i]) continue;
    const PeriodSeries& s = report.series[i];
    // A spreadsheet must not interpret a name as a formula.
    std::string device = printable(s.view.key.device_id);
    std::replace(device.begin(), device.end(), '"', '?');
    if (!device.empty() && std::string_view("=+-@").find(device.front()) != std::string_view::npos)
      device = fmt::format("'{}", device);
    for (const HistoryPoint& p : s.history)
      out += fmt::format(
          "{},{},\"{}\",{},{},{},{},{}\n",
          report.clock_is_relative ? fmt::format("{:.3f}", seconds_between(Timestamp{}, p.start) * offset.factor)
                                   : iso8601(p.start),
          to_string(s.view.key.metric), device, s.view.key.pid != 0 ? std::to_string(s.view.key.pid) : "",
          amount(static_cast<double>(p.min)), amount(p.mean), amount(static_cast<double>(p.max)), p.count);
  }
  return out;
}

std::string report_html(const PeriodReport& report) {
  const Document document = report_document(report);
  Html html(report);
  html.out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body>\n<main>\n<h1>{0}</h1>\n",
      escape_markup(document.title), kStyle);
  for (const Block& block : document.blocks) std::visit(html, block);
  html.out += "<h2>The data</h2>\n<p>Inside this file: " +
              link("vramtrack-report.json", "application/json", report_json(report), "all of it as JSON") + ", " +
              link("vramtrack-report.csv", "text/csv", report_csv(report), "the charts as CSV") +
              ".</p>\n</main>\n</body></html>\n";
  return html.out;
}

}  // namespace vramtrack
