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

TEST(Owners, SharesOfAGpuAreItsParts) {
  const std::string uuid = "GPU-8f1c0b3a-1111-2222-3333-444455556666";
  const LogDevice pod = device_of({.uuid = uuid, .origin = "n1", .share = "train-0"});
  EXPECT_EQ(device_id(pod), uuid + "/train-0");
  EXPECT_EQ(pod.parent_id, uuid);
  EXPECT_EQ(id_of({.index = "3", .origin = "n1", .share = "train-0"}), "n1/train-0/3");
  EXPECT_EQ(id_of({.index = "3", .share = "train-0"}), "train-0/3");
  EXPECT_EQ(id_of({.share = "train-0"}), "train-0");
}

/// The fields found for records of `owners` at a time each, `rows` of them, whose amounts differ unless given.
struct Records {
  std::vector<std::vector<std::string_view>> rows;  ///< the fields of each record of a time
  std::size_t times = 8;
  std::vector<std::string> owners{};  ///< by record of a time; empty: one owner
  bool are_equal = false;             ///< the amounts at one time
  std::function<std::string_view(std::size_t time, std::size_t row, std::size_t field)> value{};

  [[nodiscard]] std::vector<std::size_t> found() const {
    HeadRecords records;
    std::vector<HeadField> fields(rows.front().size());
    std::vector<std::string> names;
    for (std::size_t time = 0; time < times; ++time) names.push_back(std::to_string(time));
    for (std::size_t time = 0; time < times; ++time)
      for (std::size_t row = 0; row < rows.size(); ++row) {
        records.owners.push_back(owners.empty() ? "0" : owners[row]);
        records.times.push_back(names[time]);
        records.amounts.push_back(static_cast<double>(1000 * (are_equal ? 0 : row) + time));
        for (std::size_t field = 0; field < fields.size(); ++field)
          fields[field].push_back(value ? value(time, row, field) : rows[row][field]);
      }
    return find_owner_fields(std::move(records), fields);
  }
};

using Fields = std::vector<std::size_t>;

TEST(Owners, AFieldNamesTheOwnersOfWhatOneHasAtOneTime) {
  EXPECT_EQ((Records{{{"n", "a"}, {"n", "b"}}}.found()), Fields{1});
  EXPECT_EQ((Records{{{"n", "a"}, {"n", "b"}}, 2}.found()), Fields{}) << "too few times";
  EXPECT_EQ((Records{{{"n", "a"}, {"n", "b"}}, 8, {"0", "1"}}.found()), Fields{}) << "others are named already";
  EXPECT_EQ((Records{{{"n", "a"}, {"n", "b"}}, 8, {}, true}.found()), Fields{}) << "one figure, repeated";
}

TEST(Owners, SeveralFieldsNameThemTogether) {
  EXPECT_EQ((Records{{{"r1", "x", "b1"}, {"r1", "x", "b2"}, {"r2", "x", "b1"}, {"r2", "x", "b2"}}}.found()),
            (Fields{0, 2}));
  EXPECT_EQ((Records{{{"r1", "b1", "s1"}, {"r1", "b2", "s2"}, {"r2", "b1", "s3"}, {"r2", "b2", "s4"}}}.found()),
            Fields{2})
      << "one is enough";
  EXPECT_EQ((Records{{{"a", "x"}, {"b", "x"}, {"n", "y"}, {"n", "z"}}, 8, {"0", "0", "1", "1"}}.found()),
            (Fields{0, 1}))
      << "another one for each owner";
}

