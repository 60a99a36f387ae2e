// The processes that hold a GPU, for a /proc made by the test.
#include "host/holders.hpp"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "../temp_folder.hpp"
#include "host/parentage.hpp"
#include "host/process_tree.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A machine that has been up for 1000 s.
class Machine {
 public:
  Machine() {
    std::ofstream(proc_.file("uptime")) << "1000.00 900.00\n";
    add(1, 0, 1, 1, 'S', "systemd");
  }
  void add(int pid, int parent, int group, int session, char state, const std::string& name,
           const std::string& command = {}, int start_ticks = 40000) {
    const std::string folder = proc_.file(std::to_string(pid));
    std::filesystem::create_directories(folder + "/fd");
    std::ofstream(folder + "/stat") << pid << " (" << name << ") " << state << ' ' << parent << ' ' << group << ' '
                                    << session << " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " << start_ticks << " 0 0\n";
    std::string words = command.empty() ? name : command;
    std::replace(words.begin(), words.end(), ' ', '\0');
    std::ofstream(folder + "/cmdline") << words << '\0';
    std::ofstream(folder + "/status") << "Name:\t" << name << "\nUid:\t4000000\t4000000\t4000000\t4000000\n"
                                      << "NSpid:\t" << pid << "\n";
  }
  void open(int pid, const std::string& file, int fd = 3) const {
    std::filesystem::create_symlink(file, proc_.file(std::to_string(pid) + "/fd/" + std::to_string(fd)));
  }
  void write(int pid, const std::string& name, const std::string& text) const {
    std::ofstream(proc_.file(std::to_string(pid) + "/" + name)) << text;
  }
  inline static const std::string kPython = "400000-500000 r-xp 0000 08:01 7  /opt/conda/bin/python3.11\n";
  enum End { reads, writes };
  /// One end of a pipe that was created this long ago. All processes here were started 600 s ago.
  void pipe(int pid, int fd, int inode, End end, int age_s = 600) const {
    const std::string target = "pipe:[" + std::to_string(inode) + "]";
    open(pid, target, fd);
    std::filesystem::create_directories(proc_.file(std::to_string(pid) + "/fdinfo"));
    write(pid, "fdinfo/" + std::to_string(fd),
          end == writes ? "pos:\t0\nflags:\t02000001\n" : "pos:\t0\nflags:\t02000000\n");
    write(pid, "fd/" + target, "");  // the target of the link
    std::filesystem::last_write_time(proc_.file(std::to_string(pid) + "/fd/" + target),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::seconds(age_s));
  }
  /// The pipes that multiprocessing gives a worker and its program: each keeps one end of each of the two.
  void worker_pipes(int pid, int age_s = 600) const {
    pipe(pid, 5, 900, writes, age_s);
    pipe(pid, 6, 901, reads, age_s);
    open(pid, "/dev/null", 0);
    write(pid, "fdinfo/0", "pos:\t0\nflags:\t02100000\n");
    write(pid, "maps", kPython);
  }
  void program_pipes(int pid) const {
    pipe(pid, 4, 900, reads);
    pipe(pid, 7, 901, writes);
  }
  void remove(int pid, const std::string& name) const {
    std::filesystem::remove_all(proc_.file(std::to_string(pid) + "/" + name));
  }
  [[nodiscard]] std::string path(int pid) const { return proc_.file(std::to_string(pid)); }
  [[nodiscard]] HoldersFound find(const std::set<std::uint32_t>& listed = {}) const {
    return find_holders(proc_.path(), listed);
  }

 private:
  TempFolder proc_;
};

