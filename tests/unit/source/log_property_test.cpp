// Logs like those that people's programs write, generated at random: languages, labels, units, clocks, prefixes,
// several GPUs, noise. Each is read correctly, or refused with the option that helps; hardly any is misread.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;

struct Labels {
  std::string_view used, free, total, allocated, reserved;
};
constexpr Labels kBefore[] = {
    {"GPU memory used", "GPU memory free", "GPU memory total", "GPU Memory Allocated", "GPU Memory Reserved"},
    {"VRAM used", "free", "total", "allocated", "reserved"},
    {"mem_used", "mem_free", "mem_total", "mem_allocated", "mem_reserved"},
    {"Memory Usage", "Memory Available", "Memory Capacity", "Allocated memory", "Cached memory"},
    {"Used Memory", "Free Memory", "Total Memory", "Torch allocated", "Torch reserved"},
    {"显存已用", "显存空闲", "显存总量", "已分配显存", "已预留显存"},
    {"显存占用", "剩余显存", "总显存", "已分配", "缓存"},
    {"GPUメモリ使用量", "空きメモリ", "合計メモリ", "割り当て済みメモリ", "予約済みメモリ"},
    {"GPU 메모리 사용량", "여유 메모리", "전체 메모리", "할당 메모리", "예약 메모리"},
    {"Grafikspeicher belegt", "Grafikspeicher frei", "Grafikspeicher gesamt", "Speicher zugewiesen",
     "Speicher reserviert"},
    {"GPU-Speicher genutzt", "Speicher verfügbar", "Speicher insgesamt", "zugewiesen", "reserviert"},
};
constexpr Labels kAfter[] = {
    {"used", "free", "total", "allocated", "reserved"},
    {"in use", "available", "total", "allocated", "cached"},
    {"belegt", "frei", "gesamt", "zugewiesen", "reserviert"},
};

enum class Figures { used, used_total, used_free_total, free_total, allocated_reserved, pair };
enum class Clock {
  date,
  bracket,
  comma,
  labelled,
  time_of_day,
  line_before,
  epoch,
  syslog,
  kubectl,
  step,
  epochs,
  request,
  tqdm,
  minute
};
constexpr std::size_t kClocks = static_cast<std::size_t>(Clock::minute) + 1;
enum Prefix : std::size_t { none, logger, journal, compose, srun, pod, kPrefixes };

