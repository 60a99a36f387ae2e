// Real cgroups, if this machine permits creating them; everywhere else, folders of the test's own.
#include "act/cgroup_control.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "act/proof.hpp"
#include "victim.hpp"

namespace vramtrack::act {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

/// One act on the victim.
struct Act {
  explicit Act(Subject of) : subject(std::move(of)) {}
  [[nodiscard]] ActRequest request() const { return {subject, arguments, tools, "a", "id", {}}; }
  Subject subject;
  StepArguments arguments;
  Tools tools;
};

/// A cgroup of a v1 controller with the victim in it, removed with this object; empty if it cannot be made.
class RealCgroup {
 public:
  RealCgroup(const std::string& controller, const Victim& victim) {
    const std::string folder = fmt::format("/sys/fs/cgroup/{}/vramtrack-test-{}", controller, ::getpid());
    std::error_code error;
    if (!fs::create_directory(folder, error)) return;
    path_ = folder;
    std::ofstream(folder + "/cgroup.procs") << victim.pid();
  }
  ~RealCgroup() {
    if (path_.empty()) return;
    // A process that ends leaves its cgroup a moment later.
    for (int i = 0; i < 10000 && ::rmdir(path_.c_str()) != 0; ++i) {
      std::ifstream procs(path_ + "/cgroup.procs");
      std::ofstream out("/sys/fs/cgroup/" + fs::path(path_).parent_path().filename().string() + "/cgroup.procs");
      for (std::string pid; std::getline(procs, pid);) out << pid << std::endl;
      ::usleep(200);
    }
  }
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CgroupControl, ARealFreezerStopsTheProcessAndThawsIt) {
  const Victim victim(true);
  const RealCgroup cgroup("freezer", victim);
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup can be made in /sys/fs/cgroup/freezer";
  const Act act(victim.subject());
  const ActionInfo* freeze = find_action("freeze");
  const auto plan = freeze->plan(act.request());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->what, HasSubstr("write 'FROZEN' into " + cgroup.path()));
  ASSERT_TRUE(freeze->perform(act.request(), *plan));
  EXPECT_TRUE(victim.becomes("D"));
  ASSERT_TRUE(freeze->undo(act.request(), plan->undo));
  EXPECT_TRUE(victim.becomes("S"));
  // Undoing it twice is the same as undoing it once.
  EXPECT_TRUE(freeze->undo(act.request(), plan->undo));
}

TEST(CgroupControl, ARealQuotaIsSetAndPutBack) {
  const Victim victim(true);
  const RealCgroup cgroup("cpu", victim);
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup can be made in /sys/fs/cgroup/cpu";
  Act act(victim.subject());
  act.arguments.set("cpu-percent", 10.0);
  const ActionInfo* throttle = find_action("throttle");
  const auto plan = throttle->plan(act.request());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(throttle->perform(act.request(), *plan));
  EXPECT_EQ(read_control(cgroup.path() + "/cpu.cfs_quota_us").value_or(""), "10000");
  ASSERT_TRUE(throttle->undo(act.request(), plan->undo));
  EXPECT_EQ(read_control(cgroup.path() + "/cpu.cfs_quota_us").value_or(""), "-1");
}

TEST(CgroupControl, UnifiedCgroupsAreWrittenAsTheKernelWantsThem) {
  const TempFolder folder;
  const Victim victim(true);
  Act act(victim.subject());
  act.tools.cgroup_root = folder.path() + "/cgroup";
  const std::string own = act.tools.cgroup_root + "/batch/job";
  write(act.tools.cgroup_root + "/cgroup.controllers", "cpu\n");
  write(own + "/cgroup.procs", std::to_string(victim.pid()) + "\n");
  write(own + "/cpu.max", "max 100000\n");
  // The kernel's own /proc, except for the victim's cgroup.
  const std::string proc = folder.path() + "/proc";
  fs::create_directories(proc + "/" + std::to_string(victim.pid()));
  for (const char* file : {"stat", "status", "cmdline", "comm"})
    std::ofstream(fmt::format("{}/{}/{}", proc, victim.pid(), file))
        << std::ifstream(fmt::format("/proc/{}/{}", victim.pid(), file)).rdbuf();
  write(fmt::format("{}/{}/cgroup", proc, victim.pid()), "0::/batch/job\n");
  act.tools.proc_root = proc;
  act.arguments.set("cpu-percent", 25.0);
  const ActionInfo* throttle = find_action("throttle");
  const auto plan = throttle->plan(act.request());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(throttle->perform(act.request(), *plan));
  EXPECT_THAT(read_control(own + "/cpu.max").value_or(""), HasSubstr("25000 100000"));

  // With a neighbour in it, it must not be throttled.
  write(own + "/cgroup.procs", fmt::format("{}\n{}\n", victim.pid(), victim.pid() + 1));
  const auto shared = throttle->plan(act.request());
  ASSERT_FALSE(shared);
  EXPECT_THAT(shared.error().message, HasSubstr("1 other process is in it"));
  // In its own container, the cgroup is the container's.
  act.subject.container = "0123456789abcdef";
  write(fmt::format("{}/{}/cgroup", proc, victim.pid()), "0::/docker/0123456789abcdef\n");
  write(act.tools.cgroup_root + "/docker/0123456789abcdef/cgroup.procs",
        fmt::format("{}\n{}\n", victim.pid(), victim.pid() + 1));
  write(act.tools.cgroup_root + "/docker/0123456789abcdef/cpu.max", "max 100000\n");
  EXPECT_TRUE(throttle->plan(act.request()));
  // Never if vramtrack itself is in it.
  write(act.tools.cgroup_root + "/docker/0123456789abcdef/cgroup.procs", fmt::format("{}\n", ::getpid()));
  EXPECT_FALSE(throttle->plan(act.request()));
}

TEST(CgroupControl, WithoutACgroupOfItsOwnAProcessIsStopped) {
  const Victim victim(true);
  const Act act(victim.subject());
  const ActionInfo* freeze = find_action("freeze");
  const auto plan = freeze->plan(act.request());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->undo, "stop\n");
  ASSERT_TRUE(freeze->perform(act.request(), *plan));
  EXPECT_TRUE(victim.becomes("T"));
  ASSERT_TRUE(freeze->undo(act.request(), plan->undo));
  EXPECT_TRUE(victim.becomes("S"));
}

}  // namespace
}  // namespace vramtrack::act
