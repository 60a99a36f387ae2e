// Whose a figure is, by the fields of its record: the rule itself, and what the syntaxes pass to it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "log_testing.hpp"
#include "source/log/owners.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using ::testing::HasSubstr;

std::string id_of(OwnerIds ids) {
  return device_id(device_of(std::move(ids)));
}

TEST(Owners, OnlyAUuidIsUniqueAmongMachines) {
  const std::string uuid = "GPU-8f1c0b3a-1111-2222-3333-444455556666";
  EXPECT_EQ(id_of({}), "0");
  EXPECT_EQ(id_of({.index = "3"}), "3");
  EXPECT_EQ(id_of({.index = "cuda:1"}), "1");
  EXPECT_EQ(id_of({.index = "left"}), "left");
  EXPECT_EQ(id_of({.index = uuid}), uuid);
  EXPECT_EQ(id_of({.pci_bus_id = "00000000:17:00.0", .index = "3"}), "00000000:17:00.0");
  EXPECT_EQ(id_of({.index = "3", .origin = "n1"}), "n1/3");
  EXPECT_EQ(id_of({.pci_bus_id = "00000000:17:00.0", .index = "3", .origin = "n1"}), "n1/00000000:17:00.0");
  EXPECT_EQ(id_of({.uuid = uuid, .index = "3", .origin = "n1"}), uuid);
  EXPECT_EQ(id_of({.origin = "n1"}), "n1");
  const LogDevice part = device_of({.index = "3", .origin = "n1", .partition = "gi2"});
  EXPECT_EQ(device_id(part), "n1/3/gi2");
  EXPECT_EQ(part.parent_id, "n1/3");
}

TEST(Owners, ZeroIsNoPidUnlessPidsAreCountedFromIt) {
  EXPECT_EQ(pid_of(" 4242 "), 4242U);
  EXPECT_EQ(pid_of("0"), std::nullopt);
  EXPECT_EQ(pid_of("python"), std::nullopt);
  const auto count = [](std::vector<std::string_view> pids) { return number_programs(pids); };
  EXPECT_TRUE(count({"0", "1", "0", "1"}));
  EXPECT_TRUE(count({"2", "1", "0"}));
  EXPECT_TRUE(count({"0", "0"}));
  EXPECT_FALSE(count({}));
  EXPECT_FALSE(count({"1", "2"}));
  EXPECT_FALSE(count({"0", "4242"}));
  EXPECT_FALSE(count({"0", "1", "python"}));
}

TEST(Owners, ANameDistinguishesWhatOneOwnerHasAtOneTime) {
  const auto apart = [](std::vector<std::string_view> values, std::vector<std::string> owners) {
    std::vector<std::string_view> times;
    for (std::size_t i = 0; i < values.size(); ++i) times.push_back(i < 2 ? "1" : i < 4 ? "2" : i < 6 ? "3" : "4");
    return distinguish(values, times, owners);
  };
  const std::vector<std::string> one(8, "0");
  EXPECT_TRUE(apart({"a", "b", "a", "b", "b", "a", "a", "b"}, one));
  EXPECT_TRUE(apart({"a", "b", "a", "b", "b", "a", "a", "a"}, one)) << "an odd time";
  EXPECT_FALSE(apart({"a", "a", "a", "a", "b", "b", "b", "b"}, one)) << "another program, later";
  EXPECT_FALSE(apart({"a", "b", "a", "b", "b", "a", "a", "b"}, {"0", "1", "0", "1", "0", "1", "0", "1"}));
}

TEST(Owners, KeysOfLinesNameTheirWriters) {
  for (const char* key : {"host", "Job_ID", "process_name", "command", "pid", "worker", "tid", "gpu"})
    EXPECT_TRUE(names_origin(key)) << key;
  for (const char* key : {"split", "phase", "loss", "time"}) EXPECT_FALSE(names_origin(key)) << key;
}

/// Lines for two owners at 20 times.
std::string lines_of(const std::function<std::string(int i, int owner)>& line) {
  std::string out;
  for (int i = 0; i < 20; ++i)
    for (int owner = 0; owner < 2; ++owner) out += line(i, owner) + '\n';
  return out;
}

