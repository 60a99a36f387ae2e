// Puts the figures of a failure into words, and answers from its wording if figures are inconclusive.
#pragma once

#include <string>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// "6.09 GiB free in 3 pieces, the largest of 2.00 GiB"
std::string free_words(double free, double piece, const Failure& f);

/// "22.00 GiB of the device's 22.49 GiB were in use according to the table of nvidia-smi in line 3: process 7 (21.97
/// GiB)". REQUIRES such a table.
std::string table_use_words(const Failure& f);

/// Sets the cause of a failure to get host memory, and its description. Whether a driver returned its code for host
/// memory, without a figure.
bool is_host_code(const Failure& f);
void diagnose_host_code(Failure& f);
void diagnose_host(Failure& f);
/// The same for a resource that is neither the host's memory nor a device's.
void diagnose_resource(Failure& f);

/// The figures as a sum: "24.00 GiB = 20.00 GiB allocated + 1.00 GiB cached + 2.50 GiB others + 512.0 MiB free; 2.00
/// GiB asked for: 1.50 GiB short"; empty: too few figures.
std::string balance_words(const Failure& f);

/// The explanation if the figures are inconclusive and the wording decides. REQUIRES the cause.
std::string wording_words(const Failure& f);

/// Whether it requested a driver object, which has no meaningful size.
bool is_handle(const Failure& f);

}  // namespace vramtrack::explain
