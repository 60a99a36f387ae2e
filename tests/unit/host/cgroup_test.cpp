#include "host/cgroup.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOuterId = "f0e1d2c3b4a59687f0e1d2c3b4a59687f0e1d2c3b4a59687f0e1d2c3b4a59687";
const std::string kPod = "0a1b2c3d-0011-2233-4455-66778899aabb";
const std::string kPodUnderscores = "0a1b2c3d_0011_2233_4455_66778899aabb";

const std::string kVictim = "deadbeef-0011-2233-4455-66778899aabb";
const std::string kVictimUnderscores = "deadbeef_0011_2233_4455_66778899aabb";

/// Every folder belongs to root.
std::optional<uid_t> roots(std::string_view /*controllers*/, const std::string& /*folder*/) {
  return 0;
}
/// The folder and its contents belong to the user 1000, all others to root.
FolderOwner given_to_user(const std::string& delegated) {
  return
      [delegated](std::string_view, const std::string& folder) { return folder.starts_with(delegated) ? 1000U : 0U; };
}

struct Case {
  std::string what;
  std::string text;
  std::string container;
  std::string pod;
  std::string slurm_job;
};

TEST(Cgroup, NamesContainerPodAndJobInEveryKnownLayout) {
  const std::vector<Case> cases = {
      {"docker, v2, systemd", "0::/system.slice/docker-" + kId + ".scope\n", kId, "", ""},
      {"docker, v1, cgroupfs", "4:memory:/docker/" + kId + "\n1:name=systemd:/docker/" + kId + "\n", kId, "", ""},
      {"docker in docker", "0::/docker/" + kOuterId + "/docker/" + kId + "\n", kOuterId, "", ""},
      {"containerd in a pod, systemd, v2",
       "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodUnderscores +
           ".slice/cri-containerd-" + kId + ".scope\n",
       kId, kPod, ""},
      {"containerd, guaranteed pod, systemd, v1",
       "5:memory:/kubepods.slice/kubepods-pod" + kPodUnderscores + ".slice/cri-containerd-" + kId + ".scope\n", kId,
       kPod, ""},
      {"containerd in a pod, cgroupfs, v1 and v2",
       "5:memory:/kubepods/besteffort/pod" + kPod + "/" + kId + "\n0::/kubepods/besteffort/pod" + kPod + "/" + kId +
           "\n",
       kId, kPod, ""},
      {"containerd, guaranteed pod, cgroupfs", "0::/kubepods/pod" + kPod + "/" + kId + "\n", kId, kPod, ""},
      {"containerd without its systemd driver",
       "0::/system.slice/containerd.service/kubepods-besteffort-pod" + kPodUnderscores +
           ".slice:cri-containerd:" + kId + "\n",
       kId, kPod, ""},
      {"cri-o", "0::/kubepods.slice/kubepods-pod" + kPodUnderscores + ".slice/crio-" + kId + ".scope/container\n", kId,
       kPod, ""},
      {"kubelet in docker (kind)",
       "0::/docker/" + kOuterId + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kPodUnderscores +
           ".slice/cri-containerd-" + kId + ".scope\n",
       kId, kPod, ""},
      {"static pod", "0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + kId + "\n", kId,
       "0123456789abcdef0123456789abcdef", ""},
      {"podman, root", "0::/machine.slice/libpod-" + kId + ".scope/container\n", kId, "", ""},
      {"podman, rootless", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope\n", "",
       "", ""},
      {"podman's pod is no Kubernetes pod",
       "0::/machine.slice/libpod_pod_" + kOuterId + ".slice/libpod-" + kId + ".scope\n", kId, "", ""},
      {"conmon is outside", "0::/machine.slice/libpod-conmon-" + kId + ".scope\n", "", "", ""},
      {"lxc, v1", "4:memory:/lxc/web01/user.slice\n", "web01", "", ""},
      {"lxc, v2", "0::/lxc.payload.web01/init.scope\n", "web01", "", ""},
      {"lxc's monitor is outside", "0::/lxc.monitor.web01\n", "", "", ""},
      {"slurm, v1", "4:memory:/slurm/uid_1000/job_1/step_0/task_0\n3:cpuset:/slurm/uid_1000/job_1/step_0\n", "", "",
       "1.0"},
      {"slurm, v1, the job alone first", "4:memory:/slurm/uid_1000/job_1\n3:cpuset:/slurm/uid_1000/job_1/step_0\n", "",
       "", "1.0"},
      {"slurm, v1, batch step of a named node", "4:devices:/slurm_gn1/uid_0/job_17/step_batch\n", "", "", "17.batch"},
      {"slurm, v2", "0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n", "", "", "1.0"},
      {"slurm, v2, several nodes on a host",
       "0::/system.slice/gn1_slurmstepd.scope/job_99/step_extern/user/task_special\n", "", "", "99.extern"},
      {"slurm, job alone", "4:memory:/slurm/uid_1000/job_5\n", "", "", "5"},
      {"podman inside a slurm job",
       "0::/system.slice/slurmstepd.scope/job_3/step_1/user/task_0/libpod-" + kId + ".scope\n", kId, "", "3.1"},
      {"seen from another cgroup namespace", "0::/../../system.slice/docker-" + kId + ".scope\n", kId, "", ""},
      {"a login", "0::/user.slice/user-1000.slice/session-3.scope\n", "", "", ""},
      {"a job_ folder that is not Slurm's", "0::/build/job_12\n", "", "", ""},
      {"a service", "0::/system.slice/podinfo.service\n", "", "", ""},
      {"root", "0::/\n", "", "", ""},
      {"nothing", "", "", "", ""},
      {"nonsense", "no colons here\n:\n::\n", "", "", ""},
  };
  for (const Case& c : cases) {
    const CgroupIdentity identity = parse_cgroup(c.text, roots);
    EXPECT_EQ(identity.container, c.container) << c.what;
    EXPECT_EQ(identity.pod, c.pod) << c.what;
    EXPECT_EQ(identity.slurm_job, c.slurm_job) << c.what;
  }
}

