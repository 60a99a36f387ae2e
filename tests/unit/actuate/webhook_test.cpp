#include "actuate/webhook.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "actuate/template.hpp"
#include "core/time.hpp"
#include "paths.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::HasSubstr;

std::string with(const std::string& alert, const std::string& more = "") {
  return R"({"version": "4", )" + more + R"("alerts": [)" + alert + "]}";
}

std::string wrong(const std::string& body) {
  const auto parsed = parse_webhook(body);
  return parsed ? "it was taken" : parsed.error().message;
}

TEST(Webhook, ReadsWhatAlertmanagerPosts) {
  std::ifstream file(source_dir() + "/fuzz/corpus/webhook/alertmanager");
  std::ostringstream text;
  text << file.rdbuf();
  const auto webhook = parse_webhook(text.str());
  ASSERT_TRUE(webhook) << webhook.error().message;
  EXPECT_EQ(webhook->receiver, "vramtrack");
  EXPECT_EQ(webhook->truncated, 2U);
  ASSERT_EQ(webhook->alerts.size(), 2U);
  const WebhookAlert& firing = webhook->alerts[0];
  EXPECT_TRUE(firing.is_firing);
  EXPECT_EQ(firing.fingerprint, "c2cf35b05be79c0f");
  EXPECT_EQ(iso8601(firing.starts_at), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(firing.labels.at("slurm_job_id"), "7");
  EXPECT_EQ(firing.annotations.at("summary"), "GPU 0 of gn1 leaks memory");
  EXPECT_FALSE(webhook->alerts[1].is_firing);
  EXPECT_EQ(iso8601(webhook->alerts[1].starts_at), "2026-01-02T03:04:05Z") << "an offset";
}

TEST(Webhook, AnErrorNamesThePlaceAndWhatWasExpected) {
  EXPECT_EQ(wrong("hello"), "the body is not JSON; expected what Alertmanager posts to a webhook");
  EXPECT_EQ(wrong("[]"), "expected an object, got []");
  EXPECT_EQ(wrong(R"({"alerts": []})"), "version is missing");
  EXPECT_EQ(wrong(R"({"version": "3", "alerts": []})"), "version: expected \"4\", got \"3\"");
  EXPECT_EQ(wrong(R"({"version": "4"})"), "alerts is missing");
  EXPECT_EQ(wrong(R"({"version": "4", "alerts": {}})"), "alerts: expected an array, got {}");
  EXPECT_EQ(wrong(with("7")), "alerts[0]: expected an object, got 7");
  EXPECT_EQ(wrong(with("{}")), "alerts[0].status is missing");
  EXPECT_EQ(wrong(with(R"({"status": "maybe"})")),
            "alerts[0].status: expected \"firing\" or \"resolved\", got \"maybe\"");
  EXPECT_EQ(wrong(with(R"({"status": "firing", "fingerprint": "../x"})")),
            "alerts[0].fingerprint: expected hexadecimal digits, got \"../x\"");
  EXPECT_EQ(wrong(with(R"({"status": "firing", "fingerprint": "ab", "startsAt": "now", "labels": {}})")),
            "alerts[0].startsAt: expected a time such as \"2026-01-02T03:04:05.123Z\", got \"now\"");
  EXPECT_EQ(wrong(with(R"({"status": "firing", "fingerprint": "ab", "startsAt": "2026-01-02T03:04:05Z"})")),
            "alerts[0].labels is missing");
  EXPECT_EQ(
      wrong(
          with(R"({"status": "firing", "fingerprint": "ab", "startsAt": "2026-01-02T03:04:05Z", "labels": {"a": 1}})")),
      "alerts[0].labels.a: expected a string, got 1");
  EXPECT_EQ(wrong(with("", R"("truncatedAlerts": -1, )")), "truncatedAlerts: expected a number, 0 or greater, got -1");
}

TEST(Template, IsFilledWithLabelsThatAreAddresses) {
  const Labels labels = {{"instance", "gn1:9474"}, {"v6", "[::1]:9474"}, {"path", "gn1/../x"}, {"user", "a@b"}};
  EXPECT_EQ(filled("http://{instance}", labels), "http://gn1:9474");
  EXPECT_EQ(filled("https://{v6}/agent", labels), "https://[::1]:9474/agent");
  EXPECT_THAT(filled("http://{host}", labels).error().message, HasSubstr("has no label 'host'"));
  EXPECT_THAT(filled("http://{path}", labels).error().message, HasSubstr("is not a name or an address"));
  EXPECT_THAT(filled("http://{user}", labels).error().message, HasSubstr("is not a name or an address"));
}

TEST(Template, ANodeIsOneNode) {
  EXPECT_EQ(node_name("{n}", {{"n", "gn1"}}), "gn1");
  for (const char* many : {"gn[1-4]", "gn1,gn2", "ALL", "all", "-gn1", ""})
    EXPECT_FALSE(node_name("{n}", {{"n", many}})) << many;
}

}  // namespace
}  // namespace vramtrack::actuate
