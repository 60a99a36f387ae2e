#include "actuate/agent_hosts.hpp"

#include <gmock/gmock.h>

#include "actuate/agent_view.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::HasSubstr;

bool may_be_asked(const std::vector<std::string>& listed, const std::string& instance) {
  const auto hosts = AgentHosts::parse(listed);
  if (!hosts) ADD_FAILURE() << hosts.error().message;
  const auto address = hosts->address("https://{instance}", {{"instance", instance}}, "gn1");
  return address && address->refusal.empty() && address->url == "https://" + instance;
}

TEST(AgentHosts, AreThoseThatAreListed) {
  EXPECT_TRUE(may_be_asked({"gn*.example.org"}, "gn17.example.org:9474"));
  EXPECT_TRUE(may_be_asked({"GN*.Example.org"}, "gn17.EXAMPLE.org:9474"));
  EXPECT_TRUE(may_be_asked({"gn1", "gn2:9475"}, "gn2:9475"));
  EXPECT_TRUE(may_be_asked({"*-gpu-*.rack1.example"}, "a-gpu-7.rack1.example:9474"));
  EXPECT_TRUE(may_be_asked({"10.1.0.0/16"}, "10.1.255.3:9474"));
  EXPECT_TRUE(may_be_asked({"10.1.0.0/20:1234"}, "10.1.15.3:1234"));
  EXPECT_TRUE(may_be_asked({"127.0.0.1:1234"}, "127.0.0.1:1234"));
  EXPECT_TRUE(may_be_asked({"[fd00::]/8:1234"}, "[fd12::7]:1234"));
  EXPECT_TRUE(may_be_asked({"[::1]"}, "[::1]:9474"));
}

TEST(AgentHosts, NoOtherHostIsOneWhateverItIsCalled) {
  for (const char* instance :
       {"evil.example:9474", "gn1.evil.example:9474", "gn1.example.org.evil.example:9474", "gn1.example.org:80",
        "gn1:9474", "xgn1.example.org:9474", "gn1.example.org.:9474", "gn1-example.org:9474", ".example.org:9474",
        "10.1.0.7:9474", "127.0.0.1:9474", "localhost:9474", "[::1]:9474", "", ":9474"})
    EXPECT_FALSE(may_be_asked({"gn*.example.org"}, instance)) << instance;
  // A name that looks like an address in the range, and addresses in other notations.
  for (const char* instance : {"10.1.0.evil:9474", "10.1.7:9474", "0x0a010007:9474", "167837703:9474", "10.2.0.1:9474",
                               "10.1.0.7:9475", "[::ffff:10.1.0.7]:9474", "010.1.0.7:9474"})
    EXPECT_FALSE(may_be_asked({"10.1.0.0/16"}, instance)) << instance;
  for (const char* instance : {"2130706433:9474", "0x7f000001:9474", "127.1:9474", "a.b:9474"})
    EXPECT_FALSE(may_be_asked({"*"}, instance)) << instance;
  EXPECT_FALSE(may_be_asked({}, "gn1:9474")) << "an empty list allows nobody";
}

TEST(AgentHosts, ANodesOwnAddressIsNotChangedByALabel) {
  const auto hosts = AgentHosts::parse({"gn1=https://10.0.0.1:9474", "gn2"});
  ASSERT_TRUE(hosts);
  const Labels labels = {{"instance", "evil.example:9474"}};
  EXPECT_EQ(hosts->address("http://{instance}", labels, "gn1")->url, "https://10.0.0.1:9474");
  EXPECT_EQ(hosts->address("http://{instance}", {}, "gn1")->url, "https://10.0.0.1:9474");
  EXPECT_THAT(hosts->address("http://{instance}", labels, "gn2")->refusal,
              HasSubstr("name evil.example:9474, which is not an agent listed in actuate.agent-hosts"));
  EXPECT_FALSE(hosts->address("http://{instance}", {}, "gn2"));
}

TEST(AgentHosts, AHostThatTheSettingNamesNeedsNoList) {
  const auto none = AgentHosts::parse({});
  EXPECT_EQ(none->address("https://proxy.example/{instance}", {{"instance", "gn1"}}, "gn1")->refusal, "");
  EXPECT_FALSE(AgentHosts::is_chosen_by_labels("https://proxy.example/{instance}"));
  EXPECT_TRUE(AgentHosts::is_chosen_by_labels("https://{instance}/agent"));
  EXPECT_TRUE(AgentHosts::is_chosen_by_labels("{instance}"));
}

TEST(AgentHosts, ErrorsNameTheEntryAndWhatToWrite) {
  for (const char* entry :
       {"",          "*.*",        "gn1.*",       "gn 1",         "gn1:",         "gn1:0",
        "gn1:65536", "gn1:x",      "10.1.0.0/33", "10.1.0.0/",    "10.1/16",      "10.1.*.*",
        "[gn1]",     "[fd00::",    "gn1=",        "=https://gn1", "gn1=gn1:9474", "https://gn1:9474",
        "gn1/x",     "a*b*c*d*e*f"}) {
    const auto hosts = AgentHosts::parse({"gn2", entry});
    ASSERT_FALSE(hosts) << entry;
    EXPECT_THAT(hosts.error().message, HasSubstr("actuate.agent-hosts: '" + std::string(entry) + "'"));
    EXPECT_THAT(hosts.error().message, HasSubstr("write, for example,"));
  }
  EXPECT_FALSE(AgentHosts::parse({"gn1=https://a", "gn1=https://b"})) << "which of the two?";
}

TEST(AgentHosts, TheTokenIsNotSentInTheClear) {
  AgentAccess access;
  access.token = "0123456789abcdef";
  for (const char* url : {"http://192.0.2.1:9474", "http://gn1.example.org:9474", "http://[2001:db8::1]:9474"}) {
    const auto asked = ask_agent(url, access);
    ASSERT_FALSE(asked);
    EXPECT_THAT(asked.error().message, HasSubstr("the agents' token is not sent without TLS")) << url;
    EXPECT_THAT(asked.error().message, ::testing::Not(HasSubstr(access.token)));
  }
}

}  // namespace
}  // namespace vramtrack::actuate