TEST(Cgroup, WhatIsMadeInsideAPodAJobOrASessionNamesNobodyElse) {
  const std::string pod = "/kubepods.slice/kubepods-pod" + kPodUnderscores + ".slice/cri-containerd-" + kId + ".scope";
  const std::string other =
      "/kubepods.slice/kubepods-pod" + kVictimUnderscores + ".slice/cri-containerd-" + kOuterId + ".scope";
  const std::string job = "/system.slice/slurmstepd.scope/job_1/step_0/user/task_0";
  const std::vector<Case> attacks = {
      {"a pod in a pod", "0::" + pod + other + "\n", kId, kPod, ""},
      {"a job in a pod", "0::" + pod + "/system.slice/slurmstepd.scope/job_9/step_0\n", kId, kPod, ""},
      {"a pod in a job", "0::" + job + other + "\n", kOuterId, "", "1.0"},
      {"a job in a job", "0::" + job + "/slurm/job_9/step_1\n", "", "", "1.0"},
      {"a step that does not follow its job", "0::/system.slice/slurmstepd.scope/job_1/x/step_9\n", "", "", "1"},
      {"a container in a container", "0::/docker/" + kId + "/docker/" + kOuterId + "\n", kId, "", ""},
      {"an LXC container in a container", "0::/docker/" + kId + "/lxc/web01\n", kId, "", ""},
      {"a pod in a user's own systemd", "0::/user.slice/user-1000.slice/user@1000.service" + other + "\n", "", "", ""},
      {"seen from another cgroup namespace",
       "0::/../../kubepods-pod" + kPodUnderscores + ".slice/cri-containerd-" + kId + ".scope" + other + "\n", kId, kPod,
       ""},
      {"two hierarchies", "4:memory:" + pod + "\n3:cpuset:" + other + "\n", kId, kPod, ""},
      {"two hierarchies of jobs", "4:memory:/slurm/job_1\n3:cpuset:/slurm/job_12345/step_0\n", "", "", "1"},
  };
  for (const Case& c : attacks) {
    const CgroupIdentity identity = parse_cgroup(c.text, roots);
    EXPECT_EQ(identity.container, c.container) << c.what;
    EXPECT_EQ(identity.pod, c.pod) << c.what;
    EXPECT_EQ(identity.slurm_job, c.slurm_job) << c.what;
  }
}

TEST(Cgroup, WhatIsInAFolderOfAUserIsNotBelieved) {
  const std::string mine = "/system.slice/hub-alice.service";
  const std::string pod = "/kubepods/pod" + kVictim + "/" + kId;
  EXPECT_EQ(parse_cgroup("0::" + mine + pod + "\n", roots).pod, kVictim) << "as containerd without its systemd driver";
  const CgroupIdentity identity = parse_cgroup("0::" + mine + pod + "\n", given_to_user(mine));
  EXPECT_EQ(identity.pod, "");
  EXPECT_EQ(identity.container, "");
  EXPECT_EQ(identity.unit, "hub-alice.service") << "systemd itself has named the folder that it gave away";
  EXPECT_EQ(parse_cgroup("0::" + mine + "/slurm/job_7/step_0\n", given_to_user(mine)).slurm_job, "");
  // A container with a cgroup given to its own users keeps its name.
  const std::string own = "/kubepods/pod" + kPod + "/" + kId;
  const CgroupIdentity delegated = parse_cgroup("0::" + own + "/kubepods/pod" + kVictim + "\n", given_to_user(own));
  EXPECT_EQ(delegated.pod, kPod);
  EXPECT_EQ(delegated.container, kId);
}