TEST(Holders, OpenAndMappedDeviceFilesNameThem) {
  Machine machine;
  machine.add(10, 1, 10, 10, 'S', "python", "python train.py");
  machine.open(10, "/dev/nvidia0");
  machine.open(10, "/dev/nvidia-uvm", 4);
  machine.open(10, "/tmp/file", 5);
  machine.add(11, 1, 11, 11, 'S', "python");
  machine.write(11, "maps", "7f0000-7f1000 rw-s 0000 00:05 12 /dev/dri/renderD128\n");
  machine.add(12, 1, 12, 12, 'S', "bash");
  machine.open(12, "/dev/null");
  const HoldersFound found = machine.find();
  ASSERT_EQ(found.holders.size(), 2U);
  EXPECT_EQ(found.holders[0].info.command, "python train.py");
  EXPECT_EQ(found.holders[0].info.user, "4000000");
  EXPECT_THAT(found.holders[0].files, ElementsAre("/dev/nvidia-uvm", "/dev/nvidia0"));
  EXPECT_THAT(found.holders[1].files, ElementsAre("/dev/dri/renderD128"));
  EXPECT_EQ(found.holders[0].state, HolderState::alive);
  ASSERT_TRUE(found.holders[0].age_s);
  EXPECT_NEAR(*found.holders[0].age_s, 600, 1);
  EXPECT_EQ(found.not_inspected, 0U);
}

TEST(Holders, EachStateHasItsReason) {
  Machine machine;
  machine.add(20, 1, 20, 20, 'Z', "python");
  machine.add(21, 1, 21, 21, 'D', "python");
  machine.add(22, 1, 22, 22, 'S', "Xorg", "/usr/lib/xorg/Xorg :0");
  machine.add(23, 1, 23, 23, 'S', "nvidia-cuda-mps", "nvidia-cuda-mps-server");
  machine.add(24, 1, 999, 30, 'S', "pt_data_worker", "python train.py");  // the leader of its group no longer exists
  machine.add(25, 1, 25, 25, 'S', "python", "python serve.py");
  machine.write(25, "status", "Uid:\t0\t0\t0\t0\nNSpid:\t25\t7\n");
  const HoldersFound found = machine.find({20, 21, 22, 23, 24, 25, 77});
  ASSERT_EQ(found.holders.size(), 7U);
  std::vector<HolderState> states;
  for (const Holder& holder : found.holders) states.push_back(holder.state);
  EXPECT_THAT(states,
              ElementsAre(HolderState::zombie, HolderState::uninterruptible, HolderState::service, HolderState::service,
                          HolderState::orphaned, HolderState::alive, HolderState::not_visible));
  EXPECT_THAT(found.holders[0].why, HasSubstr("pid 1 (systemd) has not reaped it"));
  EXPECT_EQ(found.holders[2].why, "display server");
  EXPECT_EQ(found.holders[3].why, "MPS server");
  EXPECT_THAT(found.holders[4].why, HasSubstr("the process that started it has ended"));
  EXPECT_FALSE(found.holders[4].is_worker) << "it has only the name of one";
  EXPECT_THAT(found.holders[5].why, HasSubstr("pid 7 in its own pid namespace"));
}

TEST(Holders, AWorkerWhoseParentLivesAndADaemonAreNoOrphans) {
  Machine machine;
  machine.add(30, 1, 30, 30, 'S', "python", "python train.py");
  machine.add(31, 30, 30, 30, 'S', "pt_data_worker", "python train.py");
  machine.add(32, 1, 32, 32, 'S', "python", "python daemon.py");
  for (const Holder& holder : machine.find({30, 31, 32}).holders) EXPECT_EQ(holder.state, HolderState::alive);
}

const std::string kSpawned =
    "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)";

