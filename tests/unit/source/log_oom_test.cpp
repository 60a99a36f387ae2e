// Out-of-memory messages among the readings of a log.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/messages.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kTorch =
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB (GPU 1; 23.69 GiB total capacity; "
    "19.90 GiB already allocated; 3.20 GiB free; 20.10 GiB reserved in total by PyTorch)";

TEST(OutOfMemoryMessage, IsToldFromOtherLines) {
  for (const std::string_view line : {
           std::string_view(kTorch),
           std::string_view("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
           std::string_view("[rank1]: HIP out of memory. Tried to allocate 2.00 GiB"),
           std::string_view("RuntimeError: CUDA error: out of memory"),
           std::string_view("RuntimeError:\tCUDA\terror:\tout\tof\tmemory"),
           std::string_view(
               "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9866.00 MiB on device 1: cudaMalloc "
               "failed: out of memory"),
           std::string_view("ValueError: No available memory for the cache blocks."),
           std::string_view("torch.OutOfMemoryError: Allocation on device"),
           std::string_view("numba.cuda: cudaErrorMemoryAllocation"),
           std::string_view("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
           std::string_view("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."),
           std::string_view("failed to allocate 4.00G (4294967296 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"),
       })
    EXPECT_TRUE(reports_out_of_memory(line)) << line;
  for (const std::string_view line :
       {"    except torch.cuda.OutOfMemoryError:", "java.lang.OutOfMemoryError: Java heap",
        "GPU Memory: 8123 / 24576 MB", "the host is out of memory", "",
        "提示：如果出现 CUDA out of memory，请减小 batch size",
        "2026-03-01 10:00:00 提示：显存不足时会报 CUDA out of memory",
        "CUDA out of memory が出る場合は、バッチサイズを下げてください。",
        "Tip: if you see CUDA out of memory, lower the batch",
        "2026-03-01 10:00:00 INFO trainer: will retry on CUDA out of memory"})
    EXPECT_FALSE(reports_out_of_memory(line)) << line;
  EXPECT_EQ(gpu_of_message(kTorch), 1);
  EXPECT_EQ(gpu_of_message("GPU has gone"), std::nullopt);
}

const std::string kLimited =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 24.00 GiB "
    "of which 12.00 GiB is free. Process 42 has 8.49 GiB memory in use. 8.00 GiB allowed; Of the allocated memory 6.90 "
    "GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";
const std::string kHami =
    "[HAMI-core ERROR (pid:77 thread=140123 allocator.c:52)]: Device 0 OOM 3171158016 / 3145728000";

TEST(OutOfMemoryMessage, NamesTheLimitOfItsProgram) {
  const auto torch = limit_of_message(kLimited);
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->bytes, 8ULL << 30);
  EXPECT_NEAR(static_cast<double>(torch->held_bytes), 7.9 * (1ULL << 30), 1e6);
  EXPECT_EQ(processes_of_message(kLimited).own, 42U);
  EXPECT_EQ(torch->name, "PyTorch's per_process_memory_fraction");
  EXPECT_TRUE(reports_out_of_memory(kHami));
  EXPECT_EQ(gpu_of_message(kHami), 0);
  const auto hami = limit_of_message(kHami);
  ASSERT_TRUE(hami);
  EXPECT_EQ(hami->bytes, 3145728000U);
  EXPECT_EQ(processes_of_message(kHami).own, 77U);
  EXPECT_EQ(hami->name, "HAMi's CUDA_DEVICE_MEMORY_LIMIT");
  EXPECT_FALSE(limit_of_message(kTorch));
  EXPECT_FALSE(
      limit_of_message("[metal::malloc] Attempting to allocate 640000000 bytes which is greater than the maximum "
                       "allowed buffer size of 268435456 bytes"))
      << "what may be asked for at once is no end of what may be held";
}

/// Twenty readings of two GPUs, then `end`.
std::string csv(const std::string& end) {
  std::string text = "time,gpu_index,used_mib\n";
  for (int i = 0; i < 20; ++i)
    for (int gpu = 0; gpu < 2; ++gpu) text += fmt::format("2026-03-01 10:00:{:02},{},{}\n", i, gpu, 1000 + i);
  return text + end;
}

/// `after`: the time since the last reading.
void expect_one(const logtest::Reading& r, const std::string& device, Duration after = Duration{1}) {
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.notes.skipped_lines, 0U);
  std::vector<Event> events = r.events;
  std::erase_if(events, [](const Event& event) { return event.kind == Event::Kind::capacity; });
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].kind, Event::Kind::out_of_memory);
  EXPECT_EQ(events[0].device_id, device);
  EXPECT_EQ(events[0].time, r.samples.back().time + after) << "after that reading";
  EXPECT_EQ(events[0].pid, 0U);
  EXPECT_THAT(events[0].text, HasSubstr("the memory of a GPU ran out: "));
}