/// A log and its expected contents.
struct Made {
  std::string text;
  std::string what;  ///< for messages
  bool counts = false;
  bool ran_out = false;  ///< a message reports that memory ran out
  std::size_t readings = 0;
  std::vector<std::string> devices;
  std::vector<Metric> metrics;
  std::int64_t period_s = 0;             ///< between two readings; meaningless if steps are counted
  std::vector<std::vector<double>> mib;  ///< by device, as written: used, or allocated
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Made make() {
    Made out;
    const Figures figures = static_cast<Figures>(pick(6));
    const auto clock = static_cast<Clock>(pick(kClocks));
    const std::size_t layout = pick(4);  // labels before, labels after, blocks, a Markdown table
    const std::size_t language = pick(std::size(kBefore));
    const std::size_t after = pick(std::size(kAfter));
    std::size_t prefix = pick(kPrefixes);
    // Hours and minutes are a time only at the start of a line.
    if (clock == Clock::minute && (prefix == logger || prefix == journal)) prefix = none;
    const std::size_t gpus = pick(4) == 0 ? 2 : 1;
    const std::size_t noise = pick(4);
    const std::size_t unit = pick(7);
    const bool is_table = layout == 3 && clock != Clock::tqdm && clock != Clock::line_before;
    const bool is_block = layout == 2 && figures != Figures::pair && clock != Clock::tqdm;
    const bool is_postfix = pick(2) == 0;  // tqdm's own figures come last in its brackets
    const bool is_updated = clock == Clock::tqdm && noise == 0 && pick(2) == 0;  // with carriage returns
    out.counts = clock >= Clock::step && clock != Clock::minute && clock != Clock::tqdm;
    out.ran_out = pick(4) == 0;
    out.readings = 40 + pick(60);
    out.what = fmt::format("figures {} clock {} layout {} language {} prefix {} gpus {} unit {}",
                           static_cast<int>(figures), static_cast<int>(clock), layout, language, prefix, gpus, unit);
    const bool program = figures == Figures::allocated_reserved;
    out.metrics = program ? std::vector{Metric::allocator_allocated, Metric::allocator_reserved}
                          : std::vector{Metric::device_used};
    for (std::size_t g = 0; g < gpus; ++g) out.devices.push_back(std::to_string(g));
    out.mib.resize(gpus);
    if (pick(2) == 0) out.text += "============ run ============\nNVIDIA A100 40GB, driver 550.54\n";
    const std::int64_t drawn_s = clock == Clock::minute ? 60 * (1 + static_cast<std::int64_t>(pick(3)))
                                                        : 5 + static_cast<std::int64_t>(pick(60));
    const std::int64_t period_s = clock == Clock::tqdm ? 1 : drawn_s;  // see clock_words()
    out.period_s = period_s;
    const std::int64_t start_s = 1'772'359'200 + static_cast<std::int64_t>(pick(86'400));
    // "00:24" in the first line may be minutes and seconds: then it is not the clock, unless a table's title is.
    if (clock == Clock::minute && !is_table && start_s % 86'400 < 3600) out.counts = true;
    const std::size_t stride = 1 + pick(100);
    const std::size_t first = out.text.size();
    for (std::size_t i = 0; i < out.readings; ++i) {
      const std::int64_t time_s = start_s + period_s * static_cast<std::int64_t>(i);
      const std::string time = is_table ? cell_words(clock, time_s, i, stride) : clock_words(clock, time_s, i, stride);
      std::string line_start = is_table ? std::string() : prefix_words(prefix);
      if (is_table) line_start += "| ";
      if (clock == Clock::line_before) {
        out.text += time + '\n';
      } else {
        line_start += time + (clock == Clock::tqdm ? is_postfix ? ", " : "] " : " ");
      }
      for (std::size_t g = 0; g < gpus; ++g) {
        const double used =
            4000 + 2000 * static_cast<double>(g) + 10 * static_cast<double>(i) + static_cast<double>(pick(7));
        const double total = 24'000;
        // Each srun task writes about its own GPU.
        const bool by_task = prefix == srun && !is_table && !is_block && clock != Clock::line_before;
        if (by_task) line_start[0] = static_cast<char>('0' + g);
        const std::string gpu = gpus > 1 && !by_task ? fmt::format("GPU {}: ", g) : std::string();
        const Labels& l = layout == 1 ? kAfter[after] : kBefore[language];
        const std::string comma = language >= 9 && layout != 1 && unit < 2 ? "," : ".";
        std::vector<std::string> parts;
        std::vector<std::string> titles;
        double written = 0;
        const auto part = [&](std::string_view label, double mib, bool is_first = false) {
          const std::string amount = amount_words(mib, unit, comma, is_first ? &written : nullptr);
          if (is_table) {
            titles.emplace_back(label);
            parts.push_back(amount);
            return;
          }
          parts.push_back(layout == 1 ? fmt::format("{} {}", amount, label) : fmt::format("{}: {}", label, amount));
        };
        switch (figures) {
          case Figures::used:
            part(l.used, used, true);
            break;
          case Figures::used_total:
            part(l.used, used, true);
            part(l.total, total);
            break;
          case Figures::used_free_total:
            part(l.used, used, true);
            part(l.free, total - used);
            part(l.total, total);
            break;
          case Figures::free_total:
            part(l.free, total - used, true);
            part(l.total, total);
            written = total - written;
            break;
          case Figures::allocated_reserved:
            part(l.allocated, used, true);
            part(l.reserved, used + 500);
            break;
          case Figures::pair:
            titles.emplace_back(kBefore[language].used);
            parts.push_back(fmt::format("{}{} / {}", is_table ? "" : fmt::format("{}: ", kBefore[language].used),
                                        amount_words(used, unit, ".", &written),
                                        amount_words(total, unit, ".", nullptr)));
            break;
        }
        out.mib[g].push_back(written);
        if (is_table) {
          if (i == 0 && g == 0) out.text += table_head(clock, gpus > 1, titles);
          out.text += line_start + (gpus > 1 ? fmt::format("| {} ", g) : std::string());
          for (const std::string& p : parts) out.text += "| " + p + ' ';
          out.text += "|\n";
        } else if (is_block) {
          if (clock != Clock::line_before && g == 0) out.text += line_start + '\n';
          if (gpus > 1) out.text += fmt::format("GPU {}\n", g);
          for (const std::string& p : parts) out.text += "  " + p + '\n';
        } else {
          out.text += (clock == Clock::line_before ? std::string() : line_start) + gpu +
                      (layout == 1 && figures != Figures::pair ? "VRAM " : "");
          for (std::size_t k = 0; k < parts.size(); ++k) out.text += (k > 0 ? ", " : "") + parts[k];
          out.text += clock == Clock::tqdm && is_postfix ? "]\n" : "\n";
        }
      }
      if (!is_table) noise_words(noise, out.text);
    }
    if (is_updated) std::replace(out.text.begin() + static_cast<std::ptrdiff_t>(first), out.text.end() - 1, '\n', '\r');
    if (out.ran_out)
      out.text +=
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of 23.64 "
          "GiB of which 512.00 MiB is free.\n";
    return out;
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::string amount_words(double mib, std::size_t unit, const std::string& comma, double* written) {
    constexpr std::string_view kUnits[] = {"GB", "GiB", "MB", "MiB", "Mb", "M", "MB"};
    const bool gib = unit < 2;
    const int digits = gib ? 3 : unit == 3 ? 0 : 2;
    std::string text = fmt::format("{:.{}f}", gib ? mib / 1024 : mib, digits);
    if (written != nullptr) *written = gib ? std::stod(text) * 1024 : std::stod(text);
    if (comma == ",") std::replace(text.begin(), text.end(), '.', ',');
    return text + (unit == 5 || unit == 6 ? "" : " ") + std::string(kUnits[unit]);
  }

  static std::string table_head(Clock clock, bool has_gpu, const std::vector<std::string>& titles) {
    const std::string_view first = clock == Clock::step      ? "step"
                                   : clock == Clock::epochs  ? "epoch"
                                   : clock == Clock::request ? "request"
                                                             : "time";
    std::string head = fmt::format("| {} ", first);
    std::string line = "|---";
    if (has_gpu) {
      head += "| GPU ";
      line += "|---";
    }
    for (const std::string& title : titles) {
      head += fmt::format("| {} ", title);
      line += "|--:";
    }
    return head + "|\n" + line + "|\n";
  }

  /// The clock's value in a table, which has a title for it.
  static std::string cell_words(Clock clock, std::int64_t s, std::size_t i, std::size_t stride) {
    if (clock == Clock::epochs) return std::to_string(i + 1);
    if (clock == Clock::step || clock == Clock::request) return std::to_string(i * stride);
    return clock_words(
        clock == Clock::time_of_day || clock == Clock::minute || clock == Clock::epoch ? clock : Clock::date, s, i,
        stride);
  }

  static std::string clock_words(Clock clock, std::int64_t s, std::size_t i, std::size_t stride) {
    const std::chrono::sys_seconds time{std::chrono::seconds{s}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::int64_t of_day = (time - day).count();
    const std::string hms = fmt::format("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    const std::string full = fmt::format("{}-{:02}-{:02} {}", static_cast<int>(date.year()),
                                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), hms);
    switch (clock) {
      case Clock::bracket:
        return '[' + full + ']';
      case Clock::comma:
        return full + ",125 - INFO -";
      case Clock::labelled:
        return "Timestamp: " + full + ',';
      case Clock::time_of_day:
        return hms;
      case Clock::minute:
        return hms.substr(0, 5);
      case Clock::epoch:
        return std::to_string(s);
      case Clock::step:
        return fmt::format("step {}:", i * stride);
      case Clock::epochs:
        return fmt::format("Epoch [{}/{}]", i + 1, 200);
      case Clock::request:
        return fmt::format("request {}:", i * stride);
      case Clock::syslog: {
        constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        return fmt::format("{} {:2} {} node7 trainer[4242]:", kMonths[static_cast<unsigned>(date.month()) - 1],
                           static_cast<unsigned>(date.day()), hms);
      }
      case Clock::kubectl: {
        std::string iso = full;
        iso[10] = 'T';
        return iso + ".123456789Z";
      }
      case Clock::tqdm:
        return fmt::format("{:3}%|{:<10}| {}/200 [{:02}:{:02}<{:02}:{:02}, {:.2f}it/s", (i + 1) / 2,
                           std::string((i + 1) / 20, '#'), i + 1, i / 60, i % 60, (200 - i) / 60, (200 - i) % 60,
                           0.9 + static_cast<double>(i % 7) / 50);
      default:
        return full;
    }
  }

  std::string prefix_words(std::size_t prefix) {
    switch (prefix) {
      case logger:
        return "INFO:trainer:";
      case journal:
        return "node7 python[4242]: ";
      case compose:
        return "trainer-1  | ";
      case srun:
        return "0: ";
      case pod:
        return "[pod/trainer-7f9c/main] ";
      default:
        return {};
    }
  }

  void noise_words(std::size_t noise, std::string& text) {
    if (noise == 0 || pick(3) != 0) return;
    constexpr std::string_view kNoise[] = {"train loss 0.532, lr 0.0001, 3.2 it/s\n",
                                           "RAM used: 31.5 GB of 64 GB\n",
                                           "downloading shard 3: 1.2 GB of 4.7 GB at 120 MB/s\n",
                                           "saved checkpoint (2.3 GB) to /tmp/x\n",
                                           "\n",
                                           "GPU util 87 %, temp 65 C\n"};
    text += kNoise[pick(std::size(kNoise))];
  }

  std::mt19937_64 random_;
};

