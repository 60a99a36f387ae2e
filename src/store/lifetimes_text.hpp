// The sites of a `lifetimes` event as the column `text` of the store keeps them (docs/formats/store.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/lifetimes.hpp"
#include "core/result.hpp"

namespace vramtrack {

/// One line per site: "live blocks error idle;youngest oldest allocated live;...@name", in whole bytes and seconds.
std::string lifetimes_text(const std::vector<SiteLifetimes>& sites);

/// Errors name the line, and what was expected there.
Result<std::vector<SiteLifetimes>> parse_lifetimes(std::string_view text);

}  // namespace vramtrack
