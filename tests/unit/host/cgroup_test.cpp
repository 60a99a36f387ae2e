#include "host/cgroup.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace vramtrack {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOuterId = "f0e1d2c3b4a59687f0e1d2c3b4a59687f0e1d2c3b4a59687f0e1d2c3b4a59687";
const std::string kPod = "0a1b2c3d-0011-2233-4455-66778899aabb";
const std::string kPodUnderscores = "0a1b2c3d_0011_2233_4455_66778899aabb";

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
      {"docker in docker", "0::/docker/" + kOuterId + "/docker/" + kId + "\n", kId, "", ""},
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
      {"podman, rootless", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope\n",
       kId, "", ""},
      {"podman's pod is no Kubernetes pod",
       "0::/machine.slice/libpod_pod_" + kOuterId + ".slice/libpod-" + kId + ".scope\n", kId, "", ""},
      {"conmon is outside", "0::/machine.slice/libpod-conmon-" + kId + ".scope\n", "", "", ""},
      {"lxc, v1", "4:memory:/lxc/web01/user.slice\n", "web01", "", ""},
      {"lxc, v2", "0::/lxc.payload.web01/init.scope\n", "web01", "", ""},
      {"lxc's monitor is outside", "0::/lxc.monitor.web01\n", "", "", ""},
      {"slurm, v1", "4:memory:/slurm/uid_1000/job_1/step_0/task_0\n3:cpuset:/slurm/uid_1000/job_1/step_0\n", "", "",
       "1.0"},
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
    const CgroupIdentity identity = parse_cgroup(c.text);
    EXPECT_EQ(identity.container, c.container) << c.what;
    EXPECT_EQ(identity.pod, c.pod) << c.what;
    EXPECT_EQ(identity.slurm_job, c.slurm_job) << c.what;
  }
}

TEST(Cgroup, KeepsThePathThatTellsMost) {
  EXPECT_EQ(
      parse_cgroup("4:memory:/slurm/uid_0/job_1/step_0\n1:name=systemd:/system.slice/slurmd.service\n0::/\n").path,
      "/slurm/uid_0/job_1/step_0");
  EXPECT_EQ(parse_cgroup("4:memory:/a\n0::/user.slice\n").path, "/user.slice");
  EXPECT_EQ(parse_cgroup("0::/\n").path, "/");
}

RC_GTEST_PROP(Cgroup, NeverFailsAndNeverInventsAnIdOfWrongLength, (const std::string& text)) {
  const CgroupIdentity identity = parse_cgroup("0::/kubepods/" + text + "\n");
  RC_ASSERT(identity.pod.empty() || identity.pod.size() == 32U || identity.pod.size() == 36U);
}

}  // namespace
}  // namespace vramtrack
