#include "core/framework.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramtrack {
namespace {

using Libraries = std::vector<std::string>;

struct Case {
  std::string_view command;
  std::string_view name;
  Libraries libraries;
  std::string_view expected;
};

TEST(Framework, IsToldFromCommandTitleLibrariesAndModules) {
  const std::vector<Case> cases = {
      {"python train.py", "python", {"libtorch_cuda.so", "libc10.so"}, "PyTorch"},
      {"python train.py", "pt_main_thread", {}, "PyTorch"},
      {"/usr/bin/python3 /usr/local/bin/torchrun --nproc-per-node 8 train.py", "torchrun", {}, "PyTorch"},
      {"python -m torch.distributed.run train.py", "", {}, "PyTorch"},
      {"python fit.py", "python", {"libtensorflow_framework.so.2"}, "TensorFlow"},
      {"tensorflow_model_server --port=8500", "", {}, "TensorFlow"},
      {"python fit.py", "python", {"xla_cuda_plugin.so"}, "JAX"},
      {"python fit.py", "python", {"xla_extension.so"}, "JAX"},
      {"/usr/local/bin/ollama runner --model /root/x", "ollama", {"libggml-cuda.so"}, "Ollama"},
      {"C:\\Users\\me\\AppData\\Local\\Programs\\Ollama\\ollama.exe", "", {}, "Ollama"},
      {"/tmp/ollama123/runners/cuda_v12/ollama_llama_server --port 1", "ollama_llama_se", {}, "Ollama"},
      {"python -m mlx_lm.server --model m", "", {}, "MLX"},
      {"python gen.py", "", {"libmlx.so"}, "MLX"},
      {"VLLM::EngineCore", "VLLM::EngineCor", {"libtorch_cuda.so"}, "vLLM"},
      {"/usr/bin/python3 /usr/local/bin/vllm serve m", "vllm", {"libtorch_cuda.so"}, "vLLM"},
      {"python3 -u -m vllm.entrypoints.openai.api_server", "python3", {}, "vLLM"},
      {"python3 serve.py", "python3", {"libc10.so", "libtorch_cuda.so", "_C.abi3.so", "vllm/"}, "vLLM"},
      {"sglang::scheduler_TP0", "sglang::schedul", {"libtorch_cuda.so"}, "SGLang"},
      {"python3 -m sglang.launch_server --model x", "", {"libtorch_cuda.so"}, "SGLang"},
      {"./build/bin/llama-server -m x.gguf", "llama-server", {}, "llama.cpp"},
      {"./chat", "chat", {"libllama.so"}, "llama.cpp"},
      {"/opt/tritonserver/bin/tritonserver --model-repository=/m",
       "tritonserver",
       {"libnvinfer.so.10"},
       "Triton server"},
      {"/usr/src/tensorrt/bin/trtexec --onnx=x", "trtexec", {}, "TensorRT"},
      {"./infer", "infer", {"libnvinfer.so.8"}, "TensorRT"},
      {"python x.py", "", {"cupy_backends/"}, "CuPy"},
      {"./infer", "infer", {"libonnxruntime.so.1.17.0"}, "ONNX Runtime"},
      {"python x.py", "", {"libonnxruntime_providers_cuda.so", "libnvinfer.so.8"}, "ONNX Runtime"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(recognise_framework(c.command, c.name, c.libraries), c.expected) << c.command << " / " << c.name;
}

TEST(Framework, WhatAProgramMentionsIsNotWhatItRuns) {
  EXPECT_EQ(recognise_framework("python train.py --out /data/vllm/torch", "python", {}), "");
  EXPECT_EQ(recognise_framework("vim ollama", "vim", {}), "");
  EXPECT_EQ(recognise_framework("python -c import-vllm vllm", "python3", {}), "");
  EXPECT_EQ(recognise_framework("llama", "llama", {}), "");
  // The compiler that comes with PyTorch is not the inference server.
  EXPECT_EQ(recognise_framework("python x.py", "", Libraries{"libtriton.so"}), "");
  EXPECT_EQ(recognise_framework("", "", {}), "");
}

TEST(Framework, EveryNameHasCausesAndSomethingToTry) {
  constexpr std::string_view kNames[] = {
#define VRAMTRACK_FRAMEWORK(name, purpose, programs, libraries, causes, next) name,
#include "core/framework.def"
#undef VRAMTRACK_FRAMEWORK
  };
  for (const std::string_view name : kNames) {
    for (const std::vector<std::string>& lines : {framework_causes(name), framework_advice(name)}) {
      EXPECT_FALSE(lines.empty()) << name;
      EXPECT_THAT(lines, testing::Each(testing::Not(testing::IsEmpty()))) << name;
    }
  }
}

TEST(Framework, AdviceNeverSellsEmptyCacheAsAFix) {
  EXPECT_THAT(framework_advice("PyTorch"), testing::Contains(testing::HasSubstr("empty_cache() does not fix a leak")));
}

TEST(Framework, AServerGetsNoAdviceThatOnlyTrainingCanUse) {
  const auto of_training = testing::Contains(testing::HasSubstr("loss"));
  for (const std::vector<std::string>& lines : {framework_causes("PyTorch"), framework_advice("PyTorch")})
    EXPECT_THAT(lines, of_training);
  for (const std::vector<std::string>& lines :
       {framework_causes("PyTorch", ProgramKind::serving), framework_advice("PyTorch", ProgramKind::serving)}) {
    EXPECT_THAT(lines, testing::Not(of_training));
    EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("torch.inference_mode()")));
    EXPECT_THAT(lines, testing::Not(testing::Contains(testing::HasSubstr("serving:"))));
  }
}

TEST(Framework, AnUnknownOneGetsAdviceForAnyGpuProgram) {
  EXPECT_FALSE(framework_causes("").empty());
  EXPECT_EQ(framework_causes("no such"), framework_causes(""));
  EXPECT_FALSE(framework_advice("").empty());
  EXPECT_EQ(framework_advice("no such"), framework_advice(""));
}

}  // namespace
}  // namespace vramtrack