TEST(Holders, AWorkerWhoseTrainerEndedIsAnOrphanAlthoughAScriptLeadsItsGroup) {
  // Whatever its name, and whatever adopts it.
  for (const auto& [name, command] :
       std::initializer_list<std::pair<const char*, std::string>>{{"pt_data_worker", "python train.py"},
                                                                  {"python", "python train.py"},
                                                                  {"python", kSpawned},
                                                                  {"VLLM::EngineCor", "VLLM::EngineCore"}}) {
    // A Slurm batch script that continues with the next attempt.
    Machine batch;
    batch.add(50, 1, 50, 50, 'S', "stepd");
    batch.add(51, 50, 51, 51, 'S', "slurm_script");
    batch.add(52, 51, 51, 51, 'S', "python", "python train.py --resume");
    batch.add(53, 50, 51, 51, 'S', name, command);
    batch.worker_pipes(53);
    const Holder in_batch = batch.find({53}).holders.at(0);
    EXPECT_EQ(in_batch.state, HolderState::orphaned) << command;
    EXPECT_TRUE(in_batch.is_worker && in_batch.kept.empty()) << command << in_batch.kept;
    // A retry loop as pid 1 of a container, with the worker's own subprocess and its program's tracker.
    Machine container;
    container.add(1, 0, 1, 1, 'S', "entrypoint");
    container.add(54, 1, 1, 1, 'S', name, command);
    container.write(1, "maps", "400000-500000 r-xp 0000 08:01 7  /bin/dash\n");
    container.worker_pipes(54);
    container.pipe(54, 8, 902, Machine::reads, 599);
    container.pipe(54, 9, 899, Machine::writes, 605);
    container.add(55, 54, 1, 1, 'S', "ffmpeg");
    container.pipe(55, 3, 902, Machine::writes, 599);
    container.add(56, 1, 1, 1, 'S', "python", "python -c from multiprocessing.resource_tracker import main;main(5)");
    container.pipe(56, 3, 899, Machine::reads, 605);
    const Holder in_container = container.find({54}).holders.at(0);
    EXPECT_TRUE(in_container.is_worker && in_container.kept.empty()) << command << in_container.kept;
  }
}

/// A worker, pid 70, of a program that has ended, in the session of a script that continues.
struct Orphaned : Machine {
  Orphaned() {
    add(69, 1, 69, 69, 'S', "sh", "sh retry.sh");
    add(70, 1, 69, 69, 'S', "python", "python train.py");
  }
  Holder worker() const { return find({70}).holders.at(0); }
};

