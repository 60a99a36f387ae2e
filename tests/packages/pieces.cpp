// What can go wrong in a test program, for pieces.py: VRAMTRACK_PIECES names the tests that go wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

bool goes_wrong(std::string_view test) {
  const char* const wrong = std::getenv("VRAMTRACK_PIECES");
  return wrong != nullptr && std::string_view(wrong).find(test) != std::string_view::npos;
}

bool another_has_run = false;

TEST(Pieces, Passes) {
  another_has_run = true;
}

TEST(Pieces, Skips) {
  GTEST_SKIP() << "as it should";
}

TEST(Pieces, Fails) {
  EXPECT_FALSE(goes_wrong("Fails")) << "as told";
}

TEST(Pieces, Crashes) {
  if (goes_wrong("Crashes")) std::abort();
}

TEST(Pieces, Hangs) {
  while (goes_wrong("Hangs")) ::pause();
}

TEST(Pieces, Exits) {
  if (goes_wrong("Exits")) ::_exit(0);
}

TEST(Pieces, IsAlone) {
  EXPECT_FALSE(goes_wrong("IsAlone") && another_has_run) << "another has run before it";
}

TEST(Pieces, DISABLED_IsNotRun) {
  FAIL();
}

class EachPiece : public testing::TestWithParam<int> {};

TEST_P(EachPiece, Passes) {
  EXPECT_FALSE(goes_wrong("EachPiece") && GetParam() == 2);
}

INSTANTIATE_TEST_SUITE_P(All, EachPiece, testing::Range(0, 4));

}  // namespace
