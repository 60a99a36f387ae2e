// Compares the keepers of two blocks (FoundKeeper): how far away their variable is, and whether it is the same.
// "tuple, 2 items within losses (list, 406 items), local of train() at train.py:16": the innermost place first, then
// what it lies in, each after " within ", ", attribute of ", ", attributes of ", ") of " or " that begins at ". Names
// that a program makes as it runs are one place: "Store.t* (406 items), attributes of store". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack::trace {

/// Places between a block and the variable: 0 for what the variable itself refers to or contains.
std::size_t places_between(std::string_view keeper);

/// Whether two keepers lie in one container with at least `items` items: what the one keeps of a step, the other keeps
/// with it. Numbers of items are those of one look or of two.
bool have_one_container(std::string_view a, std::string_view b, std::uint64_t items);

/// Whether two keepers are two: the places that both lie in, from the variable on, part before there is a container
/// with at least `items` items. Two keys of one small dictionary are two.
bool are_apart(std::string_view a, std::string_view b, std::uint64_t items);

/// Whether they are two keys of one dictionary, or lie in two: what one line of a program fills in turn.
bool are_two_keys(std::string_view a, std::string_view b);

/// The words without the numbers of items, which are those of one moment.
std::string without_items(std::string_view keeper);

}  // namespace vramtrack::trace