TEST(Cgroup, TheUnitIsTheOneThatSystemdOfThisMachineRuns) {
  const auto unit = [](const std::string& path) { return parse_cgroup("0::" + path + "\n", roots).unit; };
  EXPECT_EQ(unit("/system.slice/nginx.service"), "nginx.service");
  EXPECT_EQ(unit("/system.slice/nginx.service/worker.service"), "nginx.service");
  EXPECT_EQ(unit("/user.slice/user-1000.slice/session-3.scope"), "session-3.scope");
  EXPECT_EQ(unit("/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service"), "user@1000.service");
  EXPECT_EQ(unit("/docker/" + kId + "/system.slice/nginx.service"), "") << "of the systemd in the container";
  EXPECT_EQ(unit("/system.slice/docker-" + kId + ".scope/system.slice/nginx.service"), "docker-" + kId + ".scope");
}

TEST(Cgroup, TheFoldersOwnersAreThoseOfTheFileSystem) {
  const TempFolder machine;
  const std::string job = "/system.slice/slurmstepd.scope/job_1";
  std::filesystem::create_directories(machine.path() + "/proc/7");
  std::filesystem::create_directories(machine.path() + "/sys/fs/cgroup" + job + "/step_0");
  std::ofstream(machine.path() + "/sys/fs/cgroup/cgroup.controllers") << "memory\n";
  std::ofstream(machine.path() + "/proc/7/cgroup") << "0::" + job + "/step_0\n";
  const bool is_root = ::geteuid() == 0;  // otherwise the folders of this test belong to another user, too
  EXPECT_EQ(cgroup_of(machine.path() + "/proc", 7)->slurm_job, is_root ? "1.0" : "");
  std::ofstream(machine.path() + "/proc/7/cgroup") << "0::/gone" + job + "/step_0\n";
  EXPECT_EQ(cgroup_of(machine.path() + "/proc", 7)->slurm_job, "") << "nobody knows whose folder that was";
  if (is_root) {
    ASSERT_EQ(::chown((machine.path() + "/sys/fs/cgroup/system.slice/slurmstepd.scope").c_str(), 1000, 1000), 0);
    std::ofstream(machine.path() + "/proc/7/cgroup") << "0::" + job + "/step_0\n";
    EXPECT_EQ(cgroup_of(machine.path() + "/proc", 7)->slurm_job, "");
  }
  EXPECT_FALSE(cgroup_of(machine.path() + "/proc", 8));
  // In a container with only its own part of the hierarchy mounted, nothing can be queried, not even about itself.
  std::ofstream(machine.path() + "/proc/7/cgroup") << "0::/kubepods/pod" + kPod + "/" + kId + "\n";
  EXPECT_EQ(cgroup_of(machine.path() + "/proc", 7)->pod, "");
  std::filesystem::create_directories(machine.path() + "/proc/self");
  std::ofstream(machine.path() + "/proc/self/cgroup") << "0::/kubepods/pod" + kVictim + "/" + kOuterId + "\n";
  EXPECT_EQ(cgroup_of(machine.path() + "/proc", 7)->pod, is_root ? kPod : "");
}

TEST(Cgroup, KeepsThePathThatTellsMost) {
  EXPECT_EQ(
      parse_cgroup("4:memory:/slurm/uid_0/job_1/step_0\n1:name=systemd:/system.slice/slurmd.service\n0::/\n", roots)
          .path,
      "/slurm/uid_0/job_1/step_0");
  EXPECT_EQ(parse_cgroup("4:memory:/a\n0::/user.slice\n", roots).path, "/user.slice");
  EXPECT_EQ(parse_cgroup("0::/\n", roots).path, "/");
}

RC_GTEST_PROP(Cgroup, NeverFailsAndNeverInventsAnIdOfWrongLength, (const std::string& text)) {
  const CgroupIdentity identity = parse_cgroup("0::/kubepods/" + text + "\n", roots);
  RC_ASSERT(identity.pod.empty() || identity.pod.size() == 32U || identity.pod.size() == 36U);
}

}  // namespace
}  // namespace vramtrack
