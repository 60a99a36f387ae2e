// The order of time: logs that list their newest rows first, shuffled and joined logs, files that continue one another,
// and clocks that were set.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "log_testing.hpp"
#include "paths.hpp"
#include "source/log/record_sorter.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {
namespace {

using logtest::Files;
using logtest::fixture;
using logtest::read_logs;
using logtest::read_text;
using logtest::Reading;
using logtest::utc;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Lines = std::vector<std::string>;

const std::string kGpus = "timestamp, uuid, index, memory.used [MiB], memory.total [MiB]\n";
const std::string kApps = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n";

std::string joined(const Lines& lines) {
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

/// The complete contents of a reading, in order, per series, since rows of one instant may come in any order.
std::map<std::string, std::vector<std::string>> said(const Reading& r) {
  std::map<std::string, std::vector<std::string>> out;
  for (const Sample& s : r.samples) {
    const SeriesKey& key = r.catalog->key(s.series);
    out[fmt::format("{} {}/{}/{}", to_string(key.metric), key.device_id, key.pid, key.pid_start_ticks)].push_back(
        fmt::format("{} {}", iso8601(s.time), s.bytes));
  }
  for (const Event& e : r.events)
    out[fmt::format("event {} {}/{}/{}", static_cast<int>(e.kind), e.device_id, e.pid, e.pid_start_ticks)].push_back(
        iso8601(e.time));
  return out;
}

/// A log of a committed scenario: its first readings as nvidia-smi would have written them, one per row.
struct SimLogs {
  Lines gpus;
  Lines apps;
};
SimLogs logs_of(const std::string& scenario, std::size_t readings) {
  SimLogs out;
  const auto loaded = sim::load_scenario(tests_dir() + "/scenarios/" + scenario);
  EXPECT_TRUE(loaded) << loaded.error().message;
  Catalog catalog;
  const auto source = sim::make_simulation(*loaded, catalog);
  Batch batch;
  std::set<Timestamp> times;
  const Timestamp start{std::chrono::seconds{1'772'359'200}};
  const Timestamp zero = loaded->start.value_or(Timestamp{});
  for (bool more = true; more && times.size() <= readings;) {
    batch.clear();
    more = *source->poll({}, batch) == Progress::more;
    for (const Sample& s : batch.samples) {
      times.insert(s.time);
      if (times.size() > readings) break;
      const SeriesKey& key = catalog.key(s.series);
      const std::string time = iso8601(start + (s.time - zero));
      const std::uint64_t mib = s.bytes >> 20;
      if (key.metric == Metric::device_used)
        out.gpus.push_back(fmt::format("{}, GPU-{}, {}, {} MiB, 81920 MiB\n", time, key.device_id,
                                       catalog.device(key.device_id)->index.value_or(0), mib));
      else if (key.metric == Metric::process_used)
        out.apps.push_back(
            fmt::format("{}, GPU-{}, {}, p{}, {} MiB\n", time, key.device_id, key.pid, key.pid_start_ticks, mib));
    }
  }
  return out;
}

std::vector<std::string> scenarios() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(tests_dir() + "/scenarios"))
    if (entry.path().extension() == ".toml") out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

class LogOrderOf : public testing::TestWithParam<std::string> {};

TEST_P(LogOrderOf, NewestFirstIsReadAsWritten) {
  const SimLogs logs = logs_of(GetParam(), 300);
  for (const auto& [header, lines] : {std::pair{kGpus, logs.gpus}, {kApps, logs.apps}}) {
    if (lines.empty()) continue;
    const Reading written = read_text(header + joined(lines));
    const Reading reversed = read_text(header + joined(Lines(lines.rbegin(), lines.rend())));
    ASSERT_EQ(reversed.error, "");
    EXPECT_EQ(said(reversed), said(written));
    EXPECT_TRUE(reversed.in_order());
  }
}

RC_GTEST_PROP(LogOrder, APermutationOfRowsOrBlocksIsReadAsTheOrderedLog, ()) {
  static const std::vector<std::string> names = scenarios();
  const SimLogs logs = logs_of(*rc::gen::elementOf(names), 120);
  const bool apps = !logs.apps.empty() && *rc::gen::arbitrary<bool>();
  const Lines& lines = apps ? logs.apps : logs.gpus;
  // The rows of one series at one time have no order except that of the file.
  std::set<std::string> keys;
  for (const std::string& line : lines) {
    std::size_t comma = line.find(',', line.find(',') + 1);
    if (apps) comma = line.find(',', comma + 1);
    RC_PRE(keys.insert(line.substr(0, comma)).second);
  }
  const std::string header = apps ? kApps : kGpus;
  const auto block = static_cast<std::size_t>(*rc::gen::inRange(1, 60));
  std::vector<std::size_t> blocks((lines.size() + block - 1) / block);
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  for (std::size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[*rc::gen::inRange(std::size_t{0}, i)]);
  Lines permuted;
  for (const std::size_t b : blocks)
    for (std::size_t i = b * block; i < std::min(lines.size(), (b + 1) * block); ++i) permuted.push_back(lines[i]);
  const Reading written = read_text(header + joined(lines));
  const Reading read = read_text(header + joined(permuted));
  RC_CLASSIFY(!read.error.empty(), "refused");
  if (!read.error.empty()) {
    RC_ASSERT(read.error.find("time goes back") != std::string::npos);
    return;
  }
  RC_ASSERT(said(read) == said(written));
}

TEST_P(LogOrderOf, RotatedFilesAreOneLogInAnyOrderOnTheCommandLine) {
  const SimLogs logs = logs_of(GetParam(), 300);
  const Reading written = read_text(kGpus + joined(logs.gpus));
  Files files;
  // Cut where a second begins, so that no reading is torn.
  const auto second_of = [&](std::size_t i) { return logs.gpus[i].substr(0, 19); };
  const auto cut_at = [&](std::size_t i) {
    while (second_of(i) == second_of(i - 1)) ++i;
    return i;
  };
  const auto part = [&](std::size_t from, std::size_t to) {
    std::string text = kGpus;
    for (std::size_t i = from; i < to; ++i) text += logs.gpus[i];
    return text;
  };
  const std::size_t end = logs.gpus.size();
  const std::size_t one = cut_at(end / 3);
  const std::size_t two = cut_at(2 * end / 3);
  const auto first = files.write("gpu.log.2", part(0, one));
  const auto second = files.write("gpu.log.1", part(one, two));
  const auto third = files.write("gpu.log", part(two, end));
  Lines names{first, second, third};
  std::sort(names.begin(), names.end());
  do {
    const Reading r = read_logs(names);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.files, names);
    EXPECT_EQ(said(r), said(written));
    EXPECT_TRUE(r.in_order());
  } while (std::next_permutation(names.begin(), names.end()));
  // The same rows in one file, the newest part first.
  const Reading cat = read_text(part(two, end) + part(0, two));
  EXPECT_EQ(cat.error, "");
  EXPECT_EQ(said(cat), said(written));
}

INSTANTIATE_TEST_SUITE_P(Scenarios, LogOrderOf, testing::ValuesIn(scenarios()), [](const auto& scenario) {
  std::string name = scenario.param.substr(0, scenario.param.find('.'));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

constexpr std::int64_t kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

std::string row(std::int64_t second, int mib) {
  return fmt::format("{}, GPU-a, 0, {} MiB, 81920 MiB\n", iso8601(Timestamp{std::chrono::seconds{kTen + second}}), mib);
}

std::string rows(std::int64_t from, std::int64_t to, std::int64_t step = 1) {
  std::string out;
  for (std::int64_t s = from; s < to; s += step) out += row(s, static_cast<int>(100 + s % 1000));
  return out;
}

TEST(LogOrder, AStepBackAmongOtherRowsIsAClock) {
  const auto r = read_text(kGpus + rows(0, 600) + rows(540, 900));
  EXPECT_THAT(r.warnings(), HasSubstr(":602: time goes back by 59 s (a clock was set"));
  ASSERT_THAT(r.samples, SizeIs(960));
  EXPECT_EQ(r.samples.back().time, Timestamp{std::chrono::seconds{kTen + 959}});
}

TEST(LogOrder, ARunThatBeginsAtZeroAgainComesAfterTheOneBefore) {
  std::string text = "t_s,gpu,used_mib\n";
  for (int run = 0; run < 3; ++run)
    for (int t = 0; t < 50; ++t) text += fmt::format("{},0,{}\n", 60 * t, 100 * run + t);
  const auto r = read_text(text);
  ASSERT_THAT(r.samples, SizeIs(150));
  for (std::size_t i = 1; i < r.samples.size(); ++i) EXPECT_GT(r.samples[i].bytes, r.samples[i - 1].bytes);
}

TEST(LogOrder, AStepBackToWhereNothingIsRecordedIsTheOrderOfTheRows) {
  const auto r = read_text(kGpus + rows(3600, 4200) + rows(0, 600));
  EXPECT_THAT(r.warnings(), HasSubstr(":602: time goes back to a period in which the log has no other rows"));
  EXPECT_EQ(said(r), said(read_text(kGpus + rows(0, 600) + rows(3600, 4200))));
  // Also into a pause between two stretches.
  const auto between = read_text(kGpus + rows(0, 600) + rows(1200, 1800) + rows(600, 1200));
  EXPECT_EQ(said(between), said(read_text(kGpus + rows(0, 1800))));
}

TEST(LogOrder, StepsOfBothKindsAreRefused) {
  const auto r = read_text(kGpus + rows(3600, 4200) + rows(4000, 4600) + rows(0, 600));
  EXPECT_THAT(r.error, HasSubstr(":602: time goes back, here or further on"));
  EXPECT_THAT(r.error, HasSubstr("sort the log by its time column"));
}

TEST(LogOrder, RowsSortedByTheirValueAreReadInOrderOfTimeOrRefused) {
  for (const int values : {2, 5, 300}) {
    Lines lines;
    for (int s = 0; s < 600; ++s) lines.push_back(row(10 * s, 100 + s * 7919 % values));
    const Reading written = read_text(kGpus + joined(lines));
    std::stable_sort(lines.begin(), lines.end(),
                     [](const std::string& a, const std::string& b) { return a.substr(26) < b.substr(26); });
    const Reading sorted = read_text(kGpus + joined(lines));
    // With few values, each row comes a few periods after the previous one, as in several simultaneous recordings.
    if (values <= 5)
      EXPECT_THAT(sorted.error, HasSubstr("time goes back")) << values;
    else
      EXPECT_EQ(said(sorted), said(written)) << values;
  }
}

TEST(LogOrder, ASeriesAfterAnotherIsSortedWhereverTheSecondBegins) {
  std::string blocks = "series,t_s,mem_used_mib\n";
  std::string interleaved = blocks;
  for (const char* name : {"a", "b"})
    for (int t = 0; t < 30'000; ++t) blocks += fmt::format("{},{},{}\n", name, t, t % 977);
  for (int t = 0; t < 30'000; ++t)
    for (const char* name : {"a", "b"}) interleaved += fmt::format("{},{},{}\n", name, t, t % 977);
  const auto r = read_text(blocks);
  EXPECT_TRUE(r.in_order());
  EXPECT_EQ(said(r), said(read_text(interleaved)));
}

TEST(LogOrder, TablesAndJsonObjectsAreSortedAsAWhole) {
  std::ifstream in(fixture("gpustat.json"));
  const std::string object((std::istreambuf_iterator<char>(in)), {});
  const auto expect_same_reversed = [](const Lines& records) {
    const Reading written = read_text(joined(records));
    ASSERT_EQ(written.error, "");
    const Reading reversed = read_text(joined(Lines(records.rbegin(), records.rend())));
    EXPECT_EQ(reversed.error, "");
    EXPECT_EQ(said(reversed), said(written));
  };
  Lines json;
  Lines tables;
  for (int i = 0; i < 20; ++i) {
    json.push_back(fmt::format(
        "{{\n    \"hostname\": \"h\",\n    \"query_time\": \"2026-03-01T10:{:02}:00\",\n    \"gpus\": [\n        "
        "{{\n            \"index\": 0, \"uuid\": \"GPU-a\", \"memory.used\": {}, \"memory.total\": 1000,\n"
        "            \"processes\": [{{\"pid\": {}, \"command\": \"p\", \"gpu_memory_usage\": 5}}]\n        "
        "}}\n    ]\n}}\n",
        i, 100 + i, 40 + i / 5));
    tables.push_back(
        fmt::format("Sun Mar  1 10:{:02}:00 2026\n"
                    "+-----------------------------------------------------------------------------------------+\n"
                    "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
                    "|-----------------------------------------+------------------------+----------------------+\n"
                    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
                    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
                    "|=========================================+========================+======================|\n"
                    "|   0  NVIDIA A10                     Off |   00000000:17:00.0 Off |                    0 |\n"
                    "|  0%   32C    P0             55W /  150W |  {:>6}MiB /  23028MiB |      0%      Default |\n"
                    "+-----------------------------------------+------------------------+----------------------+\n"
                    "\n"
                    "+-----------------------------------------------------------------------------------------+\n"
                    "| Processes:                                                                              |\n"
                    "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
                    "|        ID   ID                                                               Usage      |\n"
                    "|=========================================================================================|\n"
                    "|    0   N/A  N/A     {:>5}      C   python                                       100MiB |\n"
                    "+-----------------------------------------------------------------------------------------+\n",
                    i, 1000 + i, 1234 + i / 5));
  }
  expect_same_reversed(json);
  expect_same_reversed(tables);
}

TEST(LogOrder, ShuffledReadingsAreSortedThoughSomeDoNotListTheirProcess) {
  constexpr int kReadings = 400;
  Lines readings;
  for (int i = 0; i < kReadings; ++i)
    readings.push_back(fmt::format(
        "{{\"query_time\": \"2026-03-01T{:02}:{:02}:00\", \"gpus\": [{{\"index\": 0, \"uuid\": \"GPU-a\", "
        "\"memory.used\": {}, \"memory.total\": 1000, \"processes\": [{}]}}]}}\n",
        10 + i / 60, i % 60, 100 + i, i % 10 == 9 ? "" : R"({"pid": 7, "command": "p", "gpu_memory_usage": 5})"));
  const auto written = said(read_text(joined(readings)));
  std::shuffle(readings.begin(), readings.end(), std::mt19937(1));
  const Reading shuffled = read_text(joined(readings));
  EXPECT_EQ(shuffled.error, "");
  EXPECT_EQ(said(shuffled), written);
}

TEST(LogOrder, TimesOfDayListedNewestFirstPassMidnightBackwards) {
  std::string text = "time,gpu,used_mib\n";
  std::string reversed = text;
  for (int i = 0; i < 200; ++i) {
    const int forwards = (23 * 60 + i) % 1440;
    const int backwards = (23 * 60 + 199 - i) % 1440;
    text += fmt::format("{:02}:{:02}:00,0,{}\n", forwards / 60, forwards % 60, i);
    reversed += fmt::format("{:02}:{:02}:00,0,{}\n", backwards / 60, backwards % 60, 199 - i);
  }
  EXPECT_EQ(said(read_text(reversed)), said(read_text(text)));
}

TEST(LogOrder, RowsThatNameNoGpuAreNotSorted) {
  std::string text = "timestamp, memory.used [MiB]\n";
  for (int s = 40; s-- > 0;)
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("{}, {} MiB\n", iso8601(Timestamp{std::chrono::seconds{kTen + 10 * s}}), 100 * gpu + s);
  EXPECT_THAT(read_text(text).error, HasSubstr("cannot be sorted: its rows do not name the GPU"));
}

/// `line` for each of `seconds`, each on a line of its own.
std::string by_second(const std::vector<int>& seconds, const std::function<std::string(int)>& line) {
  std::string out;
  for (const int second : seconds) out += line(second) + "\n";
  return out;
}
const std::vector<int> kNewestFirst{9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

TEST(LogOrder, OtherLineFormatsAreReadFromTheirEndToo) {
  const std::vector<std::pair<std::string, std::function<std::string(int)>>> formats{
      {"text",
       [](int s) { return fmt::format("2026-03-01 10:00:0{} step {} GPU Memory: {} / 24576 MB", s, s, 1000 + s); }},
      {"spaced", [](int s) { return fmt::format("2026-03-01 10:00:0{}    0        {}        24576", s, 1000 + s); }},
      {"gpustat-text",
       [](int s) {
         return fmt::format(
             "node7  Sun Mar  1 10:00:0{} 2026  390.48\n[0] GeForce GTX 1070 | 63'C,  10 % |   {} /  8116 MB |", s,
             1000 + s);
       }},
      {"scalars",
       [](int s) { return fmt::format(R"({{"_timestamp": {}, "gpu0_mem_used_mib": {}}})", 1772359200 + s, 1000 + s); }},
      {"mlflow", [](int s) { return fmt::format("{} {} {}", 1772359200000 + 1000 * s, 1000 + s, 0); }},
  };
  for (const auto& [format, line] : formats) {
    LogOptions options = utc();
    if (format == "mlflow") options.unit = "MiB";
    const std::string titles = format == "spaced" ? "time                 gpu  used (MiB)  total (MiB)\n" : "";
    const Reading r = read_text(titles + by_second(kNewestFirst, line), options);
    EXPECT_EQ(r.error, "") << format;
    EXPECT_THAT(r.formats, ElementsAre(format));
    EXPECT_TRUE(r.in_order()) << format;
    ASSERT_THAT(r.samples, SizeIs(10)) << format;
    EXPECT_EQ(r.samples.front().bytes >> 20, 1000U) << format;
    EXPECT_EQ(r.notes.skipped_lines, 0U) << format << r.notes.first_skipped[0];
    EXPECT_THAT(r.warnings(), HasSubstr("newest rows first")) << format;
  }
}

TEST(LogOrder, ALineOfMoreThanAMebibyteIsSortedAsAWhole) {
  const auto line = [](int s) {
    return fmt::format(R"({{"_timestamp": {}, "gpu0_mem_used_mib": {}, "note": "{}"}})", 1772359200 + s, 1000 + s,
                       std::string(s == 4 || s == 0 ? 3U << 20 : 10, 'x'));
  };
  std::string text = by_second(kNewestFirst, line);
  text.pop_back();  // the last line has no newline
  for (const bool is_shuffled : {false, true}) {
    const Reading r = read_text(is_shuffled ? by_second({5, 6, 7, 8, 9, 0, 1, 2, 3, 4}, line) : text);
    EXPECT_EQ(r.error, "");
    EXPECT_TRUE(r.in_order());
    ASSERT_THAT(r.samples, SizeIs(10));
    EXPECT_EQ(r.samples[4].bytes >> 20, 1004U);
    EXPECT_EQ(r.notes.skipped_lines, 0U);
  }
}

TEST(LogOrder, AnObjectThatIsCutOffLosesItselfAlone) {
  const auto line = [](int s) {
    return fmt::format(R"({{"_timestamp": {}, "gpu0_mem_used_mib": {}{})", 1772359200 + s, 1000 + s,
                       s % 8 == 0 ? "" : "}");
  };
  for (const bool is_reversed : {false, true}) {
    std::string text = by_second(is_reversed ? kNewestFirst : std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, line);
    text.pop_back();
    const Reading r = read_text(text);
    EXPECT_EQ(r.error, "");
    EXPECT_TRUE(r.in_order());
    EXPECT_THAT(r.samples, SizeIs(8));
    EXPECT_EQ(r.notes.skipped_lines, 2U);
  }
}

TEST(LogOrder, RowsWithoutATimeOfTheirOwnAreNotSorted) {
  const Reading text = read_text(by_second(
      kNewestFirst, [](int s) { return fmt::format("2026-03-01 10:00:0{}\nGPU Memory: {} / 24576 MB", s, 1000 + s); }));
  EXPECT_THAT(text.error, HasSubstr("no time of their own"));
  const Reading rows = read_text(by_second(
      kNewestFirst, [](int s) { return fmt::format("Sun Mar  1 10:00:0{} UTC 2026\n0, 35, {}, 24576", s, 8123 + s); }));
  EXPECT_THAT(rows.error, HasSubstr("lines of their own"));
}

TEST(LogOrder, ReversedPackedAndRecodedFilesAreReadToo) {
  Lines lines;
  for (int s = 0; s < 3000; ++s) lines.push_back(row(10 * s, s));
  const auto written = said(read_text(kGpus + joined(lines)));
  std::string crlf;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) crlf += it->substr(0, it->size() - 1) + "\r\n";
  EXPECT_EQ(said(read_text("\xef\xbb\xbf" + kGpus + crlf)), written);
}

/// While it lives, standard input has the contents of `text`.
class Typed {
 public:
  explicit Typed(const std::string& text) : saved_(::dup(0)) {
    const std::string path = files_.write("typed", text);
    // The reader treats it as a pipe: "-" is never opened again.
    FILE* const in = std::fopen(path.c_str(), "rb");
    ::dup2(::fileno(in), 0);
    std::fclose(in);
  }
  ~Typed() {
    ::dup2(saved_, 0);
    ::close(saved_);
  }
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;

 private:
  Files files_;
  int saved_;
};

TEST(LogOrder, StandardInputOutOfOrderIsCopiedAndSorted) {
  Lines lines;
  for (int s = 0; s < 20'000; ++s) lines.push_back(row(10 * s, s));
  const auto written = said(read_text(kGpus + joined(lines)));
  const Typed typed(kGpus + joined(Lines(lines.rbegin(), lines.rend())));
  const Reading r = read_logs({"-"});
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(said(r), written);
}

TEST(LogOrder, StandardInputThatFallsOutOfOrderLaterIsRefused) {
  const Typed typed(kGpus + rows(100'000, 110'000) + rows(0, 10'000));
  const Reading r = read_logs({"-"});
  EXPECT_THAT(r.error, HasSubstr("standard input:10002: time goes back"));
  EXPECT_THAT(r.error, HasSubstr("write standard input to a file"));
}

TEST(LogOrder, StandardInputWhosePartsAreInAnotherOrderIsRefused) {
  // Its first and its last part, then the part between them.
  const Typed typed(kGpus + rows(0, 10'000) + rows(20'000, 30'000) + rows(10'000, 20'000));
  EXPECT_THAT(read_logs({"-"}).error, HasSubstr("standard input:20002: time goes back"));
}

TEST(LogOrder, StandardInputThatTellsOneTimeTwiceOverIsRefusedAtItsEnd) {
  // As in a file: no clock goes back over nine tenths of a log.
  const Typed typed(kGpus + rows(0, 10'000) + rows(100, 10'000));
  EXPECT_THAT(read_logs({"-"}).error, HasSubstr("standard input:10002: time goes back"));
}

TEST(LogOrder, StandardInputThatListsOneSeriesAfterAnotherIsRefused) {
  const auto of = [](const std::string& gpu) {
    Lines lines;
    for (int s = 0; s < 10'000; ++s) {
      std::string line = row(s, s);
      lines.push_back(line.replace(line.find("GPU-a"), 5, gpu));
    }
    return joined(lines);
  };
  const Typed typed(kGpus + of("GPU-a") + of("GPU-b"));
  EXPECT_THAT(read_logs({"-"}).error, HasSubstr("standard input:10002: one series is listed after another"));
}

TEST(LogOrder, StandardInputWhoseClockWasSetGoesOn) {
  const Typed typed(kGpus + rows(0, 10'000) + rows(9'000, 12'000));
  const Reading r = read_logs({"-"});
  EXPECT_EQ(r.error, "");
  EXPECT_THAT(r.samples, SizeIs(13'000));
}

TEST(Continuation, OverlappingLogsOfOneGpuAreRefused) {
  Files files;
  const auto a = files.write("a.csv", kGpus + rows(0, 600));
  const auto b = files.write("b.csv", kGpus + rows(300, 900));
  const auto c = files.write("c.csv", kGpus + rows(900, 1200));
  const auto copy = files.write("copy.csv", kGpus + rows(0, 600));
  for (const Lines& names : {Lines{a, b}, Lines{a, copy}, Lines{c, b, a}}) {
    const auto plan = plan_recordings(names, utc());
    ASSERT_FALSE(plan);
    for (const std::string& part : {std::string("a.csv"), std::string("both contain GPU GPU-a from 2026-")})
      EXPECT_THAT(plan.error().message, HasSubstr(part));
  }
  EXPECT_THAT(plan_recordings({a, b}, utc()).error().message,
              HasSubstr("from 2026-03-01T10:05:00Z to 2026-03-01T10:09:59Z"));
  EXPECT_THAT(plan_recordings({a, a}, utc()).error().message, HasSubstr("is given twice"));
  EXPECT_THAT(*plan_recordings({c, a}, utc()), SizeIs(1));
}

TEST(Continuation, LogsThatNameTheGpuByItsIndexStayIndependent) {
  Files files;
  const std::string header = "timestamp, index, memory.used [MiB]\n";
  const auto a = files.write("a.csv", header + "2026/03/01 10:00:00, 0, 1 MiB\n2026/03/01 10:01:00, 0, 1 MiB\n");
  const auto b = files.write("b.csv", header + "2026/03/01 11:00:00, 0, 1 MiB\n2026/03/01 11:01:00, 0, 1 MiB\n");
  EXPECT_THAT(*plan_recordings({a, b}, utc()), SizeIs(2));
}

TEST(Continuation, ProcessesEndWhereTheNextFileDoesNotListThem) {
  const auto app = [](int s, int pid) {
    return fmt::format("{}, GPU-a, {}, python, 10 MiB\n", iso8601(Timestamp{std::chrono::seconds{kTen + s}}), pid);
  };
  std::string first = kApps;
  std::string second = kApps;
  for (int s = 0; s < 300; s += 10) first += app(s, 7) + app(s, 8);
  for (int s = 300; s < 600; s += 10) second += app(s, 8);
  Files files;
  const Reading r = read_logs({files.write("apps.csv", second), files.write("apps.csv.1", first)});
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 7U);
  EXPECT_EQ(r.series(), 2U);
  EXPECT_THAT(r.of(Metric::process_used, "GPU-a", 8), SizeIs(60));
  // With the device's logs, rotated at other times, they are one recording.
  const auto gpu1 = files.write("gpu.csv.1", kGpus + rows(0, 200, 10));
  const auto gpu2 = files.write("gpu.csv", kGpus + rows(200, 600, 10));
  const Reading all = read_logs({files.write("apps.csv", second), gpu2, files.write("apps.csv.1", first), gpu1});
  EXPECT_EQ(all.error, "");
  EXPECT_TRUE(all.in_order());
  EXPECT_THAT(all.device("GPU-a"), SizeIs(60));
}

TEST(RecordSorter, SortsMoreThanItsBufferHoldsAndKeepsTheOrderOfEqualKeys) {
  RecordSorter sorter(20'000);
  std::vector<std::pair<std::int64_t, std::uint64_t>> expected;
  std::uint64_t state = 1;
  for (std::uint64_t line = 1; line <= 5000; ++line) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto key = static_cast<std::int64_t>(state >> 54);
    // One record is larger than the buffer and the window together.
    const std::string text = line == 777 ? std::string(100'000, 'x') : std::string(line % 50, 'a') + "\n";
    ASSERT_TRUE(sorter.add({key, line, line != 5000, text}));
    expected.emplace_back(key, line);
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  LogRecord record;
  for (const auto& [key, line] : expected) {
    ASSERT_TRUE(*sorter.next(record));
    ASSERT_EQ(record.key, key);
    ASSERT_EQ(record.line, line);
    ASSERT_EQ(record.text.size(), line == 777 ? 100'000U : line % 50 + 1);
    ASSERT_EQ(record.complete, line != 5000);
  }
  EXPECT_FALSE(*sorter.next(record));
}

TEST(RecordSorter, AFolderThatCannotBeWrittenIsNamed) {
  ::setenv("TMPDIR", "/nonexistent", 1);
  const auto spool = Spool::make();
  ::unsetenv("TMPDIR");
  ASSERT_FALSE(spool);
  EXPECT_THAT(spool.error().message, HasSubstr("/nonexistent: No such file"));
  EXPECT_THAT(spool.error().message, HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace vramtrack
