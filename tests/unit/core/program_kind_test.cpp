// What kind of program a command is.
#include "core/program_kind.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(ProgramKind, IsToldByTheCommand) {
  struct Case {
    std::string_view command, name, kind;
    ProgramKind expected;
  };
  using enum ProgramKind;
  for (const Case& c : std::initializer_list<Case>{
           {"torchrun --nproc-per-node 8 pretrain_gpt.py", "torchrun", "C", training},
           {"/opt/conda/bin/python -u /home/ada/Train.py --lr 3e-4", "python", "C", training},
           {"python -m vllm.entrypoints.openai.api_server --model train.py", "python", "C", serving},
           {"vllm serve Qwen/Qwen3-8B", "vllm", "C", serving},
           {"vllm run-batch -i in.jsonl", "vllm", "C", batch},
           {"python /opt/ComfyUI/main.py --listen", "python", "C", serving},
           {"/usr/bin/ffmpeg -i a.mp4 b.mp4", "ffmpeg", "C", batch},
           {"lm_eval --model hf", "lm_eval", "C", batch},
           {"python -m ipykernel_launcher -f /run/jupyter/kernel-4f.json", "python", "C", notebook},
           {"/usr/bin/R --slave --args /tmp/kernel-9.json", "R", "C", notebook},
           {"/usr/lib/xorg/Xorg :0", "Xorg", "G", desktop},
           {"/opt/blender/blender scene.blend", "blender", "C+G", desktop},
           {"nvidia-cuda-mps-server", "nvidia-cuda-mps", "C", service},
           {"python app.py", "python", "C", unknown},
           {"", "", "", unknown}})
    EXPECT_EQ(program_of(c.command, c.name, c.kind).kind, c.expected) << c.command;
  EXPECT_EQ(program_of("vllm serve x", "vllm", "C").what, "vLLM server");
}

TEST(ProgramKind, OnlyServersAndTheUnknownMayHaveMornings) {
  EXPECT_TRUE(has_no_clients(ProgramKind::training));
  EXPECT_TRUE(has_no_clients(ProgramKind::batch));
  EXPECT_TRUE(has_no_clients(ProgramKind::notebook));
  EXPECT_FALSE(has_no_clients(ProgramKind::serving));
  EXPECT_FALSE(has_no_clients(ProgramKind::unknown));
  EXPECT_FALSE(has_no_clients(ProgramKind::desktop));
}

}  // namespace
}  // namespace vramtrack
