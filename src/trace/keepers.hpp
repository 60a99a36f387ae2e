// Compares the keepers of two blocks (FoundKeeper): how far away their variable is, and whether it is the same.
// "tuple, 2 items within losses (list, 406 items), local of train() at train.py:16": the innermost referrer first,
// then those that contain it, each after " within ", ", attribute of ", ", attributes of ", ") of " or " that begins at
// ". Names that a program creates at run time are one referrer: "Store.t* (406 items), attributes of store". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack::trace {

/// Number of referrers between a block and the variable: 0 if the variable itself refers to it or contains it.
std::size_t referrers_between(std::string_view keeper);

/// Whether two keepers are in one container with at least `items` items, so that whatever one keeps of a step, the
/// other keeps, too. The numbers of items may come from one look or from two.
bool have_one_container(std::string_view a, std::string_view b, std::uint64_t items);

/// Whether two keepers are separate: the paths to them, from the variable on, diverge before a container with at least
/// `items` items. Two keys of one small dictionary are separate.
bool are_apart(std::string_view a, std::string_view b, std::uint64_t items);

/// Whether they are, or are within, two keys of one dictionary, which one line of a program fills in turn.
bool are_two_keys(std::string_view a, std::string_view b);

/// The text without the numbers of items, which hold only for one moment.
std::string without_items(std::string_view keeper);

}  // namespace vramtrack::trace
