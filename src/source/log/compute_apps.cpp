// nvidia-smi --query-compute-apps=... --format=csv[,noheader][,nounits]
#include "source/log/csv_rows.hpp"

namespace vramtrack {
namespace {

int recognise(std::string_view head) {
  if (const auto plan = find_header(head)) {
    if (plan->pid < 0) return 0;
    const std::string_view start = head.substr(0, 4096);
    return start.find("used_gpu_memory") != std::string_view::npos ||
                   start.find("used_memory") != std::string_view::npos
               ? 92
               : 0;
  }
  std::vector<std::string> ignored;
  const auto plan = infer_from_head(head, ignored);
  return plan && plan->pid >= 0 ? 61 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_csv_parser(head, true);
}

}  // namespace

extern const LogFormatInfo compute_apps_log_format;
const LogFormatInfo compute_apps_log_format{
    "compute-apps",
    "nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,process_name,used_gpu_memory --format=csv -l 1", recognise,
    make, each_line_is_a_record};

}  // namespace vramtrack
