// nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits]
#include "source/log/csv_rows.hpp"

namespace vramtrack {
namespace {

int recognise(std::string_view head) {
  if (const auto plan = find_header(head)) {
    if (plan->pid >= 0) return 0;
    // nvidia-smi's own titles have a dot: memory.used, memory.free.
    return head.substr(0, 4096).find("memory.") != std::string_view::npos ? 90 : 0;
  }
  std::vector<std::string> ignored;
  const bool sized = head.substr(0, 4096).find(" MiB") != std::string_view::npos;
  const auto plan = infer_from_head(head, ignored);
  if (!plan) return sized ? 20 : 0;
  if (plan->pid >= 0) return 0;
  return sized ? 60 : plan->uuid >= 0 || plan->pci >= 0 ? 40 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_csv_parser(head, true);
}

}  // namespace

extern const LogFormatInfo query_gpu_log_format;
const LogFormatInfo query_gpu_log_format{
    "query-gpu", "nvidia-smi --query-gpu=timestamp,index,uuid,memory.used,memory.total --format=csv -l 1", recognise,
    make, each_line_is_a_record};

}  // namespace vramtrack
