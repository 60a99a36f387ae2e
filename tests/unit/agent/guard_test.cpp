#include "agent/server/guard.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "../temp_folder.hpp"
#include "agent/server/listen.hpp"
#include "agent/server/peer.hpp"

namespace vramtrack::agent {
namespace {

using ::testing::HasSubstr;

TEST(Guard, HostsThatNameThisAgent) {
  const std::array<std::string, 1> allowed = {"gpu.example"};
  for (const char* host : {"127.0.0.1", "127.0.0.1:9474", "10.1.2.3:80", "localhost", "LOCALHOST:9474", "[::1]",
                           "[::1]:9474", "node7:9474", "Node7", "gpu.example", "gpu.example:443"})
    EXPECT_TRUE(host_allowed(host, "node7", allowed)) << host;
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[evil.example]",
                           "[::1", "[::1]x", "node7.evil.example", "x.gpu.example", ":9474"})
    EXPECT_FALSE(host_allowed(host, "node7", allowed)) << host;
  EXPECT_FALSE(host_allowed("", "", {}));
}

TEST(Guard, OriginsThatAreTheAgentsOwn) {
  EXPECT_TRUE(origin_is_host("http://127.0.0.1:9474", "127.0.0.1:9474"));
  EXPECT_TRUE(origin_is_host("https://GPU.example", "gpu.example"));
  for (const char* origin : {"null", "", "http://127.0.0.1", "http://127.0.0.1:9475", "http://evil.example",
                             "127.0.0.1:9474", "http://127.0.0.1:9474.evil.example", "ftp://127.0.0.1:9474"})
    EXPECT_FALSE(origin_is_host(origin, "127.0.0.1:9474")) << origin;
}

TEST(Guard, Tokens) {
  const std::string token = "0123456789abcdef";
  EXPECT_TRUE(bears_token("Bearer 0123456789abcdef", token));
  EXPECT_TRUE(bears_token("bearer 0123456789abcdef", token));
  for (const char* given :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "Bearer 1123456789abcdef",
        "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer  0123456789abcdef"})
    EXPECT_FALSE(bears_token(given, token)) << given;
  EXPECT_FALSE(bears_token("Bearer ", "")) << "no token is no key";
}

class TokenFile : public ::testing::Test {
 protected:
  std::string file(const std::string& text, mode_t mode) {
    const std::string path = folder_.file("token");
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  TempFolder folder_;
};

TEST_F(TokenFile, IsReadWhenItsOwnersAlone) {
  EXPECT_EQ(read_token(file("0123456789abcdef\nmore\n", 0600)).value(), "0123456789abcdef");
  EXPECT_THAT(read_token(file("0123456789abcdef\n", 0640)).error().message, HasSubstr("chmod 600"));
  EXPECT_THAT(read_token(file("0123456789abcdef\n", 0604)).error().message, HasSubstr("chmod 600"));
  for (const char* text : {"", "\n", "short", "with blanks in the middle",
                           "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x10\x11\x12\x13\x14\x15\x16"})
    EXPECT_THAT(read_token(file(text, 0600)).error().message, HasSubstr("16 to 512"));
  EXPECT_THAT(read_token(folder_.file("none")).error().message, HasSubstr("create one"));
  EXPECT_THAT(read_token(folder_.path()).error().message, HasSubstr("is a directory"));
}

TEST(Listen, AddressesAreParsed) {
  EXPECT_EQ(parse_listen("127.0.0.1:9474").value(), (std::pair<std::string, std::uint16_t>{"127.0.0.1", 9474}));
  EXPECT_EQ(parse_listen("[::1]:0").value(), (std::pair<std::string, std::uint16_t>{"::1", 0}));
  for (const char* port : {"9474", ":9474"})
    EXPECT_EQ(parse_listen(port).value(), (std::pair<std::string, std::uint16_t>{"127.0.0.1", 9474})) << port;
  for (const char* wrong :
       {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:9474", "[::1:9474", "[]:1"})
    EXPECT_FALSE(parse_listen(wrong)) << wrong;
}

TEST(Listen, WhatNobodyElseReaches) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "fe80::1", "node7", "localhost.example", "::ffff:127.0.0.1"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:2502 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0\n"
    "   1: 0100007F:C001 0100007F:2502 01 00000000:00000000 00:00000000 00000000  1000        0 101 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:2502 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1\n"
    "   3: 0100007F:C002 0100007F:2502 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n";

TEST(Peer, OwnerOfASocketIsInTheKernelsTable) {
  EXPECT_EQ(socket_owner(kTable, "0100007F:C001", "0100007F:2502"), 1000U);
  EXPECT_EQ(socket_owner(kTable, "0100007F:2502", "0100007F:C001"), 0U);
  EXPECT_EQ(socket_owner(kTable, "0100007F:C002", "0100007F:2502"), std::nullopt) << "closed sockets show root's uid";
  EXPECT_EQ(socket_owner(kTable, "0100007F:C003", "0100007F:2502"), std::nullopt);
  EXPECT_EQ(socket_owner("", "a", "b"), std::nullopt);
  EXPECT_EQ(socket_owner("1: a b 01", "a", "b"), std::nullopt);
}

TEST(Peer, RightsAreTheLeast) {
  EXPECT_EQ(rights_of(std::nullopt, 1000), Rights{});
  EXPECT_TRUE(rights_of(0, 1000).all_commands);
  EXPECT_TRUE(rights_of(1000, 1000).change);
  const Rights other = rights_of(4242424, 1000);
  EXPECT_FALSE(other.all_commands);
  EXPECT_FALSE(other.change);
  EXPECT_EQ(other.user, "4242424");
}

}  // namespace
}  // namespace vramtrack::agent
