#include "explain/codes.hpp"

#include <algorithm>
#include <string>

#include "core/what_runs.hpp"

namespace vramtrack::explain {
namespace {

/// The codes of each interface, as its header defines them. A name is needed only where its parts do not show what it
/// reports (is_code).
constexpr struct {
  std::string_view interface;  ///< what names it on the line; empty: the number is its own
  std::string_view numbers;
  std::string_view name;  ///< without '_' and '-'; may be empty
  Shortage shortage = Shortage::memory;
} kCodes[] = {
    // cuda.h, driver_types.h: CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation. hip_runtime_api.h has the same
    // number.
    {"cuda|curesult|cumem|nvenc|hip error|hiperror|hipmalloc|hiphost", "2|0x2", ""},
    // cublas_api.h: CUBLAS_STATUS_ALLOC_FAILED; cudnn.h up to 8, cusolver_common.h, cufft.h, cusparse.h:
    // ..._ALLOC_FAILED
    {"cublas", "3", ""},
    {"cudnn|cusolver|cufft|cusparse", "2", ""},
    // nvEncodeAPI.h: NV_ENC_ERR_OUT_OF_MEMORY
    {"nvenc|nv_enc|encodesession", "10", ""},
    // CL/cl.h: CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_IMAGE_SIZE,
    // CL_INVALID_BUFFER_SIZE
    {"opencl|cl::|cl_|clenqueue|clcreate|clfinish|clflush|clwait", "-4|-5", ""},
    {"opencl|cl::|cl_|clenqueue|clcreate|clfinish|clflush|clwait", "-6", "outofhostmemory", Shortage::host},
    {"opencl|cl::|cl_|clenqueue|clcreate", "-40", "invalidimagesize", Shortage::piece},
    {"opencl|cl::|cl_|clenqueue|clcreate", "-61", "invalidbuffersize", Shortage::piece},
    // vulkan_core.h: VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, and those of mapping, pools and
    // fragmentation
    {"vulkan|vkresult|vk::|vk_|vkalloc|vkcreate|vkqueue|vkmap|vkbind|vma", "-1", "outofhostmemory", Shortage::host},
    {"vulkan|vkresult|vk::|vk_|vkalloc|vkcreate|vkqueue|vkmap|vkbind|vma", "-2|-5|-12|-1000069000|-1000161000", ""},
    // ze_api.h: ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    {"", "70000002", "outofhostmemory", Shortage::host},
    {"", "70000003", ""},
    // winerror.h: E_OUTOFMEMORY; d3d9.h: D3DERR_OUTOFVIDEOMEMORY; ntstatus.h: STATUS_COMMITMENT_LIMIT,
    // STATUS_GRAPHICS_NO_VIDEO_MEMORY
    {"", "8007000e|2147024882|8876017c|2005532292|c000012d|c01e0100", ""},
    // GL/gl.h: GL_OUT_OF_MEMORY; EGL/egl.h: EGL_BAD_ALLOC
    {"opengl|gl error|glerror|gl_|glget", "0x505|0x0505|1285", ""},
    {"egl", "0x3003|12291", "eglbadalloc"},
    // mfxdefs.h: MFX_ERR_MEMORY_ALLOC
    {"mfx|qsv|vpl", "-4", ""},
    // acl_rt.h of Ascend: ACL_ERROR_RT_MEMORY_ALLOCATION
    {"acl|ascend|npu", "207001", ""},
    // The memory manager of a Jetson
    {"nvmap", "12", ""},
    // errno.h: ENOMEM, which the kernel's drivers print with its sign
    {"errno", "12|-12", "enomem"},
    {"drm|amdgpu|i915|nouveau|fail", "-12", ""},
    // The kernel's end of a container, and a game console's
    {"", "", "oomkill"},
    // The RAPIDS Accelerator for Spark
    {"", "", "retryoom"},
    {"", "", "vmemoom"},
};

std::string joined(std::string_view word) {
  std::string out(word);
  std::erase_if(out, [](char c) { return c == '_' || c == '-'; });
  return out;
}

/// The digits of a number without its sign and prefix.
std::string_view digits_of(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return word.starts_with("0x") ? word.substr(2) : word;
}

/// Whether the line says of the number at word `i` that it is an error: by the word before it, or because a call that
/// allocates or belongs to the interface returns it.
bool is_result(const std::vector<Word>& words, std::size_t i, std::string_view line) {
  if (i == 0) return false;
  const std::string_view last = words[i - 1].text;
  const std::string_view word = words[i].text;
  if (is_any(last, "error|result|code|status|err|errno|returned|ret")) return true;
  if (word == "0x2") return has_any(line, "fail|error");
  if (word[0] != '-') return false;
  // "clEnqueueNDRangeKernel ( -4 )", "vkQueueSubmit: -2"
  if (begins_any(last, "clenqueue|clcreate|clfinish|vkalloc|vkcreate|vkqueue|vkmap|vkbind")) return true;
  for (std::size_t j = i - std::min<std::size_t>(i, 3); j < i; ++j)
    if (words[j].is_allocation) return true;
  return false;
}

}  // namespace

bool is_code(std::string_view word) {
  constexpr std::size_t kShortest = 6;
  const std::string_view digits = digits_of(word);
  const bool is_number = digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (word == "memoryerror") return true;  // Python's, alone on its line
  if (word.size() < kShortest || (!is_number && !has_any(word, "mem|alloc|oom|invalid|out_of|outof"))) return false;
  const std::string name = joined(word);
  for (const std::string_view end : {"failures", "errors", "count", "retries", "handler", "cnt", "disable"})
    if (name.ends_with(end)) return false;
  for (const auto& code : kCodes) {
    if (!code.name.empty() && name.find(code.name) != std::string::npos) return true;
    if (code.interface.empty() && is_any(digits, code.numbers)) return true;
  }
  if (name.ends_with("outofme")) return true;  // a column of Slurm's cuts it off
  const bool is_joined = name.size() < word.size() || word.size() > 9;
  if (!is_joined) return false;
  const std::size_t lack = name.find("outof");
  if (lack != std::string::npos && has_any(std::string_view(name).substr(lack, 24), "mem|resource")) return true;
  if (has_any(name, "badalloc|nomem|insufficientmem|memoryexhaust")) return true;
  return has_any(name, "fail|error") && (has_any(name, "alloc") || (has_any(name, "mem") && has_any(name, "map")));
}

std::optional<Code> code_at(const std::vector<Word>& words, std::size_t i, std::string_view line) {
  const Word& word = words[i];
  if (word.text == "memoryerror" && words.size() > 1) return std::nullopt;
  const bool is_name = word.is_code;
  const std::string name = is_name ? joined(word.text) : "";
  const std::string_view digits = digits_of(word.text);
  for (const auto& code : kCodes) {
    const bool is_named = is_name && !code.name.empty() && name.find(code.name) != std::string::npos;
    const bool is_numbered = code.interface.empty() ? is_any(digits, code.numbers)
                                                    : is_any(word.text, code.numbers) &&
                                                          has_any(line, code.interface) && is_result(words, i, line);
    if (is_named) return Code{word.begin, word.end, code.shortage};
    if (!is_numbered) continue;
    if (is_name) return Code{word.begin, word.end, code.shortage};
    // With the words that name it: "CUDA error 2".
    std::size_t from = i - std::min<std::size_t>(i, 1);
    while (from > 0 && !words[from - 1].ends_clause && !begins_any(words[from].text, "fail|error|cuda|curesult"))
      --from;
    return Code{words[from].begin, word.end, code.shortage};
  }
  return is_name ? std::optional(Code{word.begin, word.end}) : std::nullopt;
}

std::optional<Code> code_in(std::string_view line) {
  auto words = words_of(line);
  for (Word& word : words) word.is_code = is_code(word.text);
  std::optional<Code> out;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (const auto code = code_at(words, i, line); code && (!out || out->shortage == Shortage::memory)) out = code;
  return out;
}

std::string_view other_code_in(std::string_view line) {
  constexpr std::size_t kShortest = 12;
  constexpr std::string_view kPrefixes =
      "cudaerror|hiperror|cuda_error_|hip_error_|vk_error_|ze_result_error_|ur_result_error_|cl_invalid_|"
      "kiogpucommandbuffercallbackerror|mtlcommandbuffererror";
  const std::string words = lower(line);
  std::string_view out;
  std::string_view last;
  for (const Word& word : words_of(words)) {
    // "vkAllocateMemory failed -10": VK_ERROR_TOO_MANY_OBJECTS.
    if (begins_any(last, "fail|error|returned|vkalloc") && word.text.size() > 1 && word.text[0] == '-' &&
        is_all_digits(word.text.substr(1)) && has_any(words, "vkalloc") &&
        std::none_of(std::begin(kCodes), std::end(kCodes), [&](const auto& code) {
          return has_any("vkalloc", code.interface) && is_any(word.text, code.numbers);
        }))
      out = line.substr(word.begin, word.end - word.begin);
    last = word.text;
    if (is_code(word.text)) return {};
    if (out.empty() && word.text.size() > kShortest && begins_any(word.text, kPrefixes) && word.text != "cudaerror_t")
      out = line.substr(word.begin, word.end - word.begin);
  }
  return out;
}

}  // namespace vramtrack::explain
