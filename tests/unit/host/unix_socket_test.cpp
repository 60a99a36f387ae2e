#include "host/unix_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "../temp_folder.hpp"
#include "core/descriptor.hpp"

namespace vramtrack {
namespace {

TEST(UnixSocket, APathThatFitsIsAnAddress) {
  sockaddr_un address;
  ASSERT_TRUE(unix_address(std::string(107, 'x'), address));
  EXPECT_EQ(address.sun_path, std::string(107, 'x'));
  EXPECT_FALSE(unix_address(std::string(108, 'x'), address));
  EXPECT_FALSE(unix_address("", address));
}

TEST(UnixSocket, WhyNobodyAnswers) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  EXPECT_EQ(connect_unix(path), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(connect_unix(std::string(200, 'x')), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  ASSERT_TRUE(unix_address(path, address));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(connect_unix(path), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const Descriptor first(connect_unix(path));
  EXPECT_GE(first.get(), 0);
  EXPECT_EQ(connect_unix(path), -1);
  EXPECT_EQ(errno, EAGAIN) << "the queue is full";
}

}  // namespace
}  // namespace vramtrack
