// Percent-encoded text in URLs.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// `text` as a part of a URL's path or query: all bytes except RFC 3986's unreserved ones become %XX. Pure.
std::string percent_encoded(std::string_view text);

/// "%20" becomes a space; anything but a valid escape stays. Pure.
std::string percent_decoded(std::string_view text);

}  // namespace vramtrack
