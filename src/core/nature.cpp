#include "core/nature.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace vramtrack {
namespace {

struct Rule {
  std::string_view text;
  ProcessNature nature;
  std::string_view what;
};

using enum ProcessNature;

/// Anywhere in the command, in lower case.
constexpr std::array kInCommand = {
    Rule{"ipykernel", notebook, "Jupyter kernel"},
    Rule{"colab_kernel_launcher", notebook, "Jupyter kernel"},
    Rule{"xpython", notebook, "Jupyter kernel"},
    Rule{"ijulia", notebook, "Jupyter kernel"},
    Rule{"vllm serve", model_server, "vLLM server"},
    Rule{"vllm.entrypoints", model_server, "vLLM server"},
    Rule{"vllm::", model_server, "vLLM server"},
    Rule{"sglang.launch_server", model_server, "SGLang server"},
    Rule{"sglang::", model_server, "SGLang server"},
    Rule{"tritonserver", model_server, "Triton server"},
    Rule{"triton_python_backend_stub", model_server, "Triton server"},
    Rule{"text-generation-server", model_server, "TGI server"},
    Rule{"text-generation-launcher", model_server, "TGI server"},
    Rule{"text-embeddings-router", model_server, "TEI server"},
    Rule{"ollama", model_server, "Ollama runner"},
    Rule{"llama-server", model_server, "llama.cpp server"},
    Rule{"llama_cpp.server", model_server, "llama.cpp server"},
    Rule{"koboldcpp", model_server, "KoboldCpp server"},
    Rule{"tensorflow_model_server", model_server, "TensorFlow Serving"},
    Rule{"model_service_worker", model_server, "TorchServe worker"},
    Rule{"lmdeploy serve", model_server, "LMDeploy server"},
    Rule{"trtllm-serve", model_server, "TensorRT-LLM server"},
    Rule{"bentoml", model_server, "BentoML server"},
};

/// The process's short name, or the last part of its program's path.
constexpr std::array kPrograms = {
    Rule{"xorg", display, "display server"},
    Rule{"x", display, "display server"},
    Rule{"xwayland", display, "display server"},
    Rule{"gnome-shell", display, "display server"},
    Rule{"kwin_wayland", display, "display server"},
    Rule{"kwin_x11", display, "display server"},
    Rule{"plasmashell", display, "desktop"},
    Rule{"sway", display, "display server"},
    Rule{"weston", display, "display server"},
    Rule{"hyprland", display, "display server"},
    Rule{"nvidia-cuda-mps-server", driver_service, "MPS server"},
    Rule{"nvidia-cuda-mps", driver_service, "MPS server"},
    Rule{"nvidia-persistenced", driver_service, "NVIDIA persistence daemon"},
    Rule{"nv-hostengine", driver_service, "DCGM host engine"},
    Rule{"dcgm-exporter", driver_service, "DCGM exporter"},
    Rule{"nvidia-smi", driver_service, "nvidia-smi"},
};

constexpr std::array<std::string_view, 6> kInterpreters = {"ipython", "ipython3", "bpython", "ptpython", "julia", "R"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The program of a command, without its path.
std::string_view program_of(std::string_view command) {
  const std::string_view first = command.substr(0, command.find(' '));
  return first.substr(first.rfind('/') + 1);
}

}  // namespace

NatureFound nature_of(std::string_view command, std::string_view name, std::string_view kind) {
  const std::string text = lower(command);
  for (const Rule& rule : kInCommand)
    if (text.find(rule.text) != std::string::npos) return {rule.nature, rule.what};
  // Every kernel of Jupyter, whatever its language, is given such a file.
  if (const auto file = text.find("kernel-");
      file != std::string::npos && text.find(".json", file) != std::string::npos)
    return {notebook, "Jupyter kernel"};
  const std::string short_name = lower(name);
  const std::string program = lower(program_of(command));
  for (const Rule& rule : kPrograms)
    if (short_name == rule.text || program == rule.text) return {rule.nature, rule.what};
  if (kind == "G" || kind == "C+G") return {display, "graphical program"};
  return {};
}

bool is_multiprocessing_helper(std::string_view command, std::string_view name) {
  for (const std::string_view sign : {"multiprocessing.spawn", "multiprocessing.forkserver", "--multiprocessing-fork"})
    if (command.find(sign) != std::string_view::npos) return true;
  return name.substr(0, 14) == "pt_data_worker";
}

bool is_bare_interpreter(std::string_view command) {
  const std::string_view program = program_of(command);
  if (std::find(kInterpreters.begin(), kInterpreters.end(), program) != kInterpreters.end()) return true;
  // "python3.11 -i": options alone. After -c and -m comes a program.
  if (program.substr(0, 6) != "python") return false;
  std::string_view rest = command.substr(std::min(command.size(), command.find(' ')));
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word.empty()) break;
    if (word == "-i") return true;
    if (word.front() != '-' || word == "-c" || word == "-m" || word == "-") return false;
    rest.remove_prefix(word.size());
  }
  return true;
}

}  // namespace vramtrack
