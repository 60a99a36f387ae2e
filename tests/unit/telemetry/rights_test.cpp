#include "telemetry/rights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

namespace vramtrack::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TracingRights all() {
  TracingRights rights;
  rights.capabilities = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON | 1ULL << CAP_SYS_PTRACE;
  rights.kernel_major = 6;
  rights.kernel_minor = 6;
  return rights;
}

TEST(TracingRights, ThreeCapabilitiesSuffice) {
  EXPECT_THAT(hindrances(all()), IsEmpty());
  EXPECT_THAT(limitations(all()), IsEmpty());
}

TEST(TracingRights, EachMissingCapabilityIsNamed) {
  TracingRights rights = all();
  rights.capabilities = 0;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("CAP_BPF"), HasSubstr("CAP_PERFMON")));
  EXPECT_THAT(limitations(rights), ElementsAre(HasSubstr("CAP_SYS_PTRACE")));
  rights.capabilities = 1ULL << CAP_SYS_ADMIN;
  EXPECT_THAT(hindrances(rights), IsEmpty());
}

TEST(TracingRights, TheSettingOfPerfIsNoRight) {
  TracingRights rights = all();
  rights.paranoia = "4";
  EXPECT_THAT(hindrances(rights), IsEmpty());
  rights.capabilities = 1ULL << CAP_BPF;
  rights.paranoia = "-1";
  EXPECT_THAT(
      hindrances(rights),
      ElementsAre("the capability CAP_PERFMON is missing, which no value of kernel.perf_event_paranoid (it is -1) "
                  "replaces"));
}

TEST(TracingRights, AContainerNeedsTheHostsProcessNumbers) {
  TracingRights rights = all();
  rights.is_first_pid_namespace = false;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("hostPID: true")));
  rights = all();
  rights.is_first_user_namespace = false;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("rootless")));
}

TEST(TracingRights, TheKernelMustBeNewAndAllowIt) {
  TracingRights rights = all();
  rights.kernel_minor = 5;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("CAP_SYS_ADMIN")));
  rights.kernel_major = 5;
  rights.kernel_minor = 14;
  rights.capabilities |= 1ULL << CAP_SYS_ADMIN;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("5.14")));
  rights.kernel_minor = 15;
  EXPECT_THAT(hindrances(rights), IsEmpty());
  rights.has_types = rights.has_probes = false;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("BTF"), HasSubstr("uprobes")));
  rights = all();
  rights.lockdown = "none [integrity] confidentiality";
  EXPECT_THAT(hindrances(rights), IsEmpty());
  rights.lockdown = "none integrity [confidentiality]";
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("locked down")));
}

TEST(TracingRights, AFilterIsNamedWhereNothingElseHinders) {
  TracingRights rights = all();
  rights.has_filter = true;
  EXPECT_THAT(hindrances(rights), ElementsAre(HasSubstr("perf_event_open")));
}

}  // namespace
}  // namespace vramtrack::telemetry