TEST(OutOfMemoryMessage, AmongRowsIsAnEventOfTheLastReading) {
  expect_one(read_text(csv(kTorch + "\n")), "1");
  expect_one(read_text(csv(kTorch + "\n" + kTorch + "\n")), "1");
  expect_one(read_text(csv("RuntimeError: CUDA error: out of memory\n")), "");
}

TEST(OutOfMemoryMessage, WithATimeOfItsOwnIsAnEventOfThatTime) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("[10:00:{:02}] GPU memory allocated: {} MB\n", i, 4000 + i);
  const auto r = read_text(text + "[10:07:00] " + kTorch + "\n");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].time, r.samples.back().time + std::chrono::seconds{401});
}

/// "1001: 8 name" for each wall that a log reports.
std::vector<std::string> walls_of(const logtest::Reading& r) {
  std::vector<std::string> out;
  EXPECT_EQ(r.error, "");
  for (const Event& event : r.events)
    if (event.kind == Event::Kind::capacity && !event.text.empty())
      out.push_back(fmt::format("{} {}: {:.2f} GiB {}", event.device_id, event.pid,
                                static_cast<double>(event.capacity_bytes) / (1ULL << 30), event.text));
  return out;
}

TEST(OutOfMemoryMessage, TheLimitThatItNamesIsAWall) {
  std::string processes = "timestamp,gpu_index,pid,used_gpu_memory_mib\n";
  for (int i = 0; i < 20; ++i)
    for (const int pid : {41, 42}) processes += fmt::format("2026-03-01 10:00:{:02},0,{},{}\n", i, pid, 1000 + i);
  EXPECT_THAT(walls_of(read_text(processes + kLimited + "\n" + kLimited + "\n")),
              testing::ElementsAre("0 42: 8.00 GiB PyTorch's per_process_memory_fraction"));
  EXPECT_THAT(walls_of(read_text(processes + kHami + "\n")), IsEmpty()) << "it is not known which of both it is";
  std::string device = "time,gpu_index,used_mib\n";
  for (int i = 0; i < 20; ++i) device += fmt::format("2026-03-01 10:00:{:02},0,{}\n", i, 10240);
  EXPECT_THAT(walls_of(read_text(device + kLimited + "\n")),
              testing::ElementsAre("0 0: 10.10 GiB PyTorch's per_process_memory_fraction"))
      << "it holds 7.9 of 8 GiB";
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += fmt::format("2026-03-01 10:00:{:02} step {} memory allocated 2.{:02} GiB\n", i, i, i);
  EXPECT_THAT(walls_of(read_text(text + kHami + "\n")),
              testing::ElementsAre("0 0: 2.93 GiB HAMi's CUDA_DEVICE_MEMORY_LIMIT"));
}

/// Readings of processes from `from` s to `to` s, with the pid and MiB of each.
std::string listing(int from, int to, const std::vector<std::pair<int, int>>& processes) {
  std::string text;
  for (int i = from; i < to; ++i)
    for (const auto& [pid, mib] : processes)
      text += fmt::format("2026-03-01 10:{:02}:{:02},0,{},{}\n", i / 60, i % 60, pid, mib);
  return text;
}
const std::string kListing = "timestamp,gpu_index,pid,used_gpu_memory_mib\n";
const std::string kOfAnother =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
    "of which 5.50 GiB is free. Process 42 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "8.49 GiB memory in use. 8.00 GiB allowed; Of the allocated memory 6.90 GiB is allocated by PyTorch, and 1.00 GiB "
    "is reserved by PyTorch but unallocated.\n";

std::vector<Event> events_of(const logtest::Reading& r, Event::Kind kind) {
  EXPECT_EQ(r.error, "");
  std::vector<Event> out = r.events;
  std::erase_if(out, [kind](const Event& event) { return event.kind != kind; });
  return out;
}

