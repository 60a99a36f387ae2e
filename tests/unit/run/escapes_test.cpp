// Processes in a run that use a driver without the probe, on a /proc made of files.
#include "run/escapes.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack::run {
namespace {

class Proc {
 public:
  /// `image`: changes with exec; `libraries`: those that it has mapped.
  void put(std::uint32_t pid, const std::string& image, const std::vector<std::string>& libraries,
           const std::string& children = "", std::uint64_t start_ticks = 100) {
    const std::string folder = "/" + std::to_string(pid);
    std::string zeros;
    for (int field = 4; field < 22; ++field) zeros += "0 ";
    write(folder + "/stat", std::to_string(pid) + " (python) S " + zeros + std::to_string(start_ticks) + " 0 0\n");
    write(folder + "/auxv", image);
    write(folder + "/cmdline", "python");
    std::string maps;
    for (const std::string& library : libraries) maps += "7f00-7f01 r-xp 00000000 08:01 1  /usr/lib/" + library + "\n";
    write(folder + "/maps", maps);
    write(folder + "/task/" + std::to_string(pid) + "/children", children);
  }
  void end(std::uint32_t pid) { std::filesystem::remove_all(folder_.path() + "/" + std::to_string(pid)); }
  [[nodiscard]] std::string root() const { return folder_.path(); }

 private:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + path).parent_path());
    std::ofstream(folder_.path() + path) << text;
  }
  TempFolder folder_;
};

std::vector<std::uint32_t> pids(const std::vector<EscapedProcess>& found) {
  std::vector<std::uint32_t> out;
  for (const EscapedProcess& each : found) out.push_back(each.pid);
  return out;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Escapes, ADriverWithoutTheProbeIsFoundInEachProcessBelow) {
  Proc proc;
  proc.put(10, "a", {"libc.so.6", "libvramtrack_probe_cuda.so", "libcuda.so.1"}, "11 12 ");
  proc.put(11, "b", {"libc.so.6"}, "13 ");
  proc.put(12, "c", {"libc.so.6", "libcudart.so.12"});
  proc.put(13, "d", {"libc.so.6", "libcuda.so.550.54"});
  proc.put(14, "e", {"libcuda.so.1"});  // not in this run
  Escapes escapes(proc.root());
  escapes.follow(10);
  const auto found = escapes.look();
  EXPECT_THAT(pids(found), ElementsAre(13));
  EXPECT_EQ(found.front().library, "libcuda.so.550.54");
  EXPECT_THAT(pids(escapes.look()), IsEmpty()) << "once each";
  EXPECT_THAT(pids(escapes.all()), ElementsAre(13));
}

TEST(Escapes, WhatAProcessBecomesAndLoadsLaterIsLookedAt) {
  Proc proc;
  proc.put(10, "a", {"libvramtrack_probe.so", "libamdhip64.so.6"});
  Escapes escapes(proc.root());
  escapes.follow(10);
  EXPECT_THAT(pids(escapes.look()), IsEmpty());
  proc.put(10, "b", {"libc.so.6"});  // exec without LD_PRELOAD
  EXPECT_THAT(pids(escapes.look()), IsEmpty());
  proc.put(10, "b", {"libc.so.6", "libamdhip64.so.6"});
  EXPECT_THAT(pids(escapes.look()), ElementsAre(10));
}

TEST(Escapes, AChildIsFollowedWhenItsParentEndedAndANumberIsNotItsLater) {
  Proc proc;
  proc.put(10, "a", {"libvramtrack_probe.so"}, "11 ");
  proc.put(11, "b", {"libc.so.6"});
  Escapes escapes(proc.root());
  escapes.follow(10);
  escapes.look();
  proc.end(10);
  proc.put(11, "b", {"libc.so.6", "libOpenCL.so.1"});
  EXPECT_THAT(pids(escapes.look()), ElementsAre(11));
  proc.put(11, "z", {"libcuda.so.1"}, "", 200);
  EXPECT_THAT(pids(escapes.look()), IsEmpty()) << "somebody else's process";
}

}  // namespace
}  // namespace vramtrack::run