TEST(Holders, AWorkerForWhichSomebodyMayWaitIsKept) {
  const auto kept = [](const std::function<void(Orphaned&)>& change) {
    Orphaned machine;
    machine.worker_pipes(70);
    change(machine);
    const Holder worker = machine.worker();
    EXPECT_TRUE(worker.is_worker);
    EXPECT_EQ(worker.state, HolderState::orphaned);
    return worker.kept;
  };
  EXPECT_EQ(kept([](Orphaned&) {}), "");
  const auto add_other = [](Orphaned& machine) { machine.add(71, 1, 71, 71, 'S', "server", "python server.py"); };
  EXPECT_EQ(kept([&](Orphaned& machine) {
              add_other(machine);
              machine.program_pipes(71);
            }),
            "pid 71 (server) holds the other end of one of its pipes");
  EXPECT_EQ(kept([&](Orphaned& machine) {
              add_other(machine);
              machine.write(70, "maps",
                            Machine::kPython + "7f00-7f10 rw-s 0000 00:1a 42  /dev/shm/sem.mp-x (deleted)\n");
              machine.write(71, "maps", "7e00-7e10 rw-s 0000 00:1a 42  /dev/shm/sem.mp-x (deleted)\n");
            }),
            "pid 71 (server) shares memory with it");
  EXPECT_EQ(kept([&](Orphaned& machine) {
              add_other(machine);
              machine.open(70, "socket:[501]", 8);
              machine.open(71, "socket:[502]", 8);
              std::filesystem::create_directories(machine.path(70) + "/net");
              machine.write(70, "net/tcp",
                            "header\n 0: 0100007F:A000 0100007F:1F90 01 0:0 00:0 0 0 0 501 1\n"
                            " 1: 0100007F:1F90 0100007F:A000 01 0:0 00:0 0 0 0 502 1\n");
            }),
            "pid 71 (server) is connected to it");
  EXPECT_THAT(kept([&](Orphaned& machine) {
                machine.open(70, "socket:[501]", 8);
                std::filesystem::create_directories(machine.path(70) + "/net");
                machine.write(70, "net/tcp", "header\n 0: 0A00000A:A000 0B00000A:1F90 01 0:0 00:0 0 0 0 501 1\n");
              }),
              HasSubstr("not visible here"));
  // On a port that the system assigned, from a client that it has not accepted yet.
  const auto kept_by_waiting = [&](const std::string& client) {
    return kept([&](Orphaned& machine) {
      add_other(machine);
      machine.open(70, "socket:[501]", 8);
      machine.open(71, "socket:[502]", 8);
      std::filesystem::create_directories(machine.path(70) + "/net");
      machine.write(70, "net/tcp",
                    "header\n 0: 00000000:A000 00000000:0000 0A 0:0 00:0 0 0 0 501 1\n"
                    " 1: 0100007F:A000 0100007F:1F90 01 0:0 00:0 0 0 0 0 1\n" +
                        client);
    });
  };
  EXPECT_EQ(kept_by_waiting(" 2: 0100007F:1F90 0100007F:A000 01 0:0 00:0 0 0 0 502 1\n"),
            "pid 71 (server) is connected to it");
  EXPECT_THAT(kept_by_waiting(""), HasSubstr("not visible here"));
  EXPECT_EQ(kept([](Orphaned& machine) {
              machine.open(70, "socket:[501]", 8);
              std::filesystem::create_directories(machine.path(70) + "/net");
              machine.write(70, "net/tcp", "header\n 0: 00000000:1F40 00000000:0000 0A 0:0 00:0 0 0 0 501 1\n");
            }),
            "it listens on port 8000");
  const auto kept_by_port = [&](const std::string& port) {
    return kept([&](Orphaned& machine) {
      machine.open(70, "socket:[501]", 8);
      std::filesystem::create_directories(machine.path(70) + "/net");
      machine.write(70, "net/tcp", "header\n 0: 00000000:" + port + " 00000000:0000 0A 0:0 00:0 0 0 0 501 1\n");
    });
  };
  EXPECT_EQ(kept_by_port("9C40"), "it listens on port 40000") << "the system assigns no even ones";
  EXPECT_EQ(kept_by_port("C383"), "it listens on port 50051") << "gRPC's usual one";
  EXPECT_EQ(kept_by_port("A001"), "it listens on port 40961, and no other worker is connected to it");
  EXPECT_EQ(kept([](Orphaned& machine) {
              machine.add(70, 1, 69, 69, 'T', "python", "python -c from multiprocessing.spawn import spawn_main");
            }).substr(0, 13),
            "it is stopped");
  EXPECT_EQ(kept([](Orphaned& machine) { machine.write(70, "wchan", "do_freezer_trap"); }).substr(0, 13),
            "it is stopped");
  const auto kept_at = [&](const std::string& name, const std::function<void(Orphaned&)>& change) {
    return kept([&](Orphaned& machine) {
      machine.open(70, "socket:[501]", 8);
      std::filesystem::create_directories(machine.path(70) + "/net");
      machine.write(70, "net/tcp", "header\n");
      machine.write(70, "net/unix", "header\n0: 00000002 00000000 00010000 0001 01 501 " + name + "\n");
      change(machine);
    });
  };
  EXPECT_EQ(kept_at("/run/model.sock", [](Orphaned&) {}), "it listens at /run/model.sock");
  const std::string secret = "/tmp/0b9b1d5e-6a3c-4f0e-9d55-1f2a3b4c5d6e";
  EXPECT_EQ(kept_at(secret, [](Orphaned&) {}), "it listens at an address that no other worker uses");
  EXPECT_THAT(kept([](Orphaned& machine) { machine.remove(69, "fd"); }),
              HasSubstr("this user may not read the open files of"));
}