TEST(OutOfMemoryMessage, OneThatItNamesAsAnotherIsNotTheOneThatFailed) {
  const auto r = read_text(kListing + listing(0, 20, {{42, 10240}, {77, 8694}}) + kOfAnother +
                           listing(20, 40, {{42, 10240}, {77, 8694}}));
  const auto events = events_of(r, Event::Kind::out_of_memory);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].pid, 77U);
  EXPECT_THAT(walls_of(r), testing::ElementsAre("0 77: 8.59 GiB PyTorch's per_process_memory_fraction"))
      << "what PyTorch holds counts, and its context counts beside it";
  const auto alone = read_text(kListing + listing(0, 20, {{42, 10240}}) + kOfAnother);
  EXPECT_EQ(events_of(alone, Event::Kind::out_of_memory).at(0).pid, 0U) << "the one that failed is not listed";
  EXPECT_THAT(walls_of(alone), IsEmpty());
}

TEST(OutOfMemoryMessage, OneThatIsNotListedAgainHasEndedForIt) {
  const auto gone = events_of(
      read_text(kListing + listing(0, 20, {{42, 10240}, {77, 8694}}) + kOfAnother + listing(20, 40, {{42, 10240}})),
      Event::Kind::process_ended);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].pid, 77U);
  EXPECT_TRUE(gone[0].ran_out_of_memory);
  const auto later = events_of(read_text(kListing + listing(0, 20, {{42, 10240}, {77, 8694}}) + kOfAnother +
                                         listing(20, 40, {{42, 10240}, {77, 8694}}) + listing(40, 60, {{42, 10240}})),
                               Event::Kind::process_ended);
  ASSERT_THAT(later, SizeIs(1));
  EXPECT_FALSE(later[0].ran_out_of_memory) << "it caught that";
}

TEST(OutOfMemoryMessage, ALimitThatIsExceededHoldsNoLonger) {
  EXPECT_THAT(walls_of(read_text(kListing + listing(0, 20, {{77, 8694}}) + kOfAnother + listing(20, 30, {{77, 8700}}) +
                                 listing(30, 40, {{77, 9000}}))),
              testing::ElementsAre("0 77: 8.59 GiB PyTorch's per_process_memory_fraction",
                                   "0 77: 0.00 GiB PyTorch's per_process_memory_fraction"));
  std::string device = "time,gpu_index,used_mib\n";
  for (int i = 0; i < 20; ++i) device += fmt::format("2026-03-01 10:00:{:02},0,{}\n", i, 10240);
  EXPECT_THAT(walls_of(read_text(device + kLimited + "\n2026-03-01 10:00:20,0,10500\n")),
              testing::ElementsAre("0 0: 10.10 GiB PyTorch's per_process_memory_fraction",
                                   "0 0: 0.00 GiB PyTorch's per_process_memory_fraction"));
}

TEST(OutOfMemoryMessage, InTextIsAnEventOfTheOnlyGpu) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("2026-03-01 10:00:{:02} GPU Memory: {} / 24576 MB\n", i, 1000 + i);
  const auto r = read_text(text + "2026-03-01 10:00:20 ERROR " + kTorch + "\n");
  expect_one(r, "0", std::chrono::seconds{1});
  EXPECT_THAT(r.events[0].text, HasSubstr(":21: "));
  EXPECT_THAT(r.events[0].text, HasSubstr("ran out: 19.90 GiB of the device's 23.69 GiB were allocated and 3.20 GiB "
                                          "were free when 4.00 GiB were requested"));
}

TEST(OutOfMemoryMessage, SaysHowMuchMemoryTheDeviceHas) {
  const auto capacity_of = [](const logtest::Reading& r) {
    const auto event =
        std::find_if(r.events.begin(), r.events.end(), [](const Event& e) { return e.kind == Event::Kind::capacity; });
    return event == r.events.end() ? 0.0 : static_cast<double>(event->capacity_bytes) / 1048576.0;
  };
  const auto r = read_text(csv(kTorch + "\n"));
  EXPECT_NEAR(capacity_of(r), 23.69 * 1024, 1);
  EXPECT_EQ(r.events[0].device_id, "1");
  LogOptions given = logtest::utc();
  given.capacity_bytes = 24ULL << 30;
  EXPECT_EQ(capacity_of(read_text(csv(kTorch + "\n"), given)), 0) << "the user knows better";
}

