#include "trace/keepers.hpp"

#include <gtest/gtest.h>

namespace vramtrack::trace {
namespace {

constexpr std::string_view kLosses = "losses (list, 406 items), local of train() at train.py:16";
constexpr std::string_view kFewerLosses = "losses (list, 398 items), local of train() at train.py:16";
constexpr std::string_view kInLosses =
    "tuple, 2 items within losses (list, 406 items), local of train() at train.py:16";
constexpr std::string_view kOutputs = "outputs (list, 406 items), local of train() at train.py:17";
constexpr std::string_view kSessions =
    "['x'] (list, 4 items) of Server.sessions (dict, 81 items), attribute of server in a.py module globals";
constexpr std::string_view kFirst = "['1'] (dict, 2 items) of cache (dict, 90 items) in a.py module globals";
constexpr std::string_view kSeventh = "['7'] (dict, 2 items) of cache (dict, 90 items) in a.py module globals";

TEST(Keepers, TheVariableIsSoManyPlacesAway) {
  EXPECT_EQ(referrers_between(kLosses), 0U);
  EXPECT_EQ(referrers_between(kInLosses), 1U);
  EXPECT_EQ(referrers_between(kSessions), 2U);
}

TEST(Keepers, OneContainerWithItemsEnough) {
  constexpr std::string_view kMany = "losses (list, 1,406 items), local of train() at train.py:16";
  constexpr std::string_view kWithin =
      "T.saved (tuple, 1 items), attribute of an object of m.T within losses (list, 1,410 items), local of train() at "
      "train.py:16";
  EXPECT_TRUE(have_one_container(kMany, kWithin, 1000));
  EXPECT_TRUE(have_one_container(kWithin, kMany, 1406));
  EXPECT_FALSE(have_one_container(kMany, kWithin, 1407)) << "it is too small for both";
  EXPECT_FALSE(have_one_container(kMany, kOutputs, 6));
  EXPECT_TRUE(have_one_container(kFirst, kSeventh, 50));
}

TEST(Keepers, NamesThatAProgramMakesAreOneContainer) {
  constexpr std::string_view kBefore = "Store.t* (99 items), attributes of store, local of train() at train.py:16";
  constexpr std::string_view kOther = "Store.u* (99 items), attributes of store, local of train() at train.py:16";
  constexpr std::string_view kAfter =
      "Run.loss, attribute of Store.t* (406 items), attributes of store, local of train() at train.py:16";
  EXPECT_EQ(referrers_between(kAfter), 2U);
  EXPECT_TRUE(have_one_container(kBefore, kAfter, 50));
  EXPECT_FALSE(are_apart(kBefore, kAfter, 50));
  EXPECT_TRUE(are_apart(kBefore, kOther, 50));
}

TEST(Keepers, WhatTheyLieInMayBeOneObjectWithTwoContainers) {
  constexpr std::string_view kOne = "Trainer.losses (list, 90 items), attribute of trainer in a.py module globals";
  constexpr std::string_view kOther = "Trainer.inputs (list, 90 items), attribute of trainer in a.py module globals";
  constexpr std::string_view kWeight = "weight in a.py module globals";
  EXPECT_FALSE(have_one_container(kOne, kOther, 6));
  EXPECT_FALSE(have_one_container(kWeight, kWeight, 1)) << "no container";
}

TEST(Keepers, TwoVariablesAreApartAndTheWaysIntoOneAreNot) {
  EXPECT_TRUE(are_apart(kLosses, kOutputs, 100));
  EXPECT_FALSE(are_apart(kLosses, kFewerLosses, 100));
  EXPECT_FALSE(are_apart(kLosses, kInLosses, 100));
  EXPECT_FALSE(are_apart(kFirst, kSeventh, 50));
  constexpr std::string_view kChain = "a chain of m.T (400 items) that begins at last, local of f() at a.py:1";
  EXPECT_FALSE(are_apart(kChain, "last, local of f() at a.py:1", 100));
  constexpr std::string_view kX = "['x'] (list, 90 items) of log (dict, 2 items) in a.py module globals";
  constexpr std::string_view kY = "['y'] (list, 90 items) of log (dict, 2 items) in a.py module globals";
  constexpr std::string_view kWithoutItems = "['x'] (list,  items) of log (dict,  items) in a.py module globals";
  EXPECT_TRUE(are_apart(kX, kY, 45));
  EXPECT_TRUE(are_two_keys(kX, kY));
  EXPECT_FALSE(are_two_keys(kLosses, kX));
  EXPECT_EQ(without_items(kX), kWithoutItems);
}

}  // namespace
}  // namespace vramtrack::trace
