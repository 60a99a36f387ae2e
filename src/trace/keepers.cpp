#include "trace/keepers.hpp"

#include <algorithm>
#include <vector>

namespace vramtrack::trace {
namespace {

constexpr std::string_view kInto[] = {" within ", ", attribute of ", ", attributes of ", ") of ", " that begins at "};

/// The referrers, outermost first; each extends to the end of the text.
std::vector<std::string_view> referrers_of(std::string_view keeper) {
  std::vector<std::string_view> referrers = {keeper};
  for (std::size_t at = 0; at < keeper.size(); ++at)
    for (const std::string_view into : kInto)
      if (keeper.substr(at).starts_with(into)) referrers.push_back(keeper.substr(at + into.size()));
  std::reverse(referrers.begin(), referrers.end());
  return referrers;
}

/// The referrer alone, without those that contain it.
std::string_view first_of(std::string_view referrer) {
  std::size_t end = referrer.size();
  for (const std::string_view into : kInto) end = std::min(end, referrer.find(into));
  return referrer.substr(0, end);
}

/// The number of items, such as 1406 for "losses (list, 1,406 items)"; 0 if it is not a container.
std::uint64_t items_of(std::string_view referrer) {
  const std::size_t end = referrer.find(" items");
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && ((referrer[begin - 1] >= '0' && referrer[begin - 1] <= '9') || referrer[begin - 1] == ','))
    --begin;
  std::uint64_t items = 0;
  for (const char c : referrer.substr(begin, end - begin))
    if (c != ',') items = items * 10 + static_cast<std::uint64_t>(c - '0');
  return items;
}

/// Whether the texts are equal except for the numbers of items.
bool is_one_referrer(std::string_view a, std::string_view b) {
  return without_items(a) == without_items(b);
}

}  // namespace

std::string without_items(std::string_view keeper) {
  std::string out;
  for (std::size_t at = 0; at < keeper.size(); ++at) {
    if (keeper.substr(at).starts_with(" items"))
      while (!out.empty() && ((out.back() >= '0' && out.back() <= '9') || out.back() == ',')) out.pop_back();
    out += keeper[at];
  }
  return out;
}

std::size_t referrers_between(std::string_view keeper) {
  return referrers_of(keeper).size() - 1;
}

bool have_one_container(std::string_view a, std::string_view b, std::uint64_t items) {
  const auto of_a = referrers_of(a), of_b = referrers_of(b);
  for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
    const std::string_view in_a = first_of(of_a[i]), in_b = first_of(of_b[i]);
    if (!is_one_referrer(in_a, in_b)) return false;
    if (std::min(items_of(in_a), items_of(in_b)) >= items) return true;
  }
  return false;
}

bool are_apart(std::string_view a, std::string_view b, std::uint64_t items) {
  const auto of_a = referrers_of(a), of_b = referrers_of(b);
  for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
    const std::string_view in_a = first_of(of_a[i]), in_b = first_of(of_b[i]);
    if (!is_one_referrer(in_a, in_b)) return true;
    if (std::min(items_of(in_a), items_of(in_b)) >= items) return false;
  }
  return false;
}

bool are_two_keys(std::string_view a, std::string_view b) {
  const auto of_a = referrers_of(a), of_b = referrers_of(b);
  for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
    if (!is_one_referrer(first_of(of_a[i]), first_of(of_b[i])))
      return of_a[i].starts_with('[') && of_b[i].starts_with('[');
  return false;
}

}  // namespace vramtrack::trace
