#include "act/otlp_push.hpp"

#include <gmock/gmock.h>

namespace vramtrack::act {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

Result<std::optional<OtlpTarget>> target_of(const std::map<std::string, std::string>& variables) {
  return otlp_target([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::string() : at->second;
  });
}

TEST(OtlpTarget, IsWhatTheStandardsVariablesSay) {
  const auto target = target_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"},
                                 {"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret, x-tenant=gpus"},
                                 {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/ca.crt"},
                                 {"OTEL_METRIC_EXPORT_INTERVAL", "15000"},
                                 {"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"},
                                 {"OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=a,deployment.environment.name=prod"}});
  ASSERT_TRUE(target && *target) << target.error().message;
  EXPECT_EQ((*target)->url.host, "collector");
  EXPECT_EQ((*target)->url.port, 4318);
  EXPECT_EQ((*target)->url.path, "/v1/metrics");
  EXPECT_THAT((*target)->headers, ElementsAre(Pair("authorization", "Bearer s3cret"), Pair("x-tenant", "gpus")));
  EXPECT_EQ((*target)->every_s, 15);
  EXPECT_EQ((*target)->timeout_s, 2.5);
  EXPECT_EQ((*target)->ca_file, "/etc/ca.crt");
  EXPECT_EQ((*target)->attributes.at("k8s.cluster.name"), "a");
}

TEST(OtlpTarget, AnEndpointForMetricsIsTakenAsItIs) {
  const auto target = target_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/"},
                                 {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://b/otlp/v1/metrics"}});
  ASSERT_TRUE(target && *target);
  EXPECT_EQ((*target)->url.host, "b");
  EXPECT_EQ((*target)->url.path, "/otlp/v1/metrics");
}

TEST(OtlpTarget, WithoutAnEndpointOrSwitchedOffThereIsNone) {
  EXPECT_FALSE(*target_of({}));
  EXPECT_FALSE(*target_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"}, {"OTEL_SDK_DISABLED", "true"}}));
  EXPECT_FALSE(*target_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"}, {"OTEL_METRICS_EXPORTER", "none"}}));
}

TEST(OtlpTarget, AnErrorNamesTheVariableAndNoSecret) {
  const std::string endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
  EXPECT_THAT(target_of({{endpoint, "collector:4318"}}).error().message, HasSubstr(endpoint));
  EXPECT_THAT(target_of({{endpoint, "http://a"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}).error().message,
              HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL=grpc: vramtrack sends http/json only"));
  const auto headers = target_of({{endpoint, "http://a"}, {"OTEL_EXPORTER_OTLP_HEADERS", "s3cret"}});
  EXPECT_THAT(headers.error().message, AllOf(HasSubstr("OTEL_EXPORTER_OTLP_HEADERS"), Not(HasSubstr("s3cret"))));
  EXPECT_FALSE(target_of({{endpoint, "http://a"}, {"OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac: d"}}));
  EXPECT_THAT(target_of({{endpoint, "http://a"}, {"OTEL_METRIC_EXPORT_INTERVAL", "15s"}}).error().message,
              HasSubstr("OTEL_METRIC_EXPORT_INTERVAL: expected milliseconds"));
}

}  // namespace
}  // namespace vramtrack::act
