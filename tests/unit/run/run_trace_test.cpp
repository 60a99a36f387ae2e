// The data that the launcher has written by the time it is killed.
#include "run/run_trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "../temp_folder.hpp"

namespace vramtrack::run {
namespace {

using probe::Call;
using probe::Record;
using probe::Slot;

TEST(RunTrace, WhatOthersReferToIsWrittenAtOnce) {
  const TempFolder folder;
  const std::string path = folder.path() + "/trace";
  RunTrace trace(path, {"program"}, [](const std::string& text) { FAIL() << text; });
  ProbedProcess process;
  process.pid = static_cast<std::uint32_t>(::getpid());
  ProcessFacts facts;
  const Slot event{probe::head_of(Record::alloc, Call::cu_mem_alloc, 0, 0, 1), 0, 0x1000, 64};
  trace.take(process, {&event, 1}, facts);
  const auto before = std::filesystem::file_size(path);
  trace.take(process, {&event, 1}, facts);
  EXPECT_EQ(std::filesystem::file_size(path), before) << "events wait for a chunk that is worth it";
  const Slot frame{probe::head_of(Record::frame, Call::none, 0, 0, 1), std::uint64_t{1} << 32U, 0x400000, 0};
  trace.take(process, {&frame, 1}, facts);
  EXPECT_GT(std::filesystem::file_size(path), before);
}

}  // namespace
}  // namespace vramtrack::run
