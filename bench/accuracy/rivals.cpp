// The table of rivals: names, rules in one line, where each was published.
#include "rivals.hpp"

#include <array>

#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::string_view kGpulse = "gpulse documentation, Leak Detection and Configuration";
constexpr std::string_view kGpumemprof = "stormlog (gpumemprof), stormlog/analyzer.py";
constexpr std::string_view kPrometheus = "Prometheus, Querying / Functions: predict_linear; Alerting rules: for";
constexpr std::string_view kDeriv = "Prometheus, Querying / Functions: deriv; thresholds from published alert rules";

constexpr std::array<RivalInfo, 29> kRivals{{
    {"gpulse_linear",
     "least squares over 1 h, each sample: slope >= 1 MiB/s, R2 >= 0.8, confidence >= 0.75 (vramtrack's formula: "
     "gpulse "
     "gives none), >= 20 samples, >= 5 min",
     kGpulse, make_gpulse_linear},
    {"gpulse_linear_low", "gpulse_linear with slope >= 0.01 MiB/s", kGpulse, make_gpulse_linear_low},
    {"gpulse_linear_bare", "gpulse_linear without the confidence", kGpulse, make_gpulse_linear_bare},
    {"gpulse_linear_bare_low", "gpulse_linear without the confidence, slope >= 0.01 MiB/s", kGpulse,
     make_gpulse_linear_bare_low},
    {"gpulse_spike",
     "used > 1.2 x used 30 s (or one sampling period) before, each sample; stands while the window shows it", kGpulse,
     make_gpulse_spike},
    {"gpulse_spike_followed",
     "gpulse_spike, if growth goes on for >= 5 min after it (R2 >= 0.8, confidence >= 0.75): vramtrack's spike",
     kGpulse, make_gpulse_spike_followed},
    {"gpulse_composite", "gpulse_linear or gpulse_spike", kGpulse, make_gpulse_composite},
    {"gpulse_composite_followed", "gpulse_linear or gpulse_spike_followed: vramtrack's composite", kGpulse,
     make_gpulse_composite_followed},
    {"gpumemprof_trend",
     "Memory Growth Trend: line through all samples since the start, slope > 0, |r| > 0.5, p < 0.05, >= 5 samples; "
     "each "
     "sample",
     kGpumemprof, make_gpumemprof_trend},
    {"gpumemprof_leak",
     "memory_leak, samples for calls: mean change > 0, > 10 % of the changes are rises, > 100 MiB in all, >= 3 "
     "changes; "
     "each sample",
     kGpumemprof, make_gpumemprof_leak},
    {"predict_linear", "predict_linear(used[1h], 4h) > capacity; scraped each 15 s, evaluated each 60 s", kPrometheus,
     make_predict_linear},
    {"predict_linear_for10m",
     "predict_linear(used[1h], 4h) > capacity, for: 10m; scraped each 15 s, evaluated each 60 s", kPrometheus,
     make_predict_linear_for10m},
    {"deriv_for10m",
     "deriv(used[1h]) > 1048576 B/s (the constant that recurs in published rules), for: 10m; scraped each 15 s, "
     "evaluated "
     "each "
     "60 s",
     kDeriv, make_deriv_for10m},
    {"deriv_low_for10m",
     "deriv(used[1h]) > 10 MiB/h (what such rules' comments mean), for: 10m; scraped each 15 s, evaluated each 60 s",
     kDeriv, make_deriv_low_for10m},
    {"netdata",
     "free / ((least free of the 10 min ended 50 min ago - free) / 1 h) < 8 h, until >= 48 h; the warning's status, "
     "each "
     "60 s",
     "Netdata, health.d/disks.conf: disk_fill_rate, out_of_disk_space_time", make_netdata},
    {"coroot",
     "line through the last hour (a point a minute, >= 80 % present, split at halvings) > 10 %/h and >= 5 % of "
     "capacity, "
     "slope of the last quarter (>= 15 min) >= 0.3 of it; each 60 s",
     "Coroot, auditor/memory.go: MemoryGrowthPct", make_coroot},
    {"traceml",
     "averages of bands of the last 10000 samples (for steps; >= 50): 90-100 % > 45-55 % > 15-25 %, last - first >= "
     "1 GiB; each sample",
     "TraceML, diagnostics/step_memory: memory creep, confirmed", make_traceml},
    {"static_90", "used > 90 % of capacity; each sample", "public Prometheus rules for GPUs", make_static_90},
    {"node_mixin_warning",
     "used > 60 % and predict_linear(used[6h], 24h) > capacity, for: 1h; scraped each 15 s, evaluated each 60 s",
     "prometheus/node_exporter, docs/node-mixin: NodeFilesystemSpaceFillingUp, warning", make_node_mixin_warning},
    {"node_mixin_critical",
     "used > 80 % and predict_linear(used[6h], 4h) > capacity, for: 1h; scraped each 15 s, evaluated each 60 s",
     "prometheus/node_exporter, docs/node-mixin: NodeFilesystemSpaceFillingUp, critical", make_node_mixin_critical},
    {"kubernetes_mixin",
     "used > 85 % and predict_linear(used[6h], 4d) > capacity, for: 5m; scraped each 15 s, evaluated each 60 s",
     "kubernetes-monitoring/kubernetes-mixin: KubePersistentVolumeFullInFourDays", make_kubernetes_mixin},
    {"gpu_leak_1h", "predict_linear(used[1h], 1h) > capacity, for: 15m; scraped each 15 s, evaluated each 60 s",
     "published rules for dcgm-exporter: GPUMemoryLeak", make_gpu_leak_1h},
    {"gpu_oom_30m", "predict_linear(used[30m], 30m) > capacity; scraped each 15 s, evaluated each 60 s",
     "published queries for dcgm-exporter: \"predict OOM in next 30 min\"", make_gpu_oom_30m},
    {"gpu_leak_deriv",
     "deriv(used[1h]) > 100 MiB/s, for: 2h (as it is written: the metric is in MiB); scraped each 15 s, evaluated each "
     "60 s",
     "published rules for dcgm-exporter: GPUMemoryLeak", make_gpu_leak_deriv},
    {"elastic_90", "highest of the last 5 min > 90 %, three times in a row; each 60 s",
     "elastic/integrations, nvidia_gpu_otel: Framebuffer memory utilization high", make_elastic_90},
    {"gpu_85_for5m", "used > 85 %, for: 5m; each 60 s", "mitchross/k3s-argocd-proxmox, gpu-alerts.yaml: warning",
     make_gpu_85_for5m},
    {"gpu_95_for2m", "used > 95 %, for: 2m; each 60 s", "mitchross/k3s-argocd-proxmox, gpu-alerts.yaml: critical",
     make_gpu_95_for2m},
    {"hami_90_for10m", "used > 90 %, for: 10m; each 60 s", "Project-HAMi, alerting guide: gpuMemoryNearlyExhausted",
     make_hami_90_for10m},
    {"vllm_98_for10m", "used > 98 %, for: 10m; each 60 s", "published runbooks for vLLM: VllmGPUMemoryHigh",
     make_vllm_98_for10m},
}};

}  // namespace

std::span<const RivalInfo> rivals() {
  return kRivals;
}

}  // namespace vramtrack::accuracy