/// The worker is a Ray worker with a raylet that has ended. It listens on `ports`.
TEST(Holders, AWorkerThatWorksOnKeepsThoseItIsConnectedTo) {
  Orphaned machine;
  machine.add(71, 1, 69, 69, 'S', "python", "python train.py");
  machine.add(72, 1, 69, 69, 'S', "python", "python train.py");
  for (const int pid : {70, 71, 72}) machine.worker_pipes(pid);
  machine.open(70, "socket:[501]", 8);
  machine.open(71, "socket:[502]", 8);
  for (const int pid : {70, 71}) {
    std::filesystem::create_directories(machine.path(pid) + "/net");
    machine.write(pid, "net/tcp",
                  "header\n 0: 0100007F:A001 0100007F:1F91 01 0:0 00:0 0 0 0 501 1\n"
                  " 1: 0100007F:1F91 0100007F:A001 01 0:0 00:0 0 0 0 502 1\n");
  }
  const std::string root = machine.path(70).substr(0, machine.path(70).rfind('/'));
  const LostWorkers all_wait(root, list_processes(root));
  for (const std::uint32_t pid : {70U, 71U, 72U}) EXPECT_EQ(all_wait.of(pid).kept, "") << pid;
  const LostWorkers one_works(root, list_processes(root), {{71, "it read or wrote"}});
  EXPECT_EQ(one_works.of(71).kept, "it read or wrote");
  EXPECT_EQ(one_works.of(70).kept, "pid 71 (python) is connected to it");
  EXPECT_EQ(one_works.of(72).kept, "");
}

std::string kept_of_ray(std::initializer_list<int> ports) {
  Orphaned machine;
  machine.add(69, 1, 69, 69, 'S', "sh", "sh retry.sh");
  machine.add(72, 1, 69, 69, 'S', "ray::train_fn", "ray::train_fn");
  machine.add(73, 1, 69, 69, 'S', "sleep", "", 30000);  // in the raylet's session
  std::string tcp = "header\n 0: 0100007F:A000 0100007F:1F90 08 0:0 00:0 0 0 0 501 1\n";
  machine.open(72, "socket:[501]", 8);
  int inode = 502;
  for (const int port : ports) {
    machine.open(72, "socket:[" + std::to_string(inode) + "]", inode);
    char line[128];
    std::snprintf(line, sizeof line, " 1: 00000000:%04X 00000000:0000 0A 0:0 00:0 0 0 0 %d 1\n", port, inode++);
    tcp += line;
  }
  std::filesystem::create_directories(machine.path(72) + "/net");
  machine.write(72, "net/tcp", tcp);
  const Holder worker = machine.find({72}).holders.at(0);
  EXPECT_TRUE(worker.is_worker);
  return worker.kept;
}

TEST(Holders, MemoryThatAnotherUserMayShareKeepsAWorker) {
  const auto kept = [](std::filesystem::perms of_file, const std::string& path, bool is_read) {
    Orphaned machine;
    machine.worker_pipes(70);
    machine.write(70, "maps", Machine::kPython + "7f00-7f10 rw-s 0000 00:1a 42  " + path + '\n');
    std::filesystem::create_directories(machine.path(70) + "/root/dev/shm");
    machine.write(70, "root/dev/shm/ring", "");
    std::filesystem::permissions(machine.path(70) + "/root/dev/shm/ring", of_file);
    machine.add(71, 1, 71, 71, 'S', "client", "client");
    if (!is_read) machine.remove(71, "fd");
    const bool is_of_another_user = ::chown(machine.path(71).c_str(), 4000000, 4000000) == 0;
    EXPECT_TRUE(is_of_another_user || ::geteuid() != 0);
    return machine.worker().kept;
  };
  using std::filesystem::perms;
  EXPECT_THAT(kept(perms{0644}, "/dev/shm/ring", false), HasSubstr("may be shared with another user"));
  EXPECT_EQ(kept(perms{0644}, "/dev/shm/ring", true), "") << "it does not";
  EXPECT_EQ(kept(perms{0644}, "/dev/shm/ring (deleted)", false), "") << "nobody finds it";
  const bool is_own = ::geteuid() != 0;  // without root, the other process belongs to the same user
  EXPECT_EQ(kept(perms{0600}, "/dev/shm/ring", false).empty(), !is_own) << "only its owner may";
}

