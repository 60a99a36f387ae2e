#include "explain/platform.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/what_runs.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::string_view kTaskManager = "the Task Manager (Details, column Dedicated GPU memory)";

/// The first with a mark in the message counts: a ROCm message may mention CUDA as well.
constexpr Platform kPlatforms[] = {
    {Maker::nvidia, "jetson", "tegrastats (host and GPU share one memory)", "", "PYTORCH_ALLOC_CONF"},
    {Maker::apple, "mps |metal|mlx|iogpu", "Activity Monitor (Window, GPU History)", "", "", false},
    {Maker::ascend, "npu |npu:|ascend", "npu-smi info", "ASCEND_RT_VISIBLE_DEVICES", "PYTORCH_NPU_ALLOC_CONF", false},
    {Maker::habana, "hpu|habana|pt_devmem", "hl-smi", "HABANA_VISIBLE_MODULES", "", false},
    {Maker::sophgo, "bmlib|bm_alloc|sophon", "bm-smi", "", "", false},
    {Maker::intel, "xpu|level zero|ze_result|sycl|ur_result|openvino|i915", "xpu-smi or vramtrack holders",
     "ONEAPI_DEVICE_SELECTOR", ""},
    {Maker::amd, "hip |hip_|hiperror|hipmalloc|rocm|amdgpu|[drm|hipcustom", "rocm-smi or vramtrack holders",
     "HIP_VISIBLE_DEVICES", "PYTORCH_ALLOC_CONF"},
    {Maker::windows, "dml|d3d|directx|dxgi|directml|0x8007000e|ddraw|dderr", kTaskManager, "", "", false},
    {Maker::nvidia, "cuda|nvidia|nccl|cublas|cudnn|cumem|nvml|nvrm|nvenc", "nvidia-smi or vramtrack holders",
     "CUDA_VISIBLE_DEVICES", "PYTORCH_ALLOC_CONF"},
};
/// For a system, if the message names no maker but NVIDIA.
constexpr Platform kNvidiaOnWindows{Maker::nvidia,          "", "nvidia-smi or the Task Manager",
                                    "CUDA_VISIBLE_DEVICES", "", false};
constexpr Platform kWindows{Maker::windows, "", kTaskManager, "", "", false};
constexpr Platform kApple{Maker::apple, "", "Activity Monitor (Window, GPU History)", "", "", false};
constexpr Platform kBrowser{Maker::browser, "", "the browser's task manager (Shift+Esc, column GPU memory)", "", "",
                            false};
constexpr Platform kPhone{
    Maker::phone, "", "the profiler of the phone (Xcode's Instruments, adb shell dumpsys meminfo)", "", "", false};
constexpr Platform kOther{Maker::other, "", "vramtrack holders", "", "PYTORCH_ALLOC_CONF"};
/// Programs whose messages name no device, and that run on one maker's devices unless they say otherwise.
constexpr std::string_view kOfNvidia = "PyTorch|TensorRT|CuPy|RMM|Faiss|Numba|vLLM|SGLang|CUDA|Thrust|CUDA.jl";

/// Whether `text` contains one of the '|'-separated names as a word: "ipad" does not match "ipadapter", "iphone"
/// matches "iphone12,1". Both in lower case.
bool names_any(std::string_view text, std::string_view names) {
  return any_part(names, [text](std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || !is_ascii_letter(name.front()) || !is_ascii_letter(text[at - 1]);
      if (begins && (end == text.size() || !is_ascii_letter(name.back()) || !is_ascii_letter(text[end]))) return true;
    }
    return false;
  });
}

}  // namespace

System system_of(std::string_view raw) {
  const std::string text = lower(raw);
  if (names_any(text, "webgl|chrome/|firefox/|user agent|user-agent|.wasm")) return System::browser;
  if (names_any(text, "android|iphone|ipad|com.apple.coreml|mach_vm_map")) return System::phone;
  const bool is_unix = names_any(text, "/home/|/usr/|/opt/|wsl|linux|ubuntu");
  if (!is_unix &&
      names_any(text,
                "windows 10|windows 11|windows 7|windows 8|windows version|windows server|win32|win64|win10|"
                "win11|\\c10\\|.exe |.exe`|.exe:|.exe'|c:\\|d:\\|e:\\"))
    return System::windows;
  if (!is_unix && names_any(text, "macos|macosx|mac os|darwin|apple gpu|apple m1|apple m2|apple m3|apple m4"))
    return System::apple;
  return System::any;
}

const Platform& platform_of(const Failure& failure) {
  const std::string text = lower(failure.before + failure.text + ' ' + std::string(failure.wording->program) + ' ' +
                                 std::string(failure.wording->versions) + ' ' + std::string(failure.runs_in));
  const Platform* found = &kOther;
  if (begins_any(failure.wording->program, kOfNvidia)) found = &kPlatforms[std::size(kPlatforms) - 1];
  for (auto each = std::rbegin(kPlatforms); each != std::rend(kPlatforms); ++each)
    if (has_any(text, each->marks)) found = &*each;
  if (!found->has_vramtrack) return *found;
  switch (failure.system) {
    case System::windows:
      return found->maker == Maker::nvidia ? kNvidiaOnWindows : kWindows;
    case System::apple:
      return kApple;
    case System::browser:
      return kBrowser;
    case System::phone:
      return kPhone;
    case System::any:
      break;
  }
  return *found;
}

}  // namespace vramtrack::explain
