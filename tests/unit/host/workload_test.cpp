#include "host/workload.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../temp_folder.hpp"
#include "host/process.hpp"

namespace vramtrack {
namespace {

const std::string kId(64, 'a');

class WorkloadTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string image() const { return container_image(folder_.path(), kId); }

  TempFolder folder_;
};

TEST_F(WorkloadTest, DockersImageIsAsItWasAskedFor) {
  EXPECT_EQ(image(), "");
  write("var/lib/docker/containers/" + kId + "/config.v2.json",
        R"({"ID": "a", "Image": "sha256:12", "Config": {"Hostname": "h", "Image": "vllm/vllm-openai:v0.11"}})");
  EXPECT_EQ(image(), "vllm/vllm-openai:v0.11");
  EXPECT_EQ(container_image(folder_.path(), std::string(64, 'b')), "");
}

TEST_F(WorkloadTest, ContainerdAndCriOKeepItInAnAnnotation) {
  write("run/containers/storage/overlay-containers/" + kId + "/userdata/config.json",
        R"({"annotations": {"io.kubernetes.cri-o.ImageName": "quay.io/b:2"}})");
  EXPECT_EQ(image(), "quay.io/b:2");
  write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
        R"({"annotations": {"io.kubernetes.cri.image-name": "docker.io/library/a:1"}})");
  EXPECT_EQ(image(), "docker.io/library/a:1");
}

TEST_F(WorkloadTest, PodmanKeepsAListOfAll) {
  write("var/lib/containers/storage/overlay-containers/containers.json",
        R"([{"id": "b"}, {"id": ")" + kId + R"(", "metadata": "{\"image-name\":\"localhost/train:9\"}"}])");
  EXPECT_EQ(image(), "localhost/train:9");
}

TEST_F(WorkloadTest, WhatIsNotUnderstoodSaysNothing) {
  for (const char* text : {"", "{", "[]", "null", R"({"Config": []})", R"({"Config": {"Image": 7}})", "\xff\xfe"}) {
    write("var/lib/docker/containers/" + kId + "/config.v2.json", text);
    write("var/lib/containers/storage/overlay-containers/containers.json", text);
    EXPECT_EQ(image(), "") << text;
  }
  write("var/lib/containers/storage/overlay-containers/containers.json",
        R"([{"id": ")" + kId + R"(", "metadata": "{"}, 3, {"id": [1]}])");
  EXPECT_EQ(image(), "");
}

TEST_F(WorkloadTest, AnIdIsNeverAPath) {
  write("config.v2.json", R"({"Config": {"Image": "x"}})");
  EXPECT_EQ(container_image(folder_.path(), "../../../.."), "");
  EXPECT_EQ(container_image(folder_.path(), std::string(63, 'a') + "/"), "");
}

TEST_F(WorkloadTest, OfTheEnvironmentOnlyTheJobsNameIsTaken) {
  using namespace std::string_literals;
  EXPECT_EQ(slurm_job_name(folder_.path(), 7), "");
  write("7/environ", "SECRET=hunter2\0SLURM_JOB_NAME=llama-sft\0HOME=/root\0"s);
  EXPECT_EQ(slurm_job_name(folder_.path(), 7), "llama-sft");
  write("8/environ", "XSLURM_JOB_NAME=no\0A=SLURM_JOB_NAME=no"s);
  EXPECT_EQ(slurm_job_name(folder_.path(), 8), "");
}

TEST_F(WorkloadTest, AProcessInASlurmJobIsNamedByIt) {
  using namespace std::string_literals;
  write("proc/9/stat", "9 (python) R 1 7 7 0 -1 4194560 1 0 0 0 5 2 0 0 20 0 1 0 987654 1000 50\n");
  write("proc/9/cgroup", "0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0\n");
  write("proc/9/environ", "SLURM_JOB_NAME=llama-sft\0"s);
  const auto in_job = read_process(folder_.path() + "/proc", 9);
  ASSERT_TRUE(in_job);
  EXPECT_EQ(in_job->slurm_job, "1234.0");
  EXPECT_EQ(in_job->job_name, "llama-sft");
  write("proc/9/cgroup", "0::/system.slice/docker-" + kId + ".scope\n");
  write("var/lib/docker/containers/" + kId + "/config.v2.json", R"({"Config": {"Image": "train:3"}})");
  const auto in_container = read_process(folder_.path() + "/proc", 9);
  ASSERT_TRUE(in_container);
  EXPECT_EQ(in_container->image, "train:3");
  EXPECT_EQ(in_container->job_name, "") << "its environment is none of our business outside Slurm";
}

}  // namespace
}  // namespace vramtrack
