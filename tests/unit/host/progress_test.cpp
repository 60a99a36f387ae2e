// The kernel's reports about a process that may be stalled, from a /proc made by the test and from real processes.
#include "host/progress.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "core/nature.hpp"
#include "host/sockets.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Nature, IsToldByTheCommand) {
  struct Case {
    std::string_view command, name, kind;
    ProcessNature nature;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"python -m ipykernel_launcher -f /run/jupyter/kernel-4f.json", "python", "C", ProcessNature::notebook},
           {"/usr/bin/R --slave -e IRkernel::main() --args /tmp/kernel-9.json", "R", "C", ProcessNature::notebook},
           {"/usr/lib/ollama/ollama runner --port 40001", "ollama", "C", ProcessNature::model_server},
           {"VLLM::EngineCore", "VLLM::EngineCor", "C", ProcessNature::model_server},
           {"tritonserver --model-repository=/models", "tritonserver", "C", ProcessNature::model_server},
           {"/usr/lib/xorg/Xorg :0", "Xorg", "G", ProcessNature::display},
           {"/opt/blender/blender scene.blend", "blender", "C+G", ProcessNature::display},
           {"nvidia-cuda-mps-server", "nvidia-cuda-mps", "C", ProcessNature::driver_service},
           {"python train.py --name x", "python", "C", ProcessNature::worker},
           {"", "", "", ProcessNature::worker}})
    EXPECT_EQ(nature_of(c.command, c.name, c.kind).nature, c.nature) << c.command;
  EXPECT_EQ(nature_of("python -m vllm.entrypoints.openai.api_server", "python", "C").what, "vLLM server");
}

TEST(Nature, HelpersAndInterpreters) {
  EXPECT_TRUE(is_multiprocessing_helper("python -c from multiprocessing.spawn import spawn_main", "python"));
  EXPECT_TRUE(is_multiprocessing_helper("python train.py", "pt_data_worker"));
  EXPECT_TRUE(is_multiprocessing_helper("VLLM::EngineCore_DP0", "VLLM::EngineCor"));
  EXPECT_TRUE(is_multiprocessing_helper("ray::train_fn", "ray::train_fn"));
  EXPECT_FALSE(is_multiprocessing_helper("python train.py", "python"));
  for (const char* bare :
       {"python", "/usr/bin/python3.11", "python -i", "python -u -B", "ipython", "python -i train.py"})
    EXPECT_TRUE(is_bare_interpreter(bare)) << bare;
  for (const char* program : {"", "python train.py", "python -m train", "python -c pass", "python -", "bash"})
    EXPECT_FALSE(is_bare_interpreter(program)) << program;
}

TEST(Sockets, TheTablesAreReadAndOddLinesPassedOver) {
  std::vector<TcpSocket> out;
  parse_tcp(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 111 1 f 100 0 0 10 "
      "0\n"
      "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000010 00:00000000 00000000  1000        0 112 1 f 20 4 30 10 "
      "-1\n"
      "   2: 0100007F:C350 0100007F:1F90 06 00000000:00000000 03:00000000 00000000  1000        0 0 3 f\n"
      "   3: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 113 1\n"
      "garbage\n\n   4: 1 2 3\n   5: 0100007F:FFFFF 0:0 0A 0:0 0:0 0 0 0 9\n",
      out);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[0].local_port, 8080);
  EXPECT_TRUE(out[0].listens);
  EXPECT_EQ(out[0].waiting, 3U);
  EXPECT_EQ(out[1].inode, 112U);
  EXPECT_FALSE(out[1].listens);
  EXPECT_EQ(out[1].waiting, 16U);
  EXPECT_EQ(out[2].local_port, 80);
  const auto local = listening_unix(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/server.sock\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 22\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 23 @cuda-uvmfd-4026531836-4242@\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 24 /tmp/pymp-x/listener-y\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 25\nx\n");
  ASSERT_EQ(local.size(), 2U);
  EXPECT_EQ(local[0].inode, 21U);
  EXPECT_EQ(local[0].name, "/run/server.sock");
  EXPECT_EQ(local[1].inode, 25U);
  EXPECT_EQ(local[1].name, "");
}

TEST(Sockets, OnlyNamesThatNobodyCanGuessAreSecret) {
  for (const char* const name :
       {"/tmp/0b9b1d5e-6a3c-4f0e-9d55-1f2a3b4c5d6e", "@0b9b1d5e-6a3c-4f0e-9d55-1f2a3b4c5d6e", "/tmp/tmpk3_x9a0q"})
    EXPECT_TRUE(is_secret(name)) << name;
  for (const char* const name :
       {"", "/run/server.sock", "/tmp/tmp", "/tmp/tmpserver", "/tmp/tmpserver.so", "/tmp/model",
        "/run/0b9b1d5e-6a3c-4f0e-9d55-1f2a3b4c5d6e/api.sock", "/tmp/0b9b1d5e-6a3c-4f0e-9d55-1f2a3b4c5d6e.sock"})
    EXPECT_FALSE(is_secret(name)) << name;
}

