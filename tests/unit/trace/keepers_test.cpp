#include "trace/keepers.hpp"

#include <gtest/gtest.h>

namespace vramtrack::trace {
namespace {

TEST(Keepers, TheVariableIsSoManyPlacesAway) {
  EXPECT_EQ(places_between("losses (list, 406 items), local of train() at train.py:16"), 0U);
  EXPECT_EQ(places_between("tuple, 2 items within losses (list, 406 items), local of train() at train.py:16"), 1U);
  EXPECT_EQ(
      places_between("['x'] (list, 4 items) of Server.sessions (dict, 81 items), attribute of server in a.py module "
                     "globals"),
      2U);
}

TEST(Keepers, OneContainerWithItemsEnough) {
  constexpr std::string_view kLosses = "losses (list, 1,406 items), local of train() at train.py:16";
  constexpr std::string_view kWithin =
      "T.saved (tuple, 1 items), attribute of an object of m.T within losses (list, 1,410 items), local of train() at "
      "train.py:16";
  EXPECT_TRUE(have_one_container(kLosses, kWithin, 1000));
  EXPECT_TRUE(have_one_container(kWithin, kLosses, 1406));
  EXPECT_FALSE(have_one_container(kLosses, kWithin, 1407)) << "it is too small for both";
  EXPECT_FALSE(have_one_container(kLosses, "inputs (list, 1,406 items), local of train() at train.py:15", 6));
  EXPECT_TRUE(have_one_container("['1'] (dict, 2 items) of cache (dict, 90 items) in a.py module globals",
                                 "['7'] (dict, 2 items) of cache (dict, 90 items) in a.py module globals", 50));
}

TEST(Keepers, NamesThatAProgramMakesAreOneContainer) {
  constexpr std::string_view kBefore = "Store.t* (99 items), attributes of store, local of train() at train.py:16";
  constexpr std::string_view kAfter =
      "Run.loss, attribute of Store.t* (406 items), attributes of store, local of train() at train.py:16";
  EXPECT_EQ(places_between(kAfter), 2U);
  EXPECT_TRUE(have_one_container(kBefore, kAfter, 50));
  EXPECT_FALSE(are_apart(kBefore, kAfter, 50));
  EXPECT_TRUE(are_apart(kBefore, "Store.u* (99 items), attributes of store, local of train() at train.py:16", 50));
}

TEST(Keepers, WhatTheyLieInMayBeOneObjectWithTwoContainers) {
  EXPECT_FALSE(have_one_container("Trainer.losses (list, 90 items), attribute of trainer in a.py module globals",
                                  "Trainer.inputs (list, 90 items), attribute of trainer in a.py module globals", 6));
  EXPECT_FALSE(have_one_container("weight in a.py module globals", "weight in a.py module globals", 1))
      << "no container";
}

TEST(Keepers, TwoVariablesAreApartAndTheWaysIntoOneAreNot) {
  constexpr std::string_view kLosses = "losses (list, 406 items), local of train() at train.py:16";
  EXPECT_TRUE(are_apart(kLosses, "outputs (list, 406 items), local of train() at train.py:17", 100));
  EXPECT_FALSE(are_apart(kLosses, "losses (list, 398 items), local of train() at train.py:16", 100));
  EXPECT_FALSE(
      are_apart(kLosses, "tuple, 1 items within losses (list, 406 items), local of train() at train.py:16", 100));
  EXPECT_FALSE(are_apart("['1'] (list, 9 items) of cache (dict, 90 items) in a.py module globals",
                         "['7'] (list, 9 items) of cache (dict, 90 items) in a.py module globals", 50));
  EXPECT_FALSE(are_apart("a chain of m.T (400 items) that begins at last, local of f() at a.py:1",
                         "last, local of f() at a.py:1", 100));
  constexpr std::string_view kX = "['x'] (list, 90 items) of log (dict, 2 items) in a.py module globals";
  constexpr std::string_view kY = "['y'] (list, 90 items) of log (dict, 2 items) in a.py module globals";
  EXPECT_TRUE(are_apart(kX, kY, 45));
  EXPECT_TRUE(are_two_keys(kX, kY));
  EXPECT_FALSE(are_two_keys(kLosses, kX));
  EXPECT_EQ(without_items(kX), "['x'] (list,  items) of log (dict,  items) in a.py module globals");
}

}  // namespace
}  // namespace vramtrack::trace