TEST(Holders, OnlyItsOwnPortOfRayDoesNotKeepAWorkerOfRay) {
  EXPECT_EQ(kept_of_ray({}), "");
  EXPECT_EQ(kept_of_ray({10002}), "");
  EXPECT_EQ(kept_of_ray({19999}), "");
  EXPECT_EQ(kept_of_ray({40001}), "") << "after ray.init()";
  EXPECT_EQ(kept_of_ray({8000}), "it listens on port 8000");
  EXPECT_EQ(kept_of_ray({10002, 8000}), "it listens on port 8000");
  EXPECT_EQ(kept_of_ray({10002, 12000}), "it listens on port 10002") << "which of them is Ray's does not show";
  EXPECT_EQ(kept_of_ray({12000, 40000}), "it listens on port 12000");
}

/// Two ranks, pids 80 and 81, with a launcher that has ended and reset their connections to its store, on port 8080.
struct Ranks : Machine {
  Ranks() {
    for (const int pid : {80, 81}) {
      add(pid, 1, pid, pid, 'S', "python", "python train.py", 40000 + pid);
      environment(pid, pid - 80);
      open(pid, "socket:[" + std::to_string(420 + pid) + "]", 8);  // for a connection that is in no table
      std::filesystem::create_directories(path(pid) + "/net");
      tcp(pid, "");
      write(pid, "maps", kShared);
    }
  }
  void environment(int pid, int rank, const std::string& address = "127.0.0.1") const {
    std::string text = "TORCHELASTIC_RUN_ID=none|TORCHELASTIC_USE_AGENT_STORE=True|MASTER_ADDR=" + address +
                       "|MASTER_PORT=8080|RANK=" + std::to_string(rank) + "|";
    std::replace(text.begin(), text.end(), '|', '\0');
    write(pid, "environ", text);
  }
  void tcp(int pid, const std::string& lines) const { write(pid, "net/tcp", "header\n" + lines); }
  [[nodiscard]] bool are_lost() const {
    for (const Holder& holder : find({80, 81}).holders)
      if (holder.state != HolderState::orphaned || !holder.is_worker || !holder.kept.empty()) return false;
    return true;
  }
  inline static const std::string kShared = "7f00-7f10 rw-s 0000 00:1a 42  /dev/shm/nccl-x\n";
};

TEST(Holders, RanksWhoseConnectionToTheStoreWasResetAreLost) {
  const auto are_lost = [](const std::function<void(Ranks&)>& change) {
    Ranks machine;
    change(machine);
    return machine.are_lost();
  };
  EXPECT_TRUE(are_lost([](Ranks&) {}));
  const auto serve = [](Ranks& machine, int start_ticks) {
    machine.add(79, 1, 79, 79, 'S', "python", "python torchrun", start_ticks);
    machine.open(79, "socket:[700]", 8);
    for (const int pid : {80, 81}) machine.tcp(pid, " 0: 00000000:1F90 00000000:0000 0A 0:0 00:0 0 0 0 700 1\n");
  };
  EXPECT_FALSE(are_lost([&](Ranks& machine) { serve(machine, 30000); })) << "the store is there";
  EXPECT_TRUE(are_lost([&](Ranks& machine) { serve(machine, 50000); })) << "it is the next attempt's";
  EXPECT_FALSE(are_lost([](Ranks& machine) {
    machine.environment(80, 0, "10.0.0.7");
    machine.environment(81, 1, "10.0.0.7");
  })) << "the store may be on another host";
  EXPECT_TRUE(are_lost([](Ranks& machine) {
    std::filesystem::create_directories(machine.path(80) + "/../sys/kernel");
    machine.write(80, "../sys/kernel/hostname", "node7\n");
    machine.environment(80, 0, "node7.example.org");
    machine.environment(81, 1, "node7.example.org");
  }));
  EXPECT_FALSE(are_lost([](Ranks& machine) { machine.write(81, "maps", ""); })) << "nothing ties them";
  EXPECT_FALSE(are_lost([](Ranks& machine) { machine.environment(81, 0); })) << "what the rank itself started";
  EXPECT_FALSE(are_lost([](Ranks& machine) {
    machine.add(82, 1, 82, 82, 'S', "python", "python train.py", 39000);  // the rank that started 81
    machine.environment(82, 1);
  }));
  EXPECT_FALSE(are_lost([](Ranks& machine) {
    machine.add(1, 0, 1, 1, 'S', "python");
    machine.write(1, "maps", "400000-500000 r-xp 0000 08:01 7  /opt/libtorch_cpu.so\n");
  })) << "pid 1 may have launched them";
}

