// Templates: addresses and names that are made of an alert's labels.
#pragma once

#include <string>

#include "actuate/webhook.hpp"

namespace vramtrack::actuate {

/// `text` with each {NAME} replaced by that label. Errors: the alert has no such label, or it holds what is not part of
/// an address ("gn1:9474", "[::1]:9474"): labels must not lead elsewhere than to a host. Pure.
Result<std::string> filled(const std::string& text, const Labels& labels);

/// The name of a node, made likewise. Errors, too: it is a list of nodes ("gn[1-4]", "gn1,gn2") or "ALL", by which a
/// scheduler would mean more than one.
Result<std::string> node_name(const std::string& text, const Labels& labels);

}  // namespace vramtrack::actuate
