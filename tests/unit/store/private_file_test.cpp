#include "store/private_file.hpp"

#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/location.hpp"
#include "store_fixture.hpp"

namespace vramtrack {
namespace {

using namespace testing;
using ::testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
}

/// Most people's umask: others may read a program's files.
class PrivateFileTest : public StoreTest {
 protected:
  PrivateFileTest() : before_(::umask(022)) {}
  ~PrivateFileTest() override { ::umask(before_); }

 private:
  mode_t before_;
};

TEST_F(PrivateFileTest, AStoreAndWhatLiesBesideItAreTheOwners) {
  const auto store = open();
  Batch batch;
  batch.samples = {{at_s(1), catalog.intern(device_key(0)), 1000}};
  ASSERT_TRUE(store->append(batch));
  ASSERT_TRUE(store->flush());
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) EXPECT_EQ(mode_of(store->path() + suffix), 0600U) << suffix;
}

TEST_F(PrivateFileTest, AnOldStoreBecomesPrivate) {
  const std::string path = folder.file("old.db");
  std::ofstream(path) << "";
  ASSERT_EQ(mode_of(path), 0644U);
  ASSERT_TRUE(make_private(path, ""));
  EXPECT_EQ(mode_of(path), 0600U);
}

TEST_F(PrivateFileTest, AGroupMayRead) {
  const struct group* const mine = ::getgrgid(::getegid());
  ASSERT_NE(mine, nullptr);
  const std::string path = folder.file("group.db");
  ASSERT_TRUE(make_private(path, mine->gr_name));
  EXPECT_EQ(mode_of(path), 0640U);
  const Status unknown = make_private(path, "no-such-group");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("there is no group 'no-such-group'"));
}

TEST_F(PrivateFileTest, LinksAndFifosAndFoldersAreRefused) {
  const std::string target = folder.file("target");
  std::ofstream(target) << "";
  std::filesystem::create_symlink(target, folder.file("link"));
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder.file("folder"));
  EXPECT_THAT(make_private(folder.file("link"), "").error().message, HasSubstr("is a symbolic link"));
  EXPECT_THAT(make_private(folder.file("fifo"), "").error().message, HasSubstr("is not a regular file"));
  EXPECT_THAT(make_private(folder.file("folder"), "").error().message, HasSubstr("is not a regular file"));
  EXPECT_EQ(mode_of(target), 0644U) << "nothing is done to what a link names";
}

TEST_F(PrivateFileTest, AStoreIsNotPutThroughALinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  std::filesystem::create_directory(folder.file("shared"));
  std::filesystem::create_directory(folder.file("victim"));
  ASSERT_EQ(::chmod(folder.file("shared").c_str(), 01777), 0);
  std::filesystem::create_directory_symlink(folder.file("victim"), folder.file("shared/vramtrack"));
  ASSERT_EQ(::lchown(folder.file("shared/vramtrack").c_str(), 65534, 65534), 0);
  const Status made = make_folder_of(folder.file("shared/vramtrack/state/vramtrack.db"));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("is a symbolic link of another user"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("victim")));
}

}  // namespace
}  // namespace vramtrack