TEST(Owners, AnUnknownPidIsLeftOutAndCounted) {
  const auto pid = [](int i, int owner) { return i == 5 && owner == 1 ? 0 : 4242 + owner; };
  const auto time = [](int i) { return fmt::format("2026-03-01 10:00:{:02}", i); };
  for (const std::string& text : {lines_of([&](int i, int owner) {
                                    return fmt::format("{{\"time\": \"{}\", \"pid\": {}, \"gpu_mem_used_mib\": {}}}",
                                                       time(i), pid(i, owner), 4000 + 3000 * owner + i);
                                  }),
                                  "time,pid,gpu_mem_used_mib\n" + lines_of([&](int i, int owner) {
                                    return fmt::format("{},{},{}", time(i), pid(i, owner), 4000 + 3000 * owner + i);
                                  }),
                                  lines_of([&](int i, int owner) {
                                    return fmt::format("{} pid={} gpu_mem_used_mib={}", time(i), pid(i, owner),
                                                       4000 + 3000 * owner + i);
                                  }),
                                  lines_of([&](int i, int owner) {
                                    return fmt::format("gpu_mem_used_mib{{pid=\"{}\"}} {} {}000", pid(i, owner),
                                                       4000 + 3000 * owner + i, 1'772'359'200 + i);
                                  })}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 80);
    EXPECT_EQ(r.of(Metric::process_used, "0", 4242).size(), 20U) << text.substr(0, 80);
    EXPECT_EQ(r.of(Metric::process_used, "0", 4243).size(), 19U) << text.substr(0, 80);
    EXPECT_EQ(r.notes.skipped_lines, 1U) << text.substr(0, 80);
    EXPECT_THAT(r.notes.first_skipped, testing::Contains(HasSubstr("no readable pid")));
  }
}

