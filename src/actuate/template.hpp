// Templates: addresses and names built from the labels of an alert.
#pragma once

#include <string>

#include "actuate/webhook.hpp"

namespace vramtrack::actuate {

/// `text` with each {NAME} replaced by that label. Errors: the alert has no such label, or its value is not part of an
/// address ("gn1:9474", "[::1]:9474"), because labels must lead only to a host. Pure.
Result<std::string> filled(const std::string& text, const Labels& labels);

/// The name of a node, built likewise. A list of nodes ("gn[1-4]", "gn1,gn2") or "ALL" is an error, too: a scheduler
/// would take it to mean more than one.
Result<std::string> node_name(const std::string& text, const Labels& labels);

}  // namespace vramtrack::actuate
