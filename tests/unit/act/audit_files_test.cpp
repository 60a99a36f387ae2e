// The record of acts across several files: a full one is put aside under a number, and no entry is lost.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "act/audit.hpp"
#include "act/queue_file.hpp"
#include "subjects.hpp"

namespace vramtrack::act {
namespace {

namespace fs = std::filesystem;

AuditEntry entry(int number) {
  AuditEntry e;
  e.event = "say";
  e.climb = "c" + std::to_string(number);
  e.policy = "p";
  e.time = e.written = at(number);
  e.text = std::string(64 * 1024, 'x');
  return e;
}

/// Appends until another file is full; returns the number of the next entry.
int fill(Journal& journal, int number) {
  const std::uint32_t before = full_audits(journal.path());
  while (full_audits(journal.path()) == before) EXPECT_TRUE(journal.append(entry(number++), false));
  return number;
}

std::vector<std::string> climbs_of(const std::string& path) {
  std::vector<std::string> out;
  const auto entries = read_audit(path);
  EXPECT_TRUE(entries);
  for (const AuditEntry& e : *entries) out.push_back(e.climb);
  return out;
}

TEST(AuditFiles, AFullOneIsPutAsideAndReadersGoOnFromIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/acts.jsonl";
  auto journal = Journal::open(path);
  ASSERT_TRUE(journal);
  const int next = fill(*journal, 0);
  EXPECT_GE(fs::file_size(path + ".1"), Journal::kFullBytes);
  EXPECT_LT(fs::file_size(path), 200'000U) << "the entry that found it full is in the new one";
  const std::vector<std::string> climbs = climbs_of(path);
  EXPECT_EQ(climbs.back(), "c" + std::to_string(next - 1));
  // The last 16 MiB, over both files, without a gap.
  ASSERT_GT(climbs.size(), 200U);
  for (std::size_t i = 0; i < climbs.size(); ++i)
    EXPECT_EQ(climbs[i], "c" + std::to_string(next - static_cast<int>(climbs.size() - i)));
}

TEST(AuditFiles, NoFullFileIsEverOverwritten) {
  const TempFolder folder;
  const std::string path = folder.path() + "/acts.jsonl";
  auto journal = Journal::open(path);
  ASSERT_TRUE(journal);
  int next = fill(*journal, 0);
  const auto first_size = fs::file_size(path + ".1");
  next = fill(*journal, next);
  next = fill(*journal, next);
  EXPECT_EQ(full_audits(path), 3U);
  EXPECT_EQ(fs::file_size(path + ".1"), first_size);
}

TEST(AuditFiles, AProgramThatEndedBetweenTheTwoLosesNothing) {
  const TempFolder folder;
  const std::string path = folder.path() + "/acts.jsonl";
  {
    auto journal = Journal::open(path);
    ASSERT_TRUE(journal);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(journal->append(entry(i), true));
  }
  fs::rename(path, path + ".1");  // it was renamed, but the next one was not created
  EXPECT_EQ(climbs_of(path).size(), 5U);
  auto journal = Journal::open(path);
  ASSERT_TRUE(journal);
  ASSERT_TRUE(journal->append(entry(5), true));
  EXPECT_EQ(climbs_of(path), (std::vector<std::string>{"c0", "c1", "c2", "c3", "c4", "c5"}));
}

TEST(AuditFiles, AFileThatIsFullAtTheStartIsPutAsideToo) {
  const TempFolder folder;
  const std::string path = folder.path() + "/acts.jsonl";
  std::ofstream(path) << audit_json(entry(0)) << '\n' << std::string(Journal::kFullBytes, ' ') << '\n';
  auto journal = Journal::open(path);
  ASSERT_TRUE(journal);
  ASSERT_TRUE(journal->append(entry(1), true));
  EXPECT_EQ(full_audits(path), 1U);
  EXPECT_EQ(climbs_of(path).back(), "c1");
}

TEST(AuditFiles, NoneIsMadeThroughALinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  const TempFolder folder;
  fs::create_directory(folder.file("shared"));
  fs::create_directory(folder.file("victim"));
  fs::permissions(folder.file("shared"), fs::perms::all | fs::perms::sticky_bit);
  fs::create_directory_symlink(folder.file("victim"), folder.file("shared/state"));
  ASSERT_EQ(::lchown(folder.file("shared/state").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Journal::open(folder.file("shared/state/acts.jsonl")));
  EXPECT_FALSE(Journal::open(folder.file("shared/state/deep/acts.jsonl")));
  EXPECT_FALSE(QueueFile::open(folder.file("shared/state/outbox.json")));
  EXPECT_TRUE(fs::is_empty(folder.file("victim")));
}

}  // namespace
}  // namespace vramtrack::act