TEST(Owners, ABusIdIsThatOfAMachine) {
  const auto r = read_text("time,host,pci_bus_id,gpu_mem_used_mib\n" + lines_of([](int i, int owner) {
                             return fmt::format("2026-03-01 10:00:{:02},n{},0000:17:00.0,{}", i, owner + 1,
                                                4000 + 3000 * owner + i);
                           }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
}

TEST(Owners, AProgramIsNoOwnerOfItsOwnWhereItOnlyChanges) {
  const auto r = read_text("time,gpu,command,gpu_mem_used_mib\n" + lines_of([](int i, int owner) {
                             return fmt::format("2026-03-01 10:00:{:02},{},{},{}", i, owner,
                                                i < 10 ? "train.py" : "eval.py", 4000 + 3000 * owner + i);
                           }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").size(), 20U);
  EXPECT_EQ(r.device("1").size(), 20U);
}

TEST(Owners, TheJobOfAScrapeIsNone) {
  for (const bool is_scraped : {false, true}) {
    const auto r = read_text(lines_of([&](int i, int owner) {
      return fmt::format("gpu_mem_used_mib{{gpu=\"0\",job=\"{}\"{}}} {} {}000", owner == 0 ? "a" : "b",
                         is_scraped ? ",instance=\"n1:9400\"" : "", 4000 + 3000 * owner + i, 1'772'359'200 + i);
    }));
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.series(), is_scraped ? 1U : 2U);
  }
}

TEST(Owners, PidsOfAnAnswerOfPrometheusAreNotMerged) {
  std::string text = R"({"status": "success", "data": {"resultType": "matrix", "result": [)";
  for (const int pid : {4242, 5151}) {
    text += fmt::format("{}{{\"metric\": {{\"__name__\": \"gpu_mem_used_mib\", \"pid\": \"{}\"}}, \"values\": [",
                        pid == 4242 ? "" : ", ", pid);
    for (int i = 0; i < 20; ++i)
      text += fmt::format("{}[{}, \"{}\"]", i == 0 ? "" : ", ", 1'772'359'200 + 10 * i, pid + i);
    text += "]}";
  }
  const auto r = read_text(text + "]}}");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
}

TEST(Owners, AProcessStaysOnItsGpus) {
  // Of two processes, one has both GPUs: at each time, the numbers of all do not count.
  std::string csv = "time,gpu,pid,gpu_mem_used_mib\n", json, busy = "time,gpu,pid,gpu_mem_used_mib\n";
  for (int i = 0; i < 20; ++i)
    for (const auto& [gpu, pid] : {std::pair(0, 4242), std::pair(0, 5151), std::pair(1, 4242)}) {
      csv += fmt::format("2026-03-01 10:00:{:02},{},{},{}\n", i, gpu, pid, 1000 * (gpu + 1) + pid + i);
      json +=
          fmt::format("{{\"time\": \"2026-03-01T10:00:{:02}Z\", \"gpu\": {}, \"pid\": {}, \"gpu_mem_used_mib\": {}}}\n",
                      i, gpu, pid, 1000 * (gpu + 1) + pid + i);
      if (gpu == 0)
        busy += fmt::format("2026-03-01 10:00:{:02},{},{},{}\n", i, (7 * i * i + pid) % 37, pid, 1000 + pid + i);
    }
  for (const std::string& text : {csv, json}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.of(Metric::process_used, "0", 4242).size(), 20U) << text.substr(0, 40);
    EXPECT_EQ(r.of(Metric::process_used, "0", 5151).size(), 20U) << text.substr(0, 40);
    EXPECT_EQ(r.of(Metric::process_used, "1", 4242).size(), 20U) << text.substr(0, 40);
  }
  const auto measured = read_text(busy);
  ASSERT_EQ(measured.error, "");
  EXPECT_EQ(measured.series(), 2U) << "what the column 'gpu' measures is no number of a GPU";
}

TEST(Owners, AnIdBesideAMachineDistinguishesItsGpus) {
  std::string slots = "time,host,slot,loss,gpu_mem_used_mib\n", json, lines;
  std::string clusters = "time,cluster,host,gpu,gpu_mem_used_mib\n", metrics;
  for (int i = 0; i < 20; ++i)
    for (int owner = 0; owner < 4; ++owner) {
      const int mib = 4000 + 3000 * owner + i;
      slots +=
          fmt::format("2026-03-01 10:00:{:02},n{},{},0.{:03},{}\n", i, owner / 2, owner % 2, 100 + 7 * i + owner, mib);
      json += fmt::format(
          "{{\"time\": \"2026-03-01T10:00:{:02}Z\", \"host\": \"n{}\", \"slot\": {}, \"gpu_mem_used_mib\": {}}}\n", i,
          owner / 2, owner % 2, mib);
      lines += fmt::format("gpu,host=n{},slot={} gpu_mem_used_mib={} {}000000000\n", owner / 2, owner % 2, mib,
                           1'772'359'200 + i);
      clusters += fmt::format("2026-03-01 10:00:{:02},c{},n1,{},{}\n", i, owner / 2, owner % 2, mib);
      metrics += fmt::format("gpu_mem_used_mib{{cluster=\"c{}\",gpu=\"{}\"}} {} {}000\n", owner / 2, owner % 2, mib,
                             1'772'359'200 + i);
    }
  for (const std::string& text : {slots, json, lines, clusters, metrics}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 60);
    EXPECT_EQ(r.series(), 4U) << text.substr(0, 60);
    EXPECT_EQ(r.samples.size(), 80U) << text.substr(0, 60);
  }
}

TEST(Owners, SamplesWithoutTypesHaveTheirTimes) {
  const auto line = [](std::string_view metric, int mib, int i) {
    return fmt::format("{} {} {}000\n", metric, mib, 1'772'359'200 + 10 * i);
  };
  std::string used, free, process, twice;
  for (int i = 0; i < 20; ++i) {
    used += line("gpu_mem_used_mib", 4000 + 60 * i, i);
    free += line("gpu_mem_free_mib", 20'000 - 60 * i, i);
    process += line("process_memory_mib", 4000 + 60 * i, i);
    twice += line("gpu_mem_used_mib", 4000 + 60 * i, i) + line("gpu_mem_used_mib", 9000, i);
  }
  for (const std::string& text : {used, free, process}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 40);
    const auto values = r.device("0");
    ASSERT_EQ(values.size(), 20U) << text.substr(0, 40);
    EXPECT_EQ(values.back().first - values.front().first, 190) << text.substr(0, 40);
    EXPECT_EQ(values.back().second - values.front().second, 1140) << text.substr(0, 40);
  }
  EXPECT_THAT(read_text(process).warnings(), HasSubstr("no metric says that its memory is a GPU's"));
  EXPECT_THAT(read_text(twice).error, HasSubstr("cannot be told apart"));
}

}  // namespace
}  // namespace vramtrack