TEST(OutOfMemoryMessage, OfAProgramThatWentOnIsBeforeItsLaterReadings) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("2026-03-01 10:00:{:02} GPU Memory: {} / 24576 MB\n", i, 1000 + i);
    if (i == 10) text += "2026-03-01 10:00:10 WARNING batch 3 was skipped: " + kTorch + "\n";
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].kind, Event::Kind::out_of_memory);
  EXPECT_LT(r.events[0].time, r.samples.back().time);
}

TEST(OutOfMemoryMessage, BeforeTheFirstReadingIsOfAnotherRun) {
  const auto r = read_text(kTorch + "\n" + csv(""));
  EXPECT_EQ(r.error, "");
  EXPECT_THAT(r.events, IsEmpty());
}

TEST(LostGpu, ACellThatSaysSoEndsTheReadingsOfItsGpu) {
  std::string log = "timestamp, index, memory.used [MiB], memory.total [MiB]\n";
  const auto row = [](int second, int gpu, std::string_view used) {
    return fmt::format("2026/03/01 10:00:{:02}.000, {}, {}, 8192 MiB\n", second, gpu, used);
  };
  for (int i = 0; i < 20; ++i) log += row(i, 0, "1000 MiB") + row(i, 1, "1000 MiB");
  const auto read = [&](std::string_view cell) {
    std::string text = log;
    for (int i = 20; i < 30; ++i) text += row(i, 0, "1000 MiB") + row(i, 1, cell);
    return read_text(text);
  };
  const auto count = [](const auto& r, Event::Kind kind) {
    return std::count_if(r.events.begin(), r.events.end(), [&](const Event& e) { return e.kind == kind; });
  };
  for (const std::string_view cell : {"[GPU is lost]", "[GPU requires reset]"}) {
    const auto r = read(cell);
    ASSERT_EQ(count(r, Event::Kind::device_lost), 1) << cell;
    EXPECT_EQ(count(r, Event::Kind::device_resumed), 0) << cell << ": the other GPU answers all the time";
    EXPECT_THAT(r.notes.warnings, testing::Contains(testing::AllOf(
                                      testing::StartsWith("10 rows were not read, because they have an error in place "
                                                          "of the used memory; the first: "),
                                      testing::HasSubstr(fmt::format("log:43: '{}'", cell)))));
  }
  for (const std::string_view cell : {"[Unknown Error]", "ERR!", "[Insufficient Permissions]"}) {
    const auto r = read(cell);
    EXPECT_EQ(count(r, Event::Kind::device_lost), 0) << cell;
    EXPECT_THAT(r.notes.warnings, testing::Contains(testing::HasSubstr(fmt::format(":43: '{}'", cell))));
  }
  for (const std::string_view cell : {"[N/A]", "[Not Supported]"}) EXPECT_THAT(read(cell).notes.warnings, IsEmpty());
}

TEST(LostGpu, ItsReadingsStopAndGoOnWithTheNextSample) {
  const std::string lost = "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n";
  const std::string bus = "timestamp, index, pci.bus_id, memory.used [MiB]\n";
  const auto row = [](int second, int gpu) {
    return fmt::format("2026/03/01 10:00:{:02}.000, {}, 00000000:0{}:00.0, {} MiB\n", second, gpu, gpu + 1,
                       1000 + second);
  };
  const auto events_of = [](const std::string& text) {
    const auto r = read_text(text);
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.notes.skipped_lines, 0U);
    std::vector<std::pair<Event::Kind, std::string>> out;
    for (const Event& event : r.events)
      if (event.kind != Event::Kind::capacity) out.emplace_back(event.kind, event.device_id);
    return out;
  };
  using Kind = Event::Kind;
  std::string both = bus;
  for (int i = 0; i < 20; ++i) both += row(i, 0) + row(i, 1);
  using Events = std::vector<std::pair<Kind, std::string>>;
  const Events all = events_of(both + lost + lost);
  ASSERT_EQ(all.size(), 1U) << "named by its bus";
  EXPECT_EQ(all[0].first, Kind::device_lost);
  const Events back = events_of(both + lost + row(20, 0) + row(20, 1));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].first, Kind::device_resumed);
  EXPECT_EQ(back[1].second, back[0].second);
  EXPECT_EQ(events_of(csv("GPU is lost.  Reboot the system to recover this GPU\n")).size(), 2U) << "which, is not said";
  EXPECT_TRUE(events_of(lost + both).empty()) << "no reading before it";
}

}  // namespace
}  // namespace vramtrack