TEST(Owners, AMeasurementNamesNone) {
  static const std::vector<std::string> numbers = {"41", "42", "43", "44", "45"};
  Records measured{{{""}, {""}}, 40};
  measured.value = [](std::size_t time, std::size_t row, std::size_t) -> std::string_view {
    return numbers[(time * time + 2 * row + 1) % numbers.size()];
  };
  EXPECT_EQ(measured.found(), Fields{});
  Records phases{{{""}, {""}}, 40};
  phases.value = [](std::size_t time, std::size_t, std::size_t) { return time < 20 ? "train.py" : "eval.py"; };
  EXPECT_EQ(phases.found(), Fields{}) << "another program, later";
  Records turns{{{""}, {""}}, 40};  // at each time, the rows are of other pods
  static const std::vector<std::string> pods = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
  turns.value = [](std::size_t time, std::size_t row, std::size_t) -> std::string_view {
    return pods[2 * (time / 10) + row];
  };
  EXPECT_EQ(turns.found(), Fields{0}) << "pods that start and end";
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

TEST(Owners, WhatAnExporterRepeatsForEachJobIsOneFigure) {
  for (const bool is_repeated : {false, true})
    for (const char* metric : {"gpu_mem_used_mib", "DCGM_FI_DEV_FB_USED"}) {
      const auto r = read_text(lines_of([&](int i, int owner) {
        return fmt::format("{}{{gpu=\"0\",pod=\"{}\",instance=\"n1:9400\"}} {} {}000", metric, owner == 0 ? "a" : "b",
                           4000 + (is_repeated ? 0 : 3000 * owner) + i, 1'772'359'200 + i);
      }));
      ASSERT_EQ(r.error, "");
      EXPECT_EQ(r.series(), is_repeated ? 1U : 2U) << metric;
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

/// One table of readings of owners, each with fields that name it, in several syntaxes.
std::vector<std::string> in_syntaxes(const std::vector<std::vector<std::pair<std::string, std::string>>>& owners) {
  std::string csv = "time", tabs = "time", json, influx, metrics, range;
  for (const auto& [title, value] : owners.front()) csv += ',' + title, tabs += '\t' + title;
  csv += ",gpu_mem_used_mib\n";
  tabs += "\tgpu_mem_used_mib\n";
  range = R"({"status": "success", "data": {"resultType": "matrix", "result": [)";
  for (int i = 0; i < 24; ++i)
    for (std::size_t owner = 0; owner < owners.size(); ++owner) {
      const std::string mib = std::to_string(4000 + 3000 * owner + (owner == 1 ? 20U : 0U) * static_cast<unsigned>(i));
      const std::string time = fmt::format("2026-03-01 10:{:02}:00", i);
      csv += time, tabs += time, json += fmt::format("{{\"time\": \"{}\"", time), influx += "gpu";
      std::string labels;
      for (const auto& [title, value] : owners[owner]) {
        csv += ',' + value, tabs += '\t' + value;
        const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
        json += fmt::format(", \"{}\": {}", title, is_number ? value : '"' + value + '"');
        influx += fmt::format(",{}={}", title, value);
        labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", title, value);
      }
      csv += fmt::format(",{}\n", mib), tabs += fmt::format("\t{}\n", mib);
      json += fmt::format(", \"gpu_mem_used_mib\": {}}}\n", mib);
      influx += fmt::format(" gpu_mem_used_mib={} {}000000000\n", mib, 1'772'359'200 + 60 * i);
      metrics += fmt::format("gpu_mem_used_mib{{{}}} {} {}000\n", labels, mib, 1'772'359'200 + 60 * i);
    }
  for (std::size_t owner = 0; owner < owners.size(); ++owner) {
    range += owner == 0 ? "" : ", ";
    range += R"({"metric": {"__name__": "gpu_mem_used_mib")";
    for (const auto& [title, value] : owners[owner]) range += fmt::format(", \"{}\": \"{}\"", title, value);
    range += R"(}, "values": [)";
    for (int i = 0; i < 24; ++i)
      range += fmt::format("{}[{}, \"{}\"]", i == 0 ? "" : ", ", 1'772'359'200 + 60 * i,
                           4000 + 3000 * owner + (owner == 1 ? 20U : 0U) * static_cast<unsigned>(i));
    range += "]}";
  }
  return {csv, tabs, json, influx, metrics, range + "]}}"};
}

TEST(Owners, AreNotMergedInAnySyntax) {
  const std::string uuid = "GPU-8f1c0b3a-1111-2222-3333-444455556666";
  const std::vector<std::vector<std::vector<std::pair<std::string, std::string>>>> tables = {
      {{{"rack", "r1"}, {"blade", "b1"}, {"gpu", "0"}},
       {{"rack", "r1"}, {"blade", "b2"}, {"gpu", "0"}},
       {{"rack", "r2"}, {"blade", "b1"}, {"gpu", "0"}},
       {{"rack", "r2"}, {"blade", "b2"}, {"gpu", "0"}}},
      {{{"namespace", "a"}, {"pod", "p0"}, {"gpu", "0"}},
       {{"namespace", "a"}, {"pod", "p1"}, {"gpu", "0"}},
       {{"namespace", "b"}, {"pod", "p0"}, {"gpu", "0"}},
       {{"namespace", "b"}, {"pod", "p1"}, {"gpu", "0"}}},
      {{{"gpu", "0"}, {"partition", "0"}},
       {{"gpu", "0"}, {"partition", "1"}},
       {{"gpu", "1"}, {"partition", "0"}},
       {{"gpu", "1"}, {"partition", "1"}}},
      {{{"card", "0"}, {"xcp", "0"}},
       {{"card", "0"}, {"xcp", "1"}},
       {{"card", "1"}, {"xcp", "0"}},
       {{"card", "1"}, {"xcp", "1"}}},
      {{{"uuid", uuid}, {"pod", "a"}}, {{"uuid", uuid}, {"pod", "b"}}},
      {{{"host", "n1"}, {"uuid", uuid}, {"slice", "s1"}}, {{"host", "n1"}, {"uuid", uuid}, {"slice", "s2"}}},
      {{{"job_id", "17"}, {"task", "0"}, {"gpu", "0"}},
       {{"job_id", "17"}, {"task", "1"}, {"gpu", "0"}},
       {{"job_id", "18"}, {"task", "0"}, {"gpu", "0"}},
       {{"job_id", "18"}, {"task", "1"}, {"gpu", "0"}}}};
  for (const auto& owners : tables)
    for (const std::string& text : in_syntaxes(owners)) {
      const auto r = read_text(text);
      ASSERT_EQ(r.error, "") << text.substr(0, 160);
      EXPECT_EQ(r.series(), owners.size()) << text.substr(0, 160);
      EXPECT_EQ(r.samples.size(), 24 * owners.size()) << text.substr(0, 160);
    }
}

TEST(Owners, OfNestedObjectsAreThoseAroundThem) {
  const auto used = [](int i, int owner) { return 4000 + 3000 * owner + 20 * i; };
  const auto time = [](int i) { return fmt::format("\"time\": \"2026-03-01 10:{:02}:00\"", i); };
  std::string inner, inner_id, hosts, nodes, pods, partitions, labels;
  for (int i = 0; i < 24; ++i) {
    std::string of_hosts, of_nodes, of_partitions;
    for (int owner = 0; owner < 4; ++owner) {
      const auto gpu = [&](const char* id, int number) {
        return fmt::format("{{\"{}\": {}, \"gpu_mem_used_mib\": {}}}", id, number, used(i, owner));
      };
      inner += fmt::format("{{{}, \"host\": \"n{}\", \"gpu\": {}}}\n", time(i), owner / 2, gpu("index", owner % 2));
      inner_id += fmt::format("{{{}, \"pod\": \"p{}\", \"gpu\": {}}}\n", time(i), owner / 2, gpu("id", owner % 2));
      labels += fmt::format(
          "{{{}, \"labels\": {{\"host\": \"n{}\", \"gpu\": {}}}, \"metrics\": {{\"gpu_mem_used_mib\": {}}}}}\n",
          time(i), owner / 2, owner % 2, used(i, owner));
      pods += fmt::format("{{{}, \"pod\": {{\"namespace\": \"{}\", \"name\": \"p{}\"}}, \"gpu\": {}}}\n", time(i),
                          owner / 2 == 0 ? "a" : "b", owner % 2, gpu("index", 0));
      const std::string next = owner % 2 == 0 ? "" : ", ";
      of_hosts += owner % 2 == 0
                      ? fmt::format("{}{{\"hostname\": \"n{}\", \"gpus\": [", owner == 0 ? "" : ", ", owner / 2)
                      : "";
      of_hosts += next + gpu("index", owner % 2) + (owner % 2 == 1 ? "]}" : "");
      of_nodes += owner % 2 == 0 ? fmt::format("{}\"n{}\": {{\"gpus\": [", owner == 0 ? "" : ", ", owner / 2) : "";
      of_nodes += next + gpu("index", owner % 2) + (owner % 2 == 1 ? "]}" : "");
      of_partitions +=
          owner % 2 == 0 ? fmt::format("{}{{\"index\": {}, \"partitions\": [", owner == 0 ? "" : ", ", owner / 2) : "";
      of_partitions += next + gpu("id", owner % 2) + (owner % 2 == 1 ? "]}" : "");
    }
    hosts += fmt::format("{{{}, \"hosts\": [{}]}}\n", time(i), of_hosts);
    nodes += fmt::format("{{{}, \"nodes\": {{{}}}}}\n", time(i), of_nodes);
    partitions += fmt::format("{{{}, \"gpus\": [{}]}}\n", time(i), of_partitions);
  }
  for (const std::string& text : {inner, inner_id, hosts, nodes, pods, partitions, labels}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 200);
    EXPECT_EQ(r.series(), 4U) << text.substr(0, 200);
    EXPECT_EQ(r.samples.size(), 96U) << text.substr(0, 200);
  }
}

TEST(Owners, AListOfAnotherLengthIsLeftOut) {
  for (const char* element : {"{{\"mem_used_mib\": {}}}", "{}"}) {
    std::string text;
    for (int i = 0; i < 24; ++i) {
      text += fmt::format("{{\"time\": {}, \"gpu_mem_used_mib\": [", 1'772'359'200 + 60 * i);
      for (int gpu = i == 7 ? 1 : 0; gpu < 3; ++gpu)
        text += fmt::format("{}", gpu == (i == 7 ? 1 : 0) ? "" : ", ") +
                fmt::format(fmt::runtime(element), 4000 + 3000 * gpu + i);
      text += "]}\n";
    }
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 100);
    EXPECT_EQ(r.series(), 3U);
    EXPECT_EQ(r.samples.size(), 69U);
    EXPECT_EQ(r.notes.skipped_lines, 1U);
    EXPECT_EQ(r.device("0").back().second, 4023);
  }
}

TEST(Owners, ThatNothingTellsApartAreRefused) {
  // Two processes of a job: their pids are not recorded.
  for (const int period_s : {10, 60}) {
    const auto csv = "time,host,job,gpu_mem_used_mib\n" + lines_of([&](int i, int owner) {
                       return fmt::format("{},n1,17,{}", 1'772'359'200 + period_s * i, 4000 + 3000 * owner + i);
                     });
    EXPECT_THAT(read_text(csv).error, HasSubstr("cannot be told apart")) << period_s;
    const auto json = lines_of([&](int i, int owner) {
      return fmt::format("{{\"time\": {}, \"host\": \"n1\", \"gpu\": {{\"index\": 0, \"mem_used_mib\": {}}}}}",
                         1'772'359'200 + period_s * i, 4000 + 3000 * owner + i);
    });
    EXPECT_THAT(read_text(json).error, HasSubstr("cannot be told apart")) << period_s;
  }
  // One GPU, five times a second.
  const auto often = "time,gpu_index,gpu_mem_used_mib\n" + lines_of([](int i, int owner) {
                       return fmt::format("{},0,{}", 1'772'359'200 + (2 * i + owner) / 5, 4000 + 2 * i + owner);
                     });
  const auto r = read_text(often);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.samples.size(), 40U);
}

TEST(Owners, NumbersOfGpusAreSmall) {
  const auto r = read_text("time,gpu,gpu_mem_used_mib\n" + lines_of([](int i, int owner) {
                             return fmt::format("{},{},{}", 1'772'359'200 + 20 * i + 10 * owner,
                                                97 + (2 * i + owner) % 3, 4000 + 2 * i + owner);
                           }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U) << "a utilization";
}

TEST(Owners, OtherThingsWithIdsAreNone) {
  const auto time = [](int i) { return fmt::format("\"time\": {}", 1'772'359'200 + 15 * i); };
  std::string request, beside, lengths = "time,gpu_index,seq_len,gpu_mem_used_mib\n",
                               virtual_memory = "time,vm,gpu_mem_used_mib\n";
  std::string state, coarse = "time,uuid,gpu_mem_used_mib\n";
  for (int i = 0; i < 60; ++i) {
    request += fmt::format("{{{}, \"request\": {{\"device\": \"{}\", \"uuid\": \"r{}\"}}, \"gpu_mem_used_mib\": {}}}\n",
                           time(i), i % 3 == 0 ? "phone" : "web", i, 4000 + 20 * i);
    beside += fmt::format("{{{}, \"gpu_index\": {}, \"request\": {{\"index\": 7}}, \"gpu_mem_used_mib\": {}}}\n",
                          time(i / 2), i % 2, 4000 + 3000 * (i % 2) + i);
    lengths += fmt::format("{},0,{},{}\n", 1'772'359'200 + 15 * i, 512 << (i * i % 3), 4000 + 1000 * (i * i % 3));
    virtual_memory += fmt::format("{},{},{}\n", 1'772'359'200 + 15 * i, 90'000 + 100 * (i % 20), 4000 + 20 * i);
    for (const char* of : {"free", "used"})
      state += fmt::format("gpu_mem_mib{{gpu=\"0\",state=\"{}\"}} {} {}000\n", of, *of == 'f' ? 20'000 - i : 4000 + i,
                           1'772'359'200 + 15 * i);
    coarse +=
        fmt::format("2026-03-01 10:{:02}:00,GPU-8f1c0b3a-1111-2222-3333-444455556666,{}\n", i / 6 * 5, 4000 + 20 * i);
  }
  for (const std::string& text : {request, lengths, virtual_memory, coarse}) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << text.substr(0, 120);
    EXPECT_EQ(r.series(), 1U) << text.substr(0, 120);
    EXPECT_EQ(r.samples.size(), 60U) << text.substr(0, 120);
  }
  const auto two = read_text(beside);
  EXPECT_EQ(two.device("0").size(), 30U);
  EXPECT_EQ(two.device("1").size(), 30U);
  EXPECT_LE(read_text(state).series(), 1U);
}

}  // namespace
}  // namespace vramtrack
