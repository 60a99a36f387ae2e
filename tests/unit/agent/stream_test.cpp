#include "agent/server/stream.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "patience.hpp"

namespace vramtrack::agent {
namespace {

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
    ours_ = pair[0];
    theirs_ = pair[1];
  }
  void TearDown() override {
    ::close(ours_);
    if (theirs_ >= 0) ::close(theirs_);
  }
  void send(const std::string& text) {
    ASSERT_EQ(::send(theirs_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  int ours_ = -1;
  int theirs_ = -1;
  std::string head_;
};

TEST_F(StreamTest, HeadThenBodyThenTheNextRequest) {
  ClientStream stream(ours_);
  send("POST / HTTP/1.1\r\nRange: x\r\n\r\nbodyGET /2 HTTP/1.1\r\n\r\n");
  ASSERT_EQ(stream.next_head(1, 1, 1000, head_), ClientStream::Head::complete);
  EXPECT_EQ(head_, "POST / HTTP/1.1\r\nRange: x\r\n\r\n");
  EXPECT_EQ(stream.body(4), "body");
  ASSERT_EQ(stream.next_head(1, 1, 1000, head_), ClientStream::Head::complete);
  EXPECT_EQ(head_, "GET /2 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(stream.body(0), "");
}

TEST_F(StreamTest, AHeadInPiecesIsOne) {
  ClientStream stream(ours_);
  send("GET / HTTP/1.1\r");
  send("\n\r");
  send("\n");
  EXPECT_EQ(stream.next_head(1, 1, 1000, head_), ClientStream::Head::complete);
}

TEST_F(StreamTest, ASlowHeadIsGivenUpInTime) {
  ClientStream stream(ours_);
  send("GET / HT");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(stream.next_head(1, 0.05, 1000, head_), ClientStream::Head::too_slow);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(std::chrono::seconds(1)));
}

TEST_F(StreamTest, NothingOrTheEndIsNoRequest) {
  ClientStream stream(ours_);
  EXPECT_EQ(stream.next_head(0.02, 1, 1000, head_), ClientStream::Head::none);
  ::close(std::exchange(theirs_, -1));
  EXPECT_EQ(stream.next_head(1, 1, 1000, head_), ClientStream::Head::none);
}

TEST_F(StreamTest, ALargeHeadIsNotRead) {
  ClientStream stream(ours_);
  send(std::string(300, 'x'));
  EXPECT_EQ(stream.next_head(1, 1, 200, head_), ClientStream::Head::too_large);
  send(std::string(300, 'x') + "\r\n\r\n");
  EXPECT_EQ(stream.next_head(1, 1, 200, head_), ClientStream::Head::too_large);
}

TEST_F(StreamTest, ABodyThatDoesNotComeEndsInTime) {
  ClientStream stream(ours_);
  send("POST / HTTP/1.1\r\n\r\nbod");
  ASSERT_EQ(stream.next_head(1, 0.05, 1000, head_), ClientStream::Head::complete);
  EXPECT_EQ(stream.body(4), std::nullopt);
}

TEST_F(StreamTest, WhoTakesNothingIsGivenUp) {
  ClientStream stream(ours_);
  EXPECT_TRUE(stream.write("small", 1));
  EXPECT_FALSE(stream.write(std::string(8 << 20, 'x'), 0.05)) << "the other end reads nothing";
  ::close(std::exchange(theirs_, -1));
  EXPECT_FALSE(stream.write("more", 1));
}

}  // namespace
}  // namespace vramtrack::agent
