#include "agent/server/message.hpp"

#include <gmock/gmock.h>

namespace vramtrack::agent {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::size_t kMostBodyBytes = 1024;

TEST(Message, ARequestsHead) {
  const auto head = parse_head(
      "GET /api/v1/a%20b?x=1+2&y=%26%3D=&=z&w&x=3#f HTTP/1.1\r\nhost: gpu:9474\r\nORIGIN:  http://gpu \r\n"
      "Authorization: Bearer t\r\nIf-None-Match: \"7\"\r\nRange: bytes=9-1\r\nExpect: 100-continue\r\n\r\n",
      kMostBodyBytes);
  ASSERT_TRUE(head) << *head.error().body;
  const Request& request = head->request;
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/api/v1/a b");
  EXPECT_THAT(request.query, UnorderedElementsAre(Pair("x", "1 2"), Pair("y", "&=="), Pair("w", ""), Pair("x", "3")));
  EXPECT_EQ(request.host, "gpu:9474");
  EXPECT_EQ(request.origin, "http://gpu");
  EXPECT_EQ(request.authorization, "Bearer t");
  EXPECT_EQ(request.if_none_match, "\"7\"");
  EXPECT_EQ(head->body_bytes, 0U);
  EXPECT_TRUE(head->keeps_alive);
}

TEST(Message, ABodyOfJsonFollows) {
  const auto head = parse_head(
      "POST / HTTP/1.1\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 1024\r\n"
      "Connection: close\r\n\r\n",
      kMostBodyBytes);
  ASSERT_TRUE(head) << *head.error().body;
  EXPECT_EQ(head->body_bytes, 1024U);
  EXPECT_FALSE(head->keeps_alive);
}

TEST(Message, WhatIsRefused) {
  const std::string json = "POST / HTTP/1.1\r\nContent-Type: application/json\r\n";
  const std::pair<std::string, int> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {std::string("GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", 26), 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 400},
      {"GET /" + std::string(256, 'x') + " HTTP/1.1\r\n\r\n", 414},
      {"PUT / HTTP/1.1\r\n\r\n", 405},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\n\r\n", 411},
      {json + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {json + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {json + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {json + "Content-Length: -1\r\n\r\n", 400},
      {json + "Content-Length: 1025\r\n\r\n", 413},
      {json + "Content-Length: 1\r\nContent-Encoding: gzip\r\n\r\n", 415},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Type: text/plain\r\n\r\n", 415},
  };
  for (const auto& [head, status] : cases) {
    const auto parsed = parse_head(head, kMostBodyBytes);
    ASSERT_FALSE(parsed) << head;
    EXPECT_EQ(parsed.error().status, status) << head << *parsed.error().body;
  }
}

TEST(Message, AResponsesHead) {
  Response response = text_response(429, "text/plain", "slow");
  response.headers.emplace_back("Retry-After", "1");
  EXPECT_EQ(closing_answer(response),
            "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 4\r\nContent-Type: "
            "text/plain\r\nRetry-After: 1\r\n\r\nslow");
  response.body.reset();
  response.status = 304;
  response.headers.clear();
  EXPECT_EQ(response_head(response, false), "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\n\r\n");
  response.status = 200;
  EXPECT_THAT(response_head(response, false), HasSubstr("\r\nContent-Length: 0\r\n"));
  response.stream = [](const Write&) { return false; };
  EXPECT_THAT(response_head(response, false), HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
}

}  // namespace
}  // namespace vramtrack::agent