TEST(Holders, AWorkerWhoseAdoptionDoesNotShowIsKept) {
  const auto kept = [](int parent, int group_and_session) {
    Machine machine;
    machine.add(69, 1, 69, 69, 'S', "python", "python main.py");
    machine.write(69, "maps", Machine::kPython);
    machine.add(70, parent, group_and_session, group_and_session, 'S', "python", kSpawned);
    machine.worker_pipes(70);
    return machine.find({70}).holders.at(0).kept;
  };
  EXPECT_EQ(kept(1, 69), "");
  EXPECT_EQ(kept(68, 69), "its parent, pid 68, is not visible here");
  // It closed its ends, or became another program through exec.
  EXPECT_EQ(kept(69, 69), "pid 69 (python), its parent, may have started it");
  // It forked twice, after setsid(): pid 68 was the session's leader.
  EXPECT_THAT(kept(1, 68), HasSubstr("left the session of its program"));
}

TEST(Holders, AParentMayHaveLeftTheSessionOfAWorkerThatItStartedIfThatIsOlder) {
  const auto kept = [](int session_start_ticks) {
    Machine machine;
    machine.add(60, 1, 60, 60, 'S', "bash", "bash batch.sh", session_start_ticks);
    machine.add(69, 1, 69, 69, 'S', "python", "python main.py", 39500);
    machine.add(70, 69, 60, 60, 'S', "python", kSpawned);
    machine.worker_pipes(70);
    return machine.find({70}).holders.at(0).kept;
  };
  EXPECT_EQ(kept(39000), "pid 69 (python), its parent, may have started it");
  EXPECT_EQ(kept(39600), "") << "it has been of another session all the time, so it adopted the worker";
}

TEST(Holders, ASessionThatIsOlderThanTheWorkerWasItsPrograms) {
  const auto kept = [](const std::function<void(Machine&)>& change) {
    Machine machine;
    machine.add(70, 1, 60, 60, 'S', "python", kSpawned);
    machine.worker_pipes(70);
    change(machine);
    return machine.find({70}).holders.at(0).kept;
  };
  EXPECT_NE(kept([](Machine&) {}), "");
  EXPECT_NE(kept([](Machine& m) { m.add(65, 1, 65, 65, 'S', "cron", "", 39950); }), "") << "half a second";
  EXPECT_EQ(kept([](Machine& m) { m.add(65, 1, 65, 65, 'S', "cron", "", 39000); }), "");
  EXPECT_EQ(kept([](Machine& m) { m.add(80, 1, 60, 60, 'S', "cat", "", 39000); }), "") << "of its session";
  EXPECT_NE(kept([](Machine& m) { m.add(60, 1, 60, 60, 'Z', "python", "", 39999); }), "") << "not reaped";
  EXPECT_NE(kept([](Machine& m) {
              m.add(65, 1, 65, 65, 'S', "cron", "", 39000);
              m.add(90, 1, 90, 90, 'S', "sshd", "", 39500);  // pids have started again from the beginning
            }),
            "");
}

TEST(Holders, WhoseConnectionsCannotAllBeReadIsKept) {
  Orphaned machine;
  machine.worker_pipes(70);
  machine.open(70, "socket:[501]", 8);
  EXPECT_THAT(machine.worker().kept, HasSubstr("not visible here"));
}

