#include "trace/keepers.hpp"

#include <algorithm>
#include <vector>

namespace vramtrack::trace {
namespace {

constexpr std::string_view kInto[] = {" within ", ", attribute of ", ") of "};

/// The outermost place first; each as far as the text goes.
std::vector<std::string_view> places_of(std::string_view keeper) {
  std::vector<std::string_view> places = {keeper};
  for (std::size_t at = 0; at < keeper.size(); ++at)
    for (const std::string_view into : kInto)
      if (keeper.substr(at).starts_with(into)) places.push_back(keeper.substr(at + into.size()));
  std::reverse(places.begin(), places.end());
  return places;
}

/// The place alone, without those that it lies in.
std::string_view first_of(std::string_view place) {
  std::size_t end = place.size();
  for (const std::string_view into : kInto) end = std::min(end, place.find(into));
  return place.substr(0, end);
}

/// "losses (list, 1,406 items)": 1406; 0: it is no container.
std::uint64_t items_of(std::string_view place) {
  const std::size_t end = place.find(" items");
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && ((place[begin - 1] >= '0' && place[begin - 1] <= '9') || place[begin - 1] == ',')) --begin;
  std::uint64_t items = 0;
  for (const char c : place.substr(begin, end - begin))
    if (c != ',') items = items * 10 + static_cast<std::uint64_t>(c - '0');
  return items;
}

/// The same text but for the numbers of items.
bool is_one_place(std::string_view a, std::string_view b) {
  const std::size_t in_a = a.find(" items"), in_b = b.find(" items");
  if (in_a == std::string_view::npos || in_b == std::string_view::npos) return a == b;
  const auto before = [](std::string_view text, std::size_t end) {
    while (end > 0 && ((text[end - 1] >= '0' && text[end - 1] <= '9') || text[end - 1] == ',')) --end;
    return text.substr(0, end);
  };
  return before(a, in_a) == before(b, in_b) && a.substr(in_a) == b.substr(in_b);
}

}  // namespace

std::size_t places_between(std::string_view keeper) {
  return places_of(keeper).size() - 1;
}

bool have_one_container(std::string_view a, std::string_view b, std::uint64_t items) {
  const auto of_a = places_of(a), of_b = places_of(b);
  for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
    const std::string_view place_a = first_of(of_a[i]), place_b = first_of(of_b[i]);
    if (!is_one_place(place_a, place_b)) return false;
    if (std::min(items_of(place_a), items_of(place_b)) >= items) return true;
  }
  return false;
}

}  // namespace vramtrack::trace
