// Announce: how the parts of the engine that keep alerts of their own report a change of one.
#pragma once

#include <functional>

#include "core/verdict.hpp"

namespace vramtrack {

/// Called when an alert was raised, escalated or cleared, and has changed already.
using Announce = std::function<void(Alert&, AlertNews)>;

}  // namespace vramtrack
