#include "explain/platform.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace vramtrack::explain {
namespace {

/// The first with a mark in the message is meant: a message of ROCm may say CUDA as well.
constexpr Platform kPlatforms[] = {
    {Maker::nvidia, {"jetson"}, "tegrastats (host and GPU share one memory)", "", "PYTORCH_ALLOC_CONF"},
    {Maker::apple, {"mps ", "metal", "mlx", "iogpu"}, "Activity Monitor (Window, GPU History)", "", ""},
    {Maker::ascend, {"npu ", "npu:", "ascend"}, "npu-smi info", "ASCEND_RT_VISIBLE_DEVICES", "PYTORCH_NPU_ALLOC_CONF"},
    {Maker::intel,
     {"xpu", "level zero", "ze_result", "sycl", "ur_result", "openvino", "i915"},
     "xpu-smi or vramtrack holders",
     "ONEAPI_DEVICE_SELECTOR",
     ""},
    {Maker::amd,
     {"hip ", "hip_", "hiperror", "hipmalloc", "rocm", "amdgpu", "[drm", "hipcustom"},
     "rocm-smi or vramtrack holders",
     "HIP_VISIBLE_DEVICES",
     "PYTORCH_ALLOC_CONF"},
    {Maker::windows,
     {"dml", "d3d", "directx", "dxgi", "directml", "0x8007000e", "ddraw", "dderr"},
     "the Task Manager (Details, column Dedicated GPU memory)",
     "",
     ""},
    {Maker::nvidia,
     {"cuda", "nvidia", "nccl", "cublas", "cudnn", "cumem", "nvml", "nvrm", "nvenc"},
     "nvidia-smi or vramtrack holders",
     "CUDA_VISIBLE_DEVICES",
     "PYTORCH_ALLOC_CONF"},
};
constexpr Platform kOther{Maker::other, {}, "vramtrack holders", "", "PYTORCH_ALLOC_CONF"};
/// Programs whose messages name no device, and that run on one maker's devices unless they do.
constexpr std::string_view kOfNvidia[] = {"PyTorch", "TensorRT", "CuPy", "RMM",    "Faiss",  "Numba",
                                          "vLLM",    "SGLang",   "CUDA", "Thrust", "CUDA.jl"};

bool has_mark(const Platform& platform, std::string_view text) {
  return std::any_of(std::begin(platform.marks), std::end(platform.marks), [text](std::string_view mark) {
    return !mark.empty() && text.find(mark) != std::string_view::npos;
  });
}

}  // namespace

const Platform& platform_of(const Failure& failure) {
  std::string text = failure.before + failure.text + ' ' + std::string(failure.wording->program) + ' ' +
                     std::string(failure.wording->versions) + ' ' + std::string(failure.runs_in);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Platform& platform : kPlatforms)
    if (has_mark(platform, text)) return platform;
  const std::string_view program = failure.wording->program;
  if (std::any_of(std::begin(kOfNvidia), std::end(kOfNvidia),
                  [program](auto each) { return program.starts_with(each); }))
    return kPlatforms[std::size(kPlatforms) - 1];
  return kOther;
}

}  // namespace vramtrack::explain
