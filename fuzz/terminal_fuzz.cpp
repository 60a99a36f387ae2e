// A View whose every name and figure is made of the input, drawn as each screen of top and printed as watch does. What
// would reach the terminal is valid UTF-8, and its only control characters are curses' own.
#include <fuzzer/FuzzedDataProvider.h>
#include <pty.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/printable.hpp"
#include "report/status.hpp"
#include "top/draw.hpp"
#include "top/terminal.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::top;

constexpr int kWidth = 200;
constexpr int kHeight = 50;

[[noreturn]] void fail_with(std::string_view why, std::string_view text) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(why.size()), why.data(), static_cast<int>(text.size()),
               text.data());
  std::abort();
}

/// Curses on a pseudo-terminal; once it is set up, what it writes goes into memory.
class Display {
 public:
  Display() : terminal_(on_pty()) { ::dup2(memory_, STDOUT_FILENO); }
  std::string show(const Screen& screen, const Theme& theme) {
    if (::ftruncate(memory_, 0) != 0 || ::lseek(memory_, 0, SEEK_SET) != 0) std::abort();
    terminal_.redraw();
    terminal_.show(screen, theme);
    std::string text(static_cast<std::size_t>(::lseek(memory_, 0, SEEK_CUR)), '\0');
    if (::pread(memory_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) std::abort();
    return text;
  }

 private:
  Terminal on_pty() {
    int master = -1;
    int slave = -1;
    winsize size{kHeight, kWidth, 0, 0};
    memory_ = ::memfd_create("screen", MFD_CLOEXEC);
    if (memory_ < 0 || ::openpty(&master, &slave, nullptr, nullptr, &size) != 0) std::abort();
    ::dup2(slave, STDIN_FILENO);
    ::dup2(slave, STDOUT_FILENO);
    ::setenv("TERM", "xterm-256color", 1);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    auto terminal = Terminal::open();
    if (!terminal) fail_with("no terminal", terminal.error().message);
    return std::move(*terminal);
  }
  int memory_ = -1;
  Terminal terminal_;
};

/// Takes curses' sequences out of `bytes`: ESC [ ... letter, ESC ( B, and what moves the cursor. The rest is text.
std::string text_of(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\x1b' && i + 2 < bytes.size() && bytes[i + 1] == '[') {
      i += 2;
      while (i < bytes.size() && bytes[i] >= 0x20 && bytes[i] < 0x40) ++i;
      if (i == bytes.size() || bytes[i] < 0x40 || bytes[i] == 0x7f) fail_with("a broken sequence", bytes);
    } else if (c == '\x1b' && i + 2 < bytes.size() && (bytes[i + 1] == '(' || bytes[i + 1] == ')')) {
      i += 2;
    } else if (c == '\x1b' && i + 1 < bytes.size() &&
               std::string_view("=>78").find(bytes[i + 1]) != std::string_view::npos) {
      ++i;
    } else if (c != '\r' && c != '\n' && c != '\b' && c != '\x0f') {
      text += c;
    }
  }
  return text;
}

class Maker {
 public:
  explicit Maker(FuzzedDataProvider& from) : from_(from) {}

  std::string text() { return from_.ConsumeRandomLengthString(80); }
  template <class E>
  E one_of(unsigned count) {
    return static_cast<E>(from_.ConsumeIntegralInRange<unsigned>(0, count - 1));
  }
  Timestamp time() {
    return Timestamp{std::chrono::nanoseconds{from_.ConsumeIntegralInRange<std::int64_t>(0, INT64_MAX / 2)}};
  }
  double figure() { return from_.ConsumeFloatingPoint<double>(); }
  template <class Make>
  auto maybe(Make make) -> std::optional<decltype(make())> {
    if (!from_.ConsumeBool()) return std::nullopt;
    return make();
  }

