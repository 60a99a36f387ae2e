#include "report/otlp.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace vramtrack {
namespace {

using Json = nlohmann::json;

const char* const kScrape =
    "# HELP vramtrack_device_info The device's name and location as labels; always 1.\n"
    "# TYPE vramtrack_device_info gauge\n"
    "vramtrack_device_info{UUID=\"GPU-1\",gpu=\"0\",Hostname=\"gn1\",name=\"H100 \\\"SXM\\\"\"} 1\n"
    "# HELP vramtrack_device_memory_used_bytes Memory in use on the device in total.\n"
    "# TYPE vramtrack_device_memory_used_bytes gauge\n"
    "vramtrack_device_memory_used_bytes{UUID=\"GPU-1\",gpu=\"0\",Hostname=\"gn1\"} 30000000000\n"
    "vramtrack_device_memory_total_bytes{UUID=\"GPU-1\",gpu=\"0\",Hostname=\"gn1\"} 80000000000\n"
    "# HELP vramtrack_acts_total Steps by action and outcome.\n"
    "# TYPE vramtrack_acts_total counter\n"
    "vramtrack_acts_total{action=\"freeze\",outcome=\"done\"} 2\n"
    "vramtrack_oom_eta_seconds{UUID=\"GPU-1\"} NaN\n"
    "not a line\n";

Json exported(const std::string& text, std::map<std::string, std::string> attributes = {}) {
  OtlpResource resource{std::move(attributes),  "vramtrack-agent",     "0.1", "gn1",
                        Timestamp{Duration{5}}, Timestamp{Duration{7}}};
  return Json::parse(otlp_json(text, resource));
}

Json metric(const Json& request, const std::string& name) {
  for (const Json& one : request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"])
    if (one["name"] == name) return one;
  return {};
}

std::string attribute(const Json& of, const std::string& name) {
  for (const Json& one : of["attributes"])
    if (one["key"] == name) return one["value"]["stringValue"];
  return {};
}

TEST(Otlp, OurMetricsKeepTheirNamesAndLabels) {
  const Json request = exported(kScrape);
  const Json gauge = metric(request, "vramtrack_device_memory_used_bytes");
  EXPECT_EQ(gauge["description"], "Memory in use on the device in total.");
  const Json& point = gauge["gauge"]["dataPoints"][0];
  EXPECT_EQ(point["asDouble"], 3e10);
  EXPECT_EQ(point["timeUnixNano"], "7");
  EXPECT_EQ(attribute(point, "UUID"), "GPU-1");
  EXPECT_EQ(attribute(metric(request, "vramtrack_device_info")["gauge"]["dataPoints"][0], "name"), "H100 \"SXM\"");
  const Json counter = metric(request, "vramtrack_acts_total")["sum"];
  EXPECT_EQ(counter["isMonotonic"], true);
  EXPECT_EQ(counter["aggregationTemporality"], 2);
  EXPECT_EQ(counter["dataPoints"][0]["startTimeUnixNano"], "5");
  EXPECT_TRUE(metric(request, "vramtrack_oom_eta_seconds").is_null()) << "JSON has no NaN";
}

TEST(Otlp, AGpuIsExportedByTheSemanticConventions) {
  const Json request = exported(kScrape);
  const Json usage = metric(request, "hw.gpu.memory.usage");
  EXPECT_EQ(usage["unit"], "By");
  EXPECT_EQ(usage["sum"]["isMonotonic"], false);
  const Json& point = usage["sum"]["dataPoints"][0];
  EXPECT_EQ(attribute(point, "hw.id"), "GPU-1");
  EXPECT_EQ(attribute(point, "hw.model"), "H100 \"SXM\"");
  EXPECT_EQ(metric(request, "hw.gpu.memory.limit")["sum"]["dataPoints"][0]["asDouble"], 8e10);
  EXPECT_EQ(metric(request, "hw.gpu.memory.utilization")["gauge"]["dataPoints"][0]["asDouble"], 0.375);
}

TEST(Otlp, WhatTheEnvironmentSaysOfTheResourceGoesBefore) {
  const auto resource = [](const Json& request) { return request["resourceMetrics"][0]["resource"]; };
  EXPECT_EQ(attribute(resource(exported(kScrape)), "service.name"), "vramtrack-agent");
  const Json given = resource(exported(kScrape, {{"service.name", "gpus"}, {"k8s.node.name", "gn1"}}));
  EXPECT_EQ(attribute(given, "service.name"), "gpus");
  EXPECT_EQ(attribute(given, "k8s.node.name"), "gn1");
  EXPECT_EQ(attribute(given, "host.name"), "gn1");
}

}  // namespace
}  // namespace vramtrack