/// Empty if it was read as made; otherwise the difference.
std::string difference(const Made& made, const logtest::Reading& r) {
  const bool ran_out = std::any_of(r.events.begin(), r.events.end(),
                                   [](const Event& event) { return event.kind == Event::Kind::out_of_memory; });
  if (made.ran_out != ran_out) return "the message of out of memory is missed";
  if (made.counts != r.catalog->scale.counts_steps()) return "steps and times confused";
  if (r.series() != made.devices.size() * made.metrics.size()) return fmt::format("{} series", r.series());
  for (std::size_t g = 0; g < made.devices.size(); ++g) {
    for (const Metric metric : made.metrics)
      if (r.of(metric, made.devices[g]).size() != made.readings)
        return fmt::format("{} of {} readings", r.of(metric, made.devices[g]).size(), made.readings);
    const auto read = r.of(made.metrics.front(), made.devices[g]);
    for (std::size_t i = 0; i < read.size(); ++i)
      if (std::abs(read[i].second - made.mib[g][i]) > 0.51 + 1e-3 * made.mib[g][i])
        return fmt::format("reading {}: {} for {} MiB", i, read[i].second, made.mib[g][i]);
    if (!made.counts && std::abs(read[1].first - read[0].first - static_cast<double>(made.period_s)) > 0.01)
      return fmt::format("{} s between two readings for {}", read[1].first - read[0].first, made.period_s);
    for (std::size_t i = 2; i < read.size(); ++i)
      if (std::abs((read[i].first - read[i - 1].first) - (read[1].first - read[0].first)) > 0.01) return "times differ";
  }
  return {};
}

TEST(TextProperty, LogsAreReadRightOrRefusedWithAUsefulMessage) {
  constexpr std::size_t kLogs = 1000;
  Maker maker(20'261'125);
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < kLogs; ++i) {
    const Made made = maker.make();
    const auto r = read_text(made.text);
    if (!r.error.empty()) {
      if (++refused <= 12)
        std::printf("refused: %s\n  %s\n%s\n", made.what.c_str(), r.error.c_str(), made.text.substr(0, 300).c_str());
      EXPECT_THAT(r.error, ::testing::HasSubstr("--line-pattern")) << made.what;
      continue;
    }
    const std::string how = difference(made, r);
    if (how.empty()) {
      ++right;
    } else if (++wrong <= 12) {
      std::printf("wrong: %s: %s\n%s\n%s\n", made.what.c_str(), how.c_str(), made.text.substr(0, 500).c_str(),
                  r.warnings().c_str());
    }
  }
  std::printf("%zu right, %zu wrong, %zu refused of %zu\n", right, wrong, refused, kLogs);
  EXPECT_GE(static_cast<double>(right), 0.98 * kLogs);
  EXPECT_LE(static_cast<double>(wrong), 0.005 * kLogs);
}

}  // namespace
}  // namespace vramtrack
