#include "store/lifetimes_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace vramtrack {
namespace {

// A store may come from an untrusted source.
constexpr std::size_t kMostSites = 64;
constexpr std::size_t kMostAges = 64;
/// Larger whole numbers are not exact in a double.
constexpr double kLargest = 9007199254740992;

std::uint64_t whole(double figure) {
  return static_cast<std::uint64_t>(std::llround(std::clamp(figure, 0.0, kLargest)));
}

/// The figures of one part, which are separated by single spaces.
template <std::size_t Count>
bool figures(std::string_view part, std::array<double, Count>& into) {
  const char* at = part.data();
  const char* const end = part.data() + part.size();
  for (std::size_t i = 0; i < Count; ++i) {
    if (i > 0 && (at == end || *at++ != ' ')) return false;
    std::uint64_t figure = 0;
    const auto [next, error] = std::from_chars(at, end, figure);
    if (error != std::errc{} || static_cast<double>(figure) > kLargest) return false;
    into[i] = static_cast<double>(figure);
    at = next;
  }
  return at == end;
}

/// The text up to the next `mark`, which is removed with it; all of it if there is none.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

}  // namespace

std::string lifetimes_text(const std::vector<SiteLifetimes>& sites) {
  std::string out;
  for (const SiteLifetimes& site : sites) {
    if (!out.empty()) out += '\n';
    out += fmt::format("{} {} {} {};", whole(site.live_bytes), whole(site.live_blocks), whole(site.error_bytes),
                       whole(site.idle_s));
    for (const AgedBytes& age : site.ages)
      out += fmt::format("{} {} {} {};", whole(age.youngest_s), whole(age.oldest_s), whole(age.allocated_bytes),
                         whole(age.live_bytes));
    // The name comes last: it is the only free text.
    const std::size_t begin = out.size();
    out += '@';
    out += site.site;
    std::replace_if(
        out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), [](char c) { return c == '\n'; }, ' ');
  }
  return out;
}

Result<std::vector<SiteLifetimes>> parse_lifetimes(std::string_view text) {
  std::vector<SiteLifetimes> sites;
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::string_view rest = take(text, '\n');
    const auto wrong = [&](std::string_view expected) {
      return fail(fmt::format("lifetimes, line {}: expected {}", line, expected));
    };
    if (sites.size() == kMostSites) return wrong(fmt::format("no more than {} lines", kMostSites));
    SiteLifetimes site;
    std::array<double, 4> head{};
    if (!figures(take(rest, ';'), head)) return wrong("'live blocks error idle;' in whole bytes and seconds");
    site.live_bytes = head[0];
    site.live_blocks = head[1];
    site.error_bytes = head[2];
    site.idle_s = head[3];
    while (!rest.starts_with('@')) {
      std::array<double, 4> age{};
      if (site.ages.size() == kMostAges || !figures(take(rest, ';'), age))
        return wrong("'youngest oldest allocated live;' in whole seconds and bytes, or '@' and the site's name");
      site.ages.push_back({age[0], age[1], age[2], age[3]});
    }
    site.site = rest.substr(1);
    sites.push_back(std::move(site));
  }
  return sites;
}

}  // namespace vramtrack