  Finding finding() {
    Finding f;
    f.detector = text();
    f.leak = from_.ConsumeBool();
    f.state = one_of<State>(9);
    f.pattern = one_of<Pattern>(6);
    f.spike = one_of<SpikeOutcome>(3);
    f.confidence = from_.ConsumeProbability<double>();
    f.growth_bytes_per_s = {figure(), figure(), figure()};
    f.oom_in_s = maybe([&] { return Interval{figure(), figure(), figure()}; });
    f.onset = maybe([&] { return time(); });
    f.because = text();
    return f;
  }
  Alert alert() {
    Alert a;
    a.raised = time();
    a.ended = one_of<AlertEnd>(static_cast<unsigned>(words_of<AlertEnd>().size()));
    if (a.ended != AlertEnd::standing) a.cleared = time();
    a.severity = one_of<Severity>(4);
    a.finding = finding();
    a.end_reason = text();
    a.end_kind = maybe([&] { return one_of<EndKind>(static_cast<unsigned>(words_of<EndKind>().size())); });
    return a;
  }
  ProcessInfo process() {
    ProcessInfo p;
    for (std::string* member :
         {&p.user, &p.command, &p.name, &p.kind, &p.cgroup, &p.container, &p.pod, &p.slurm_job, &p.framework})
      *member = text();
    return p;
  }
  DeviceHealth health() {
    DeviceHealth h;
    h.time = time();
    h.temperature_celsius = maybe([&] { return figure(); });
    h.ecc_since_load = {from_.ConsumeIntegral<std::uint64_t>(), from_.ConsumeIntegral<std::uint64_t>()};
    h.remapped_rows = maybe([&] { return from_.ConsumeIntegral<std::uint64_t>(); });
    h.throttle = ThrottleSet{from_.ConsumeIntegral<std::uint8_t>()};
    return h;
  }
  SeriesView series() {
    SeriesView s;
    s.key = {one_of<Metric>(6), text(), 0, 0, from_.ConsumeBool() ? text() : std::string()};
    s.device.id = s.key.device_id;
    s.device.index = maybe([&] { return from_.ConsumeIntegral<int>(); });
    s.device.name = text();
    s.device.pci_bus_id = text();
    s.device.parent_id = text();
    s.device.capacity_bytes = maybe([&] { return from_.ConsumeIntegral<std::uint64_t>(); });
    if (s.key.metric != Metric::device_used && s.key.metric != Metric::device_reserved) {
      s.key.pid = from_.ConsumeIntegral<std::uint32_t>();
      s.process = maybe([&] { return process(); });
    }
    s.samples = from_.ConsumeIntegral<std::uint64_t>();
    s.first = maybe([&] { return time(); });
    s.last = maybe([&] { return time(); });
    s.interval_s = figure();
    s.used_bytes = from_.ConsumeIntegral<std::uint64_t>();
    s.peak_bytes = from_.ConsumeIntegral<std::uint64_t>();
    s.level_bytes = maybe([&] { return figure(); });
    s.ended = from_.ConsumeBool();
    s.paused = from_.ConsumeBool();
    s.utilisation_ratio = maybe([&] { return figure(); });
    s.health = maybe([&] { return health(); });
    s.last_xid = maybe([&] { return LastXid{time(), from_.ConsumeIntegral<std::uint64_t>(), text()}; });
    s.verdict.severity = one_of<Severity>(4);
    s.verdict.finding = finding();
    if (from_.ConsumeBool()) s.verdict.dissent.push_back(finding());
    s.verdict.suspect = maybe([&] { return Suspect{from_.ConsumeIntegral<std::uint32_t>(), 0, text(), figure()}; });
    s.verdict.framework = text();
    if (from_.ConsumeBool()) s.verdict.causes.push_back(text());
    if (from_.ConsumeBool()) s.verdict.advice.push_back(text());
    while (s.alerts.size() < 3 && from_.ConsumeBool()) s.alerts.push_back(alert());
    return s;
  }
  View view() {
    View v;
    v.time = time();
    v.clock_is_relative = from_.ConsumeBool();
    if (from_.ConsumeBool()) v.files.push_back(text());
    do v.series.push_back(series());
    while (v.series.size() < 4 && from_.ConsumeBool());
    if (from_.ConsumeBool()) v.notices.push_back({time(), text()});
    if (from_.ConsumeBool()) v.first_skipped.push_back(text());
    if (from_.ConsumeBool()) v.warnings.push_back(text());
    return v;
  }
  Model model() {
    Model m;
    m.ui.page = kPages[from_.ConsumeIntegralInRange<std::size_t>(0, kPages.size() - 1)];
    m.ui.help = from_.ConsumeIntegralInRange(0, 15) == 0;
    m.mode = one_of<Mode>(4);
    m.ui.sort = one_of<Sort>(kSorts);
    m.ui.filter = from_.ConsumeIntegralInRange(0, 7) == 0 ? text() : std::string();
    m.ui.message = text();
    m.source = text();
    m.simulated = text();
    m.recording = text();
    if (from_.ConsumeIntegralInRange(0, 15) == 0) m.ui.target = SignalTarget{42, text(), text(), text()};
    if (from_.ConsumeBool()) m.warnings.push_back(text());
    auto view_made = std::make_shared<View>(view());
    m.ui.detail = view_made->series.back().key;
    if (from_.ConsumeBool()) m.earlier_alerts.push_back({view_made->series.front().key, text(), alert()});
    std::vector<Point> points;
    while (points.size() < 8 && from_.ConsumeBool()) {
      const Timestamp at = time();
      points.push_back({at, at, figure(), figure(), figure(), 1});
    }
    m.feed.history = [points](const SeriesKey&, Timestamp from, Timestamp to, std::size_t most) {
      return resample(points, from, to, most);
    };
    m.view = std::move(view_made);
    return m;
  }

 private:
  FuzzedDataProvider& from_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Display display;
  FuzzedDataProvider from(data, size);
  Screen screen(from.ConsumeIntegralInRange(1, kWidth), from.ConsumeIntegralInRange(1, kHeight));
  const Theme& theme = themes()[from.ConsumeIntegralInRange<std::size_t>(0, themes().size() - 1)];
  const Model model = Maker(from).model();
  draw(screen, model);
  const std::string shown = screen.text();
  if (printable_lines(shown) != shown) fail_with("the screen is not clean", shown);
  const std::string written = text_of(display.show(screen, theme));
  if (printable(written) != written) fail_with("the terminal gets what is not clean", written);

  ReportStyle style;
  std::string printed = status_table(*model.view, style);
  for (const SeriesView& series : model.view->series)
    for (const Alert& alert : series.alerts)
      for (const AlertNews news : {AlertNews::raised, AlertNews::escalated, AlertNews::cleared})
        printed += alert_lines(*model.view, series, alert, news, style);
  if (printable_lines(printed) != printed) fail_with("a line is not clean", printed);
  for (const ReportInfo* report : reports())
    if (const std::string text = report->render(*model.view, style); printable_lines(text) != text)
      fail_with(report->name, text);
  return 0;
}
