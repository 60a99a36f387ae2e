#include "core/program.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Program, WhatChangesFromRunToRunIsLeftOut) {
  const auto same = [](const char* one, const char* other) {
    EXPECT_EQ(normalised_command(one), normalised_command(other));
  };
  same("python train.py --output /data/run_0042", "python train.py --output /data/final");
  same("python train.py --run-name=happy-cat-7", "python train.py --run-name=sad-dog-12");
  same("python -m vllm.entrypoints --port 8000", "python -m vllm.entrypoints --port 8001");
  same("python train.py --local_rank=0", "python train.py --local_rank=7");
  same("python train.py --ckpt /models/checkpoint-5000", "python train.py --ckpt /models/checkpoint-120");
  same("python train.py /logs/2026-01-02_03-04-05/a", "python train.py /logs/2026-11-22_13-14-15/a");
  same("python eval.py 550e8400-e29b-41d4-a716-446655440000", "python eval.py 6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  same("python x.py /tmp/tmpab12/q.json", "python x.py /tmp/tmpzz/other");
  same("python -c 'from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)'",
       "python -c 'from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=9, pipe_handle=31)'");
}

TEST(Program, ArgumentsThatMatterMakeAnother) {
  const auto other = [](const char* one, const char* two) {
    EXPECT_NE(normalised_command(one), normalised_command(two));
  };
  other("python train.py --batch-size 32", "python train.py --batch-size 64");
  other("python train.py batch_size=32", "python train.py batch_size=64");
  other("python train.py --lr 0.001", "python train.py --lr 1e-4");
  other("python train.py --model llama", "python train.py --model mistral");
  other("python train.py", "python train.py --gradient-checkpointing");
  other("python train.py", "python evaluate.py");
  other("python serve.py --model-name llama", "python serve.py --model-name mistral");
  other("python --gpu train.py", "python --gpu evaluate.py");
}

TEST(Program, ADifferentUserIsAStranger) {
  ProcessInfo process;
  process.command = "python train.py";
  process.user = "ann";
  const ProgramIdentity ann = program_identity(process);
  process.user = "ben";
  EXPECT_NE(program_identity(process).text, ann.text);
  EXPECT_TRUE(program_identity(ProcessInfo{}).text.empty());
}

TEST(Program, AnotherImageOrJobIsAStranger) {
  ProcessInfo process;
  process.command = "python train.py";
  const std::string bare = program_identity(process).text;
  process.image = "nvcr.io/nvidia/pytorch:26.01-py3";
  const std::string image = program_identity(process).text;
  EXPECT_NE(image, bare);
  process.image = "nvcr.io/nvidia/pytorch:26.02-py3";
  EXPECT_NE(program_identity(process).text, image);
  process.image.clear();
  process.job_name = "sweep-17";
  const std::string job = program_identity(process).text;
  EXPECT_NE(job, bare);
  process.job_name = "sweep-18";
  EXPECT_EQ(program_identity(process).text, job);
  process.job_name = "nightly";
  EXPECT_NE(program_identity(process).text, job);
}

TEST(Program, TheNameForPeopleHoldsNoArguments) {
  const auto name = [](const char* command) {
    ProcessInfo process;
    process.command = command;
    return program_identity(process).name;
  };
  EXPECT_EQ(name("/usr/bin/python3.11 -u /home/ann/train.py --token hunter2"), "python train.py");
  EXPECT_EQ(name("python -m vllm.entrypoints.api --api-key hunter2"), "python -m vllm.entrypoints.api");
  EXPECT_EQ(name("python -c print('hunter2')"), "python");
  EXPECT_EQ(name("/opt/app/server --password hunter2"), "server");
  EXPECT_EQ(name("python TOKEN=x.y train.py"), "python train.py");
}

}  // namespace
}  // namespace vramtrack
