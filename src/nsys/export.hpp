// CUDA memory events of an Nsight Systems report, as `nsys export --type sqlite` writes them: docs/formats/nsys.md.
#pragma once

#include "trace/format.hpp"

namespace vramtrack::nsys {

/// A stream of allocations and frees. Plain files are read where they are; compressed ones, pipes and memory are copied
/// first, at most kMostCopiedBytes.
extern const trace::TraceFormatInfo export_trace_format;
inline constexpr std::uint64_t kMostCopiedBytes = 4ULL << 30U;

}  // namespace vramtrack::nsys