/// A /proc made by the test, and a reader of it.
class ProgressOfProcesses : public ::testing::Test {
 protected:
  struct Stat {
    std::uint32_t parent = 1;
    std::uint32_t group = 0;  ///< 0: its own
    std::uint32_t session = 1;
    char state = 'S';
    std::uint64_t cpu_ticks = 0;
    std::uint64_t start_ticks = 5;
    std::uint64_t terminal = 0;
  };
  void put(std::uint32_t pid, const Stat& s) {
    const std::uint32_t group = s.group == 0 ? pid : s.group;
    file(
        pid, "stat",
        fmt::format("{} (a) b) {} {} {} {} {} {} 0 0 0 0 0 {} 0 0 0 20 0 1 0 {} 0 0\n", pid, s.state, s.parent, group,
                    s.session, s.terminal, s.terminal != 0 ? static_cast<int>(group) : -1, s.cpu_ticks, s.start_ticks));
  }
  void io(std::uint32_t pid, std::uint64_t read, std::uint64_t written) {
    file(pid, "io", fmt::format("rchar: {}\nwchar: {}\nsyscr: 1\nread_bytes: 7\n", read, written));
  }
  void file(std::uint32_t pid, const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(folder_.path()) / std::to_string(pid) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void socket(std::uint32_t pid, int fd, int inode) {
    const auto path = std::filesystem::path(folder_.path()) / std::to_string(pid) / "fd" / std::to_string(fd);
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(fmt::format("socket:[{}]", inode), path);
  }
  void remove(std::uint32_t pid) {
    std::filesystem::remove_all(std::filesystem::path(folder_.path()) / std::to_string(pid));
  }
  static ProcessInfo info(std::uint32_t pid, const std::string& command = "python train.py") {
    ProcessInfo out;
    out.pid = pid;
    out.start_ticks = 5;
    out.command = command;
    return out;
  }
  /// Returns the reading, 30 s after the previous one.
  std::optional<ProcessProgress> read(const ProcessInfo& process) {
    now_ += from_seconds(30);
    std::vector<ProgressReading> out;
    reader_.read({&process, 1}, now_, out);
    if (out.empty()) return std::nullopt;
    EXPECT_EQ(out[0].time, now_);
    EXPECT_EQ(out[0].pid, process.pid);
    return out[0].progress;
  }

  TempFolder folder_;
  ProgressReader reader_{folder_.path(), folder_.path() + "/sys"};
  Timestamp now_{};
};

TEST_F(ProgressOfProcesses, OneReading) {
  put(10, {.parent = 3, .group = 0, .session = 1, .state = 'R', .cpu_ticks = 250});
  io(10, 100, 20);
  file(10, "status", "Name:\tx\nTracerPid:\t77\nvoluntary_ctxt_switches:\t12\n");
  const auto p = read(info(10));
  ASSERT_TRUE(p);
  EXPECT_EQ(p->state, 'R');
  EXPECT_DOUBLE_EQ(p->cpu_s, 250.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(p->io_bytes, 120U);
  EXPECT_EQ(p->tracer_pid, 77U);
  EXPECT_EQ(p->switches, 12U);
  EXPECT_FALSE(p->listening) << "asked only of what rests";
}

TEST_F(ProgressOfProcesses, WhatIsMappedIsReadToo) {
  put(10, {});
  io(10, 5000, 20);
  const auto resident = [&](int kilobytes) {
    file(10, "status", fmt::format("Name:\tx\nRssFile:\t{} kB\n", kilobytes));
  };
  resident(300);
  EXPECT_EQ(read(info(10))->read_bytes, 5000U) << "what was mapped before is not known to have been read";
  resident(1300);
  EXPECT_EQ(read(info(10))->read_bytes, 5000U + 1000 * 1024);
  resident(200);
  EXPECT_EQ(read(info(10))->read_bytes, 5000U + 1000 * 1024) << "given back, but it was read";
  resident(700);
  io(10, 6000, 20);
  EXPECT_EQ(read(info(10))->read_bytes, 6000U + 1500 * 1024);
}

TEST_F(ProgressOfProcesses, AnotherProcessOfThatPidAndNoneGiveNothing) {
  put(10, {.start_ticks = 6});
  EXPECT_FALSE(read(info(10)));
  EXPECT_FALSE(read(info(11)));
}

TEST_F(ProgressOfProcesses, WhatMayNotBeReadIsNotKnown) {
  put(10, {});
  EXPECT_FALSE(read(info(10))->io_bytes);
  EXPECT_FALSE(read(info(10))->listening) << "no folder fd";
}

TEST_F(ProgressOfProcesses, ChildrenCountWithTheirs) {
  put(10, {.cpu_ticks = 1});
  put(11, {.parent = 10, .cpu_ticks = 100});
  put(12, {.parent = 11, .cpu_ticks = 200});
  put(13, {.parent = 9, .cpu_ticks = 400});
  put(14, {.parent = 10, .state = 'Z', .cpu_ticks = 800});
  io(11, 1, 2);
  io(12, 3, 4);
  const auto p = read(info(10));
  EXPECT_EQ(p->children, 2U);
  EXPECT_DOUBLE_EQ(p->children_cpu_s, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(p->children_io_bytes, 10U);
}

TEST_F(ProgressOfProcesses, WhoHasWorkForACoreIsKnown) {
  const auto thread = [&](std::uint32_t pid, int tid, char state) {
    put(pid, {.parent = pid == 11 ? 10U : 1U, .group = 10});
    file(pid, fmt::format("task/{}/stat", tid),
         fmt::format("{} (a) {} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n", tid, state));
  };
  thread(10, 10, 'S');
  thread(10, 17, 'R');
  EXPECT_EQ(read(info(10))->state, 'S') << "threads are looked at only of what rests";
  EXPECT_EQ(read(info(10))->state, 'R') << "a thread is enough";
  thread(10, 17, 'S');
  thread(11, 11, 'S');
  EXPECT_EQ(read(info(10))->state, 'S');
  thread(11, 12, 'R');
  EXPECT_EQ(read(info(10))->state, 'R') << "one of a child, too";
  put(10, {.state = 'T'});
  EXPECT_EQ(read(info(10))->state, 'T') << "what is stopped is stopped";
}

TEST_F(ProgressOfProcesses, AProgramWhoseMainThreadHasEndedLives) {
  put(10, {});
  file(10, "stat", "10 (a) Z 1 10 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 5 0 0\n");
  std::string scratch;
  EXPECT_TRUE(process_alive(folder_.path(), 10, scratch));
  EXPECT_EQ(read(info(10))->state, 'S');
  file(10, "stat", "10 (a) Z 1 10 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n");
  EXPECT_FALSE(process_alive(folder_.path(), 10, scratch)) << "whether it is reaped or not";
  EXPECT_EQ(read(info(10))->state, 'Z');
}

TEST_F(ProgressOfProcesses, AnOrphanIsOneWhoseLeaderIsGoneOrWhoseParentChanged) {
  put(10, {.parent = 9, .group = 9, .session = 4});
  put(9, {.parent = 4, .session = 4});
  EXPECT_FALSE(read(info(10))->orphaned);
  remove(9);
  put(10, {.parent = 1, .group = 9, .session = 4});
  put(1, {.parent = 0});
  EXPECT_TRUE(read(info(10))->orphaned);
  ProgressReader late(folder_.path(), folder_.path());
  std::vector<ProgressReading> out;
  const ProcessInfo asked = info(10);
  late.read({&asked, 1}, now_, out);
  EXPECT_TRUE(out.at(0).progress.orphaned) << "whoever came later sees it, too";
  put(20, {.parent = 1});
  EXPECT_FALSE(read(info(20))->orphaned) << "a daemon leads its own group";
}

TEST_F(ProgressOfProcesses, AWorkerWhoseParentHasNoneOfItsPipesHasLostItsProgram) {
  const auto pipe = [&](std::uint32_t pid, int fd, int flags) {
    file(pid, fmt::format("fdinfo/{}", fd), fmt::format("pos:\t0\nflags:\t0{}\n", flags));
    std::filesystem::create_directories(folder_.path() + fmt::format("/{}/fd", pid));
    std::filesystem::create_symlink("pipe:[900]", folder_.path() + fmt::format("/{}/fd/{}", pid, fd));
  };
  put(9, {.parent = 1, .session = 9});  // a script that adopts, in the same group
  put(10, {.parent = 9, .group = 9, .session = 9});
  std::filesystem::create_directories(folder_.path() + "/9/fd");
  pipe(10, 5, 2000001);
  const ProcessInfo worker = info(10, "python -c from multiprocessing.spawn import spawn_main");
  EXPECT_TRUE(read(worker)->orphaned);
  pipe(9, 4, 2000000);
  EXPECT_FALSE(read(worker)->orphaned) << "it has the other end";
}

TEST_F(ProgressOfProcesses, AServerIsKnownByItsSocketsAndByThoseOfTheServerAbove) {
  put(9, {.parent = 1});
  put(10, {.parent = 9, .group = 9});
  file(10, "net/tcp",
       "header\n 0: 0100007F:1F40 00000000:0000 0A 0:0 00:0 0 0 0 501 1\n"
       " 1: 0100007F:1F40 0100007F:D431 01 0:5 00:0 0 0 0 502 1\n"
       " 1: 0100007F:1F40 0100007F:D431 01 0:5 00:0 0 0 0 502 1\n"  // as the kernel does while others come and go
       " 2: 0100007F:C351 00000000:0000 0A 0:0 00:0 0 0 0 503 1\n");
  std::filesystem::copy(folder_.path() + "/10/net", folder_.path() + "/9/net");
  socket(10, 3, 503);
  socket(9, 3, 501);
  socket(9, 4, 502);
  read(info(10));
  const auto p = read(info(10));
  ASSERT_TRUE(p->listening);
  EXPECT_THAT(p->listening->ports, ElementsAre(8000, 50001));
  EXPECT_EQ(p->listening->clients, 1U);
  EXPECT_EQ(p->listening->waiting, 1U);

  // A rank's own port, at which its ranks meet, is not a service; nor is the launcher's.
  file(10, "environ", std::string("WORLD_SIZE=4\0MASTER_PORT=8000\0X=\0", 34));
  EXPECT_THAT(read(info(10))->listening->ports, IsEmpty());
}

TEST_F(ProgressOfProcesses, AProgramAtAPromptIsKnown) {
  put(10, {.terminal = 34816});
  file(10, "syscall", "0 0x0 0x7f00 0x400 0x0 0x0 0x0 0x7ffc 0x7f1\n");
  std::filesystem::create_directories(folder_.path() + "/10/fd");
  read(info(10));
  EXPECT_EQ(read(info(10))->nature, ProcessNature::prompt);
  file(10, "syscall", "0 0x3 0x7f00 0x400 0x0 0x0 0x0 0x7ffc 0x7f1\n");
  const auto other = read(info(10));
  EXPECT_EQ(other->nature, ProcessNature::worker);
  EXPECT_TRUE(other->foreground);
  EXPECT_EQ(read(info(10, "python3 -i"))->nature, ProcessNature::prompt);
}

TEST_F(ProgressOfProcesses, AFrozenCgroupIsKnown) {
  put(10, {});
  std::filesystem::create_directories(folder_.path() + "/sys/fs/cgroup/job");
  std::ofstream(folder_.path() + "/sys/fs/cgroup/job/cgroup.events") << "populated 1\nfrozen 1\n";
  ProcessInfo frozen = info(10);
  frozen.cgroup = "/job";
  read(frozen);
  EXPECT_TRUE(read(frozen)->frozen);
}

// Whatever these files contain, only facts result from them.
TEST_F(ProgressOfProcesses, OddFilesAreNoTrouble) {
  put(10, {});
  constexpr char kOdd[] =
      "\x1b[31m\0\xff\n:::\n0: \n rchar: 99999999999999999999999\nwchar: -1\n";  // it contains a zero byte
  for (const char* name : {"io", "status", "environ", "wchan", "syscall", "net/tcp", "net/tcp6", "net/unix"})
    file(10, name, std::string(kOdd, sizeof kOdd - 1));
  socket(10, 3, 1);
  std::filesystem::create_symlink("socket:[", folder_.path() + "/10/fd/4");
  std::filesystem::create_symlink("socket:[x]", folder_.path() + "/10/fd/5");
  read(info(10));
  const auto p = read(info(10));
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->io_bytes);
  EXPECT_THAT(p->listening->ports, IsEmpty());
}

TEST(ProgressOfRealProcesses, ThisTestMakesSome) {
  ProgressReader reader("/proc", "/sys");
  const auto self = read_process("/proc", static_cast<std::uint32_t>(::getpid()));
  ASSERT_TRUE(self);
  std::vector<ProgressReading> out;
  reader.read({&*self, 1}, Timestamp{}, out);
  volatile unsigned work = 0;
  std::string scratch;
  const double before_s = process_alive("/proc", self->pid, scratch)->cpu_s;
  while (process_alive("/proc", self->pid, scratch)->cpu_s < before_s + 0.05)
    for (int i = 0; i < 100000; ++i) work = work + 1;
  reader.read({&*self, 1}, Timestamp{std::chrono::seconds{1}}, out);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_GE(out[1].progress.cpu_s, out[0].progress.cpu_s + 0.04);
  ASSERT_TRUE(out[0].progress.io_bytes && out[1].progress.io_bytes);
  EXPECT_GT(*out[1].progress.io_bytes, *out[0].progress.io_bytes);
  EXPECT_EQ(out[1].progress.parent_pid, static_cast<std::uint32_t>(::getppid()));
}

}  // namespace
}  // namespace vramtrack
