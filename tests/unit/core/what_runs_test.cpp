#include "core/what_runs.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(WhatRuns, AShortCommandIsWhatTellsProgramsApart) {
  EXPECT_EQ(
      short_command("/opt/conda/envs/train/bin/python3.11 -u -X dev /home/ada/project/train.py --config resnet50"),
      "train.py --config resnet50");
  EXPECT_EQ(short_command("python -m torch.distributed.run pretrain.py --model vit-b"),
            "torch.distributed.run pretrain.py --model vit-b");
  EXPECT_EQ(short_command("/usr/bin/python3 /opt/venv/bin/vllm serve meta-llama/Llama-3.1-8B"),
            "vllm serve meta-llama/Llama-3.1-8B");
  EXPECT_EQ(short_command("/usr/local/bin/ollama runner --model /models/x.gguf"),
            "ollama runner --model /models/x.gguf");
}

TEST(WhatRuns, NothingIsLeftOutThatNothingElseSays) {
  EXPECT_EQ(short_command("/usr/bin/python3 -c import torch"), "python3 -c import torch");
  EXPECT_EQ(short_command("python3"), "python3");
  EXPECT_EQ(short_command("VLLM::Worker_TP0"), "VLLM::Worker_TP0");
  EXPECT_EQ(short_command("/opt/data/"), "/opt/data/");
  EXPECT_EQ(short_command(""), "");
}

}  // namespace
}  // namespace vramtrack
