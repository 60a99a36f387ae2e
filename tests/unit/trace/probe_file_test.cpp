#include "trace/probe_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>
#include <random>
#include <sstream>

#include "../temp_folder.hpp"
#include "probe_script.hpp"

namespace vramtrack::trace {
namespace {

/// The complete contents of a file, as text.
struct Told : ProbeFileVisit {
  std::string out;
  std::vector<probe::Slot> records;
  Status process(std::uint32_t index, const ProbeProcess& process) override {
    out += fmt::format("process {} {} {} {} {}\n", index, process.pid, process.start_ticks, process.begin_realtime_us,
                       process.command);
    return {};
  }
  Status slots(std::uint32_t process, std::span<const probe::Slot> slots) override {
    out += fmt::format("slots {} {}\n", process, slots.size());
    records.insert(records.end(), slots.begin(), slots.end());
    return {};
  }
  Status module(std::uint32_t process, const ProbeModule& module) override {
    out += fmt::format("module {} {} {}\n", process, module.path, module.build_id);
    return {};
  }
  Status holder(const ProbeHolder& holder) override {
    out += fmt::format("holder {} {} {} {} {}\n", holder.realtime_us, holder.device_uuid, holder.pid, holder.bytes,
                       holder.command);
    return {};
  }
  Status reading(std::uint32_t process, const ProbeReading& reading) override {
    out += fmt::format("reading {} {} {} {}\n", process, reading.device_uuid, reading.process_bytes.value_or(1),
                       reading.device_bytes.value_or(1));
    return {};
  }
  Status end(std::uint32_t process, const ProbeEnd& end) override {
    out += fmt::format("end {} {} {}\n", process == kNoProbeProcess ? -1 : static_cast<int>(process), end.exit_code,
                       end.signal);
    return {};
  }
};

std::vector<probe::Slot> some_slots(std::size_t count) {
  ProbeScript script;
  const std::uint32_t stack = script.line("/home/me/a.py", 3);
  while (script.slots.size() < count) script.alloc(script.now_us * 256, 100, stack);
  return script.slots;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A whole file of two processes.
std::string written(const std::string& path, std::span<const probe::Slot> slots) {
  auto writer = ProbeFileWriter::open(path, "./train --epochs 3", 1'700'000'000'000'000);
  EXPECT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->begin_process({101, 7, 1'700'000'000'000'001, "./train"}).value(), 0U);
  EXPECT_EQ(writer->begin_process({102, 8, 1'700'000'000'000'002, "worker"}).value(), 1U);
  EXPECT_TRUE(writer->write_module(0, {"/usr/lib/libfoo.so", "0123abcd"}));
  EXPECT_TRUE(writer->write_slots(0, slots));
  EXPECT_TRUE(writer->write_slots(1, slots.first(3)));
  EXPECT_TRUE(writer->write_reading(0, {1'700'000'000'500'000, "GPU-1", 5000, {}}));
  EXPECT_TRUE(writer->write_holder({1'700'000'000'600'000, "GPU-1", 77, 1234, "ollama serve"}));
  EXPECT_TRUE(writer->end_process(1, {0, 1, 9}));
  EXPECT_TRUE(writer->finish({1'700'000'001'000'000, 3, 0}));
  EXPECT_FALSE(writer->write_slots(0, slots)) << "after its end";
  return bytes_of(path);
}

Result<ProbeFileInfo> read(const std::string& bytes, Told& told) {
  return read_probe_file(*ByteInput::over({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "t"),
                         told);
}

TEST(ProbeFile, WhatIsWrittenIsRead) {
  const TempFolder folder;
  const auto slots = some_slots(40'000);
  const std::string bytes = written(folder.path() + "/t", slots);
  Told told;
  const auto info = read(bytes, told);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(told.out,
            "process 0 101 7 1700000000000001 ./train\n"
            "process 1 102 8 1700000000000002 worker\n"
            "module 0 /usr/lib/libfoo.so 0123abcd\n"
            "slots 0 32768\n"
            "slots 0 7232\n"  // before the reading that is compared with them
            "reading 0 GPU-1 5000 1\n"
            "holder 1700000000600000 GPU-1 77 1234 ollama serve\n"
            "slots 1 3\n"
            "end 1 1 9\n"
            "end -1 3 0\n");
  ASSERT_EQ(told.records.size(), 40'003U);
  EXPECT_EQ(std::memcmp(told.records.data(), slots.data(), slots.size() * sizeof(probe::Slot)), 0);
  EXPECT_EQ(info->command, "./train --epochs 3");
  EXPECT_EQ(info->begin_realtime_us, 1'700'000'000'000'000);
  EXPECT_EQ(info->bytes, bytes.size());
  EXPECT_EQ(info->loss, "");
  EXPECT_LT(bytes.size(), slots.size() * sizeof(probe::Slot) / 3) << "it is compressed";
  struct stat status {};
  ASSERT_EQ(stat((folder.path() + "/t").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(ProbeFile, CutOffAnywhereItIsReadToItsLastWholeChunk) {
  const TempFolder folder;
  const std::string bytes = written(folder.path() + "/t", some_slots(500));
  Told whole;
  ASSERT_TRUE(read(bytes, whole));
  for (std::size_t size = 32 + 18; size < bytes.size(); ++size) {
    Told told;
    const auto info = read(bytes.substr(0, size), told);
    ASSERT_TRUE(info) << size << ": " << info.error().message;
    EXPECT_TRUE(whole.out.starts_with(told.out)) << size;
    EXPECT_NE(info->loss.find(fmt::format("byte {}", info->bytes)), std::string::npos) << info->loss;
    EXPECT_LE(info->bytes, size);
  }
  for (std::size_t size = 0; size < 32 + 18; ++size) {
    Told told;
    EXPECT_FALSE(read(bytes.substr(0, size), told)) << size;
  }
}

TEST(ProbeFile, DamageCostsWhatFollowsAndNeverReadsWrong) {
  const TempFolder folder;
  const std::string bytes = written(folder.path() + "/t", some_slots(500));
  Told whole;
  ASSERT_TRUE(read(bytes, whole));
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << random() % 8);
    Told told;
    const auto info = read(damaged, told);
    if (!info) continue;  // the header
    EXPECT_TRUE(whole.out.starts_with(told.out));
    EXPECT_NE(info->loss, "");
  }
}

TEST(ProbeFile, ChunksOfLaterVersionsAreSkipped) {
  const TempFolder folder;
  std::string bytes = written(folder.path() + "/t", some_slots(100));
  // Repeats the first chunk, as an unknown kind: both checksums are right.
  std::string chunk = bytes.substr(50, 32);
  const std::uint32_t packed = *reinterpret_cast<const std::uint32_t*>(chunk.data() + 20);
  chunk = bytes.substr(50, 32 + packed);
  chunk[4] = 77;
  const auto crc = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), 28));
  std::memcpy(chunk.data() + 28, &crc, sizeof crc);
  bytes.insert(50, chunk);
  Told told;
  const auto info = read(bytes, told);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->skipped_chunks, 1U);
  EXPECT_EQ(info->loss, "");
}

TEST(ProbeFile, ARingAloneIsRead) {
  // 8 slots, the last 6 of them unread; the writer of one was killed while writing it, and 5 found no room.
  std::string bytes(probe::kRingHeaderBytes, '\0');
  const auto put = [&bytes](std::size_t at, std::uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  std::memcpy(bytes.data(), "VRTRING1", 8);
  put(8, 1 | std::uint64_t{55} << 32U);
  put(offsetof(probe::RingHeader, start_ticks), 12);
  put(offsetof(probe::RingHeader, capacity), 8);
  put(offsetof(probe::RingHeader, begin_realtime_us), 34);
  put(offsetof(probe::RingHeader, written), 19);
  put(offsetof(probe::RingHeader, read), 13);
  put(offsetof(probe::RingHeader, lost), 5);
  for (std::uint64_t i = 0; i < 8; ++i) {
    probe::Slot slot;
    const std::uint64_t at = i < 3 ? 16 + i : 8 + i;
    slot.head = at == 15 ? 0 : probe::head_of(probe::Record::alloc, probe::Call::cu_mem_alloc, 0, 0, 1);
    slot.address = at;
    bytes.append(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
  Told told;
  const auto info = read(bytes, told);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_TRUE(info->is_ring);
  EXPECT_EQ(told.out, "process 0 55 12 34 \nslots 0 6\n");
  ASSERT_EQ(told.records.size(), 6U);
  EXPECT_EQ(told.records[0].address, 13U);
  EXPECT_EQ(told.records[1].address, 14U);
  EXPECT_EQ(told.records[2].address, 16U);
  EXPECT_EQ(told.records[4].address, 18U);
  EXPECT_EQ(probe::record_of(told.records[5]), probe::Record::lost);
  EXPECT_EQ(told.records[5].a, 6U);
  for (const std::size_t field : {offsetof(probe::RingHeader, capacity), offsetof(probe::RingHeader, written)}) {
    std::string wrong = bytes;
    wrong[field + 7] = 1;
    Told nothing;
    EXPECT_FALSE(read(wrong, nothing));
  }
}

TEST(ProbeFile, ErrorsNameTheFile) {
  const TempFolder folder;
  const auto writer = ProbeFileWriter::open(folder.path() + "/missing/t", "", 0);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("missing/t: No such file"), std::string::npos) << writer.error().message;
  Told told;
  const auto wrong = read("PK\3\4", told);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("t is neither a trace"), std::string::npos);
  auto full = ProbeFileWriter::open("/dev/full", "", 0);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos) << full.error().message;
}

}  // namespace
}  // namespace vramtrack::trace
