#include "agent/input.hpp"

#include <gmock/gmock.h>

namespace vramtrack::agent {
namespace {

using testing::HasSubstr;

TEST(AgentInput, ASimulationHasItsOwnPeriodAndDates) {
  const auto input = simulated_input("leaking_training", 7, 60);
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input->simulated, "leaking_training");
  ASSERT_TRUE(input->interval_s);
  EXPECT_GT(*input->interval_s, 0);
  ASSERT_EQ(input->input.sources.size(), 1U);
  EXPECT_EQ(input->input.sources[0].name, "simulation");
  EXPECT_TRUE(input->input.again);
  EXPECT_FALSE(input->input.catalog->clock_is_relative) << "a page and a store want to know when";
}

TEST(AgentInput, AScenarioThatIsNoneNamesTheNearest) {
  const auto input = simulated_input("leaking_trainin", {}, 60);
  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message, HasSubstr("leaking_training"));
}

TEST(AgentInput, WithoutAGpuTheReasonsAreTold) {
  SourcesConfig config;
  config.enabled = {"nvml"};
  config.nvml_library = "/nowhere/libnvidia-ml.so.1";
  const auto input = machine_input(config);
  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message, HasSubstr("nvml: "));
}

}  // namespace
}  // namespace vramtrack::agent