TEST(Holders, OnlyWhatIsBornAsAWorkerIsOne) {
  Orphaned left;  // forked by a worker, long after the worker's start
  left.worker_pipes(70, 700);
  EXPECT_EQ(left.worker().state, HolderState::alive);
  Orphaned program;  // forked by a program that had just started workers
  program.program_pipes(70);
  EXPECT_EQ(program.worker().state, HolderState::alive);
  Orphaned other;  // started with two pipes by something other than multiprocessing
  other.worker_pipes(70);
  other.write(70, "maps", "");
  EXPECT_EQ(other.worker().state, HolderState::alive);
  Orphaned given;  // a program with a shell's pipes, with which it was started
  given.worker_pipes(70);
  given.write(70, "fdinfo/6", "pos:\t0\nflags:\t0\n");
  EXPECT_EQ(given.worker().state, HolderState::alive);
  Orphaned forked;  // not by multiprocessing, which gives each one a separate input
  forked.worker_pipes(70);
  forked.write(70, "fdinfo/0", "pos:\t0\nflags:\t02\n");
  EXPECT_EQ(forked.worker().state, HolderState::alive);
  Orphaned logs;  // only its output is a pipe, to a log, and its input is not
  logs.pipe(70, 1, 900, Machine::writes);
  logs.pipe(70, 6, 901, Machine::reads);
  logs.write(70, "maps", Machine::kPython);
  EXPECT_EQ(logs.worker().state, HolderState::alive);
}

TEST(Holders, WhoseProgramReadsALogOfItIsAnOrphan) {
  Orphaned machine;
  machine.worker_pipes(70);
  machine.pipe(70, 1, 950, Machine::writes);
  machine.add(71, 69, 69, 69, 'S', "cat");
  machine.pipe(71, 0, 950, Machine::reads);
  EXPECT_TRUE(machine.worker().is_worker && machine.worker().kept.empty()) << machine.worker().kept;
}

TEST(Holders, WhoIsYoungerThanAWorkersPipesHasThemByInheritanceUnlessItWaits) {
  const auto kept = [](long call) {
    Orphaned machine;
    machine.worker_pipes(70, 600);
    machine.add(71, 1, 71, 71, 'S', "python", "python uploader.py", 40001);
    machine.program_pipes(71);
    std::filesystem::create_directories(machine.path(71) + "/task/71");
    machine.write(71, "task/71/syscall", std::to_string(call) + " 0x1 0x1 0x0 0x0 0x0 0x0 0x7ffc 0x7fea\n");
    return machine.worker().kept;
  };
  EXPECT_EQ(kept(SYS_clock_nanosleep), "");
  EXPECT_EQ(kept(SYS_ppoll), "pid 71 (python) holds the other end of one of its pipes") << "for its end";
}

TEST(Holders, AWorkerThatAScriptsTrainerWaitsForIsNoOrphan) {
  Machine machine;
  machine.add(60, 1, 60, 60, 'S', "bash", "bash retry.sh");
  machine.add(61, 60, 60, 60, 'S', "train: epoch 3", "train: epoch 3");  // it has set its title since then
  machine.add(62, 61, 60, 60, 'S', "pt_data_worker", "python train.py");
  machine.add(63, 61, 60, 60, 'S', "python", kSpawned);
  machine.add(64, 61, 64, 64, 'S', "python", kSpawned);          // in its own session
  machine.add(65, 60, 60, 60, 'S', "python", "python eval.py");  // the script's own program
  machine.add(66, 1, 60, 60, 'S', "python", "python left.py");   // left running by the script, which lives on
  machine.worker_pipes(62);
  machine.program_pipes(61);
  for (const Holder& holder : machine.find({62, 63, 64, 65, 66}).holders)
    EXPECT_EQ(holder.state, HolderState::alive) << holder.info.pid;
}

TEST(Holders, AWorkerOfATrainerThatIsPid1IsNoOrphan) {
  // As left by `unshare --pid --fork`: the group's leader is outside, and is shown as 0.
  Machine outside;
  outside.add(1, 0, 0, 0, 'S', "python", "python train.py");
  outside.add(40, 1, 0, 0, 'S', "pt_data_worker", "python train.py");
  EXPECT_EQ(outside.find({40}).holders.at(0).state, HolderState::alive);
  // The group of a shell that has ended, which the trainer did not leave.
  Machine shell;
  shell.add(1, 0, 17, 17, 'S', "python", "python train.py");
  shell.add(41, 1, 17, 17, 'S', "pt_data_worker", "python train.py");
  EXPECT_EQ(shell.find({41}).holders.at(0).state, HolderState::alive);
}

}  // namespace
}  // namespace vramtrack
