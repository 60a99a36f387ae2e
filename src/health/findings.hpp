// The findings of a checkup, kind by kind. For checkup.cpp and the tests; pure.
#pragma once

#include <string>

#include "health/checkup.hpp"

namespace vramtrack {

/// Whether NVIDIA's driver or one of its GPUs is here.
bool has_nvidia(const HealthFacts& facts);

/// The driver no longer answers for the GPU.
HealthFinding lost_finding(const DeviceInfo& device, const std::string& reason);

/// The readings of `device` that a problem of this kind (report/health) follows from.
std::string problem_evidence(std::string_view kind, const HealthFacts::Device& device);

/// What the driver wrote to the kernel log. A GPU off the bus whose XID 79 is there, too, is reported once.
void add_log_finding(const DriverEvent& event, const HealthFacts& facts, HealthCheckup& out);

/// Memory in use beyond the driver's share that no process holds, and processes that are still there; the services of
/// the driver and of a display may stay.
void check_empty(const Ledger& ledger, HealthCheckup& out);

/// What the readings of a GPU say against a fault of its hardware, and what they leave open.
void list_exclusions(const HealthFacts::Device& device, DeviceCheckup& out);

}  // namespace vramtrack
