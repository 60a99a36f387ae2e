#include <gtest/gtest.h>

#include "agent/server/sites.hpp"

namespace vramtrack::agent {
namespace {

TEST(ProbedCategories, AreReadFromTheAnswerOfARun) {
  ProbedSites::Categories read;
  ProbedSites::read_categories("4242:weights=123,kv_cache=5 4243:", read);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[4242], (std::vector<std::pair<std::string, double>>{{"weights", 123}, {"kv_cache", 5}}));
  EXPECT_TRUE(read[4243].empty());
}

TEST(ProbedCategories, WhatIsNotOfItsFormIsLeftOut) {
  ProbedSites::Categories read;
  ProbedSites::read_categories("x:weights=1 4242 9999999999:weights=1 7:a\"}=1,weights=-1,=3,unknown=4,,weights 8:",
                               read);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[7], (std::vector<std::pair<std::string, double>>{{"unknown", 4}}));
}

}  // namespace
}  // namespace vramtrack::agent
