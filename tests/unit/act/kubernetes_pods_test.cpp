#include <gtest/gtest.h>

#include "act/kubernetes.hpp"

namespace vramtrack::act {
namespace {

constexpr const char* kList = R"({"kind":"PodList","items":[
  {"metadata":{"name":"infer-7d9f","namespace":"serving","uid":"u-1",
               "ownerReferences":[{"kind":"ReplicaSet","controller":true}]},
   "status":{"containerStatuses":[{"name":"srv","containerID":"containerd://aa11"},{"name":"sidecar","containerID":""}],
             "initContainerStatuses":[{"name":"load","containerID":"cri-o://bb22"}],
             "ephemeralContainerStatuses":[{"name":"debug","containerID":"containerd://cc33"}]}},
  {"metadata":{"name":"Not A Name","namespace":"x","uid":"u-2"}},
  {"metadata":{"name":"young","namespace":"train","uid":"u-3"},"status":{}}]})";

TEST(KubernetesPods, HaveTheNamesOfTheirContainers) {
  const auto pods = parse_pods(kList);
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 2U) << "a name that Kubernetes does not allow is left out";
  const KubernetesPod& first = pods->front();
  EXPECT_EQ(first.space + "/" + first.name, "serving/infer-7d9f");
  EXPECT_TRUE(first.is_controlled);
  EXPECT_EQ(first.containers,
            (std::map<std::string, std::string>{{"aa11", "srv"}, {"bb22", "load"}, {"cc33", "debug"}}));
  EXPECT_TRUE(pods->back().containers.empty());
}

TEST(KubernetesPods, WhatIsNoListIsAnError) {
  for (const char* text : {"", "{", "[]", R"({"items":7})", R"({"kind":"Status","message":"no"})", "\xff\x00"})
    EXPECT_FALSE(parse_pods(text)) << text;
  EXPECT_TRUE(parse_pods(R"({"items":[7,null,{"metadata":[]},{"metadata":{"name":7}}]})")->empty());
}

}  // namespace
}  // namespace vramtrack::act
