// The findings of a checkup, kind by kind. For checkup.cpp and the tests; pure.
#pragma once

#include <string>

#include "health/checkup.hpp"

namespace vramtrack {

/// Whether NVIDIA's driver or one of its GPUs is present.
bool has_nvidia(const HealthFacts& facts);

/// The driver no longer answers for the GPU.
HealthFinding lost_finding(const DeviceInfo& device, const std::string& reason);

/// The readings of `device` on which a problem of this kind (report/health) is based.
std::string problem_evidence(std::string_view kind, const HealthFacts::Device& device);

/// What the driver wrote to the kernel log. A GPU off the bus that also has an XID 79 there is reported once.
void add_log_finding(const DriverEvent& event, const HealthFacts& facts, HealthCheckup& out);

/// Memory in use beyond the driver's share that no process holds, and processes that are still present; the services of
/// the driver and of a display may stay.
void check_empty(const Ledger& ledger, HealthCheckup& out);

/// The readings of a GPU that are evidence against a fault of its hardware, and those that leave it open.
void list_exclusions(const HealthFacts::Device& device, DeviceCheckup& out);

}  // namespace vramtrack
