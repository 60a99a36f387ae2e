#include "host/pod_folders.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kId(64, 'a');

TEST(PodFolders, NamePodsAndContainersAsTheKubeletDoes) {
  const TempFolder logs;
  for (const char* pod : {"train_resnet-7c9d8b6f5-x2x4z_0f1e2d3c-1111-2222-3333-444455556666", "lost+found"})
    std::filesystem::create_directories(logs.path() + "/pods/" + pod);
  std::filesystem::create_directories(logs.path() + "/containers");
  for (const std::string& name :
       {"resnet-7c9d8b6f5-x2x4z_train_main-2-" + kId + ".log", std::string("other.log"),
        "resnet-7c9d8b6f5-x2x4z_train_main-" + std::string(64, 'x') + ".log", "elsewhere_train_main-" + kId + ".log"})
    std::ofstream(logs.path() + "/containers/" + name).put('\n');
  const auto pods = pods_by_folder(logs.path());
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 1U);
  EXPECT_EQ(pods->front().space, "train");
  EXPECT_EQ(pods->front().name, "resnet-7c9d8b6f5-x2x4z");
  EXPECT_EQ(pods->front().uid, "0f1e2d3c-1111-2222-3333-444455556666");
  EXPECT_THAT(pods->front().containers, ElementsAre(Pair(kId, "main-2")));
}

TEST(PodFolders, AFolderThatIsNotThereIsAnError) {
  const TempFolder logs;
  const auto pods = pods_by_folder(logs.path());
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr(logs.path() + "/pods"));
}

TEST(PodFolders, AreFoundInTheFileSystemOfTheFirstProcess) {
  const TempFolder proc;
  if (std::filesystem::exists("/var/log/pods")) GTEST_SKIP() << "this machine has a kubelet";
  EXPECT_THAT(kubelet_logs(proc.path()), IsEmpty());
  std::filesystem::create_directories(proc.path() + "/1/root/var/log/pods");
  EXPECT_EQ(kubelet_logs(proc.path()), proc.path() + "/1/root/var/log");
}

}  // namespace
}  // namespace vramtrack
