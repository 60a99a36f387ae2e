// Rules that the fifth set of public messages asked for: each shown on texts of that set, whose reports are named, and
// on others of the same form.
#include <gtest/gtest.h>

#include <string>

#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/judge.hpp"
#include "explain/reader.hpp"
#include "explain/render.hpp"

namespace vramtrack::explain {
namespace {

std::string answer(const std::string& text) {
  const auto explanation = explain(read_messages(text + "\n"));
  return explanation ? explanation_text(*explanation, "") : "";
}
double figure(const std::string& text, Figure which) {
  const auto messages = read_messages(text + "\n");
  return messages.empty() ? -1 : messages.front().figures.get(which).value_or(0);
}

TEST(Facts, ANumberBeforeAnotherNounIsNoSize) {
  // https://github.com/milvus-io/milvus/issues/27057
  const std::string list = "ivf::list: failed to allocate a big enough list to hold all data (requested size: 493 ";
  EXPECT_EQ(figure(list + "records, selected size: 512 records)", Figure::asked), 0);
  EXPECT_EQ(figure(list + "bytes, selected size: 512 bytes)", Figure::asked), 493);
  EXPECT_EQ(figure("gpu: allocation of size 1048576 fails now", Figure::asked), 1048576);
}

TEST(Facts, WhatAPersonHasReadOfALimitIsNotTheRequests) {
  // https://github.com/facebookresearch/faiss/issues/2179
  const std::string text =
      "StandardGpuResources: alloc fail type FlatData dev 2 space Device stream 0 size 2764800000 bytes (cudaMalloc "
      "error out of memory [2])\n\n"
      "I found in the documentation that `StandardGpuResources` reserves a maximum 1536 MB on each GPU.";
  EXPECT_EQ(figure(text, Figure::allowed), 0);
  EXPECT_EQ(answer(text).find("TOO BIG"), std::string::npos);
}

TEST(Facts, ALimitBelongsToWhatTheWordsBesideItName) {
  // https://github.com/galaxyproject/galaxy/pull/2309
  for (const std::string text : {"slurmstepd: error: Exceeded step memory limit at some point.",
                                 "worker: exceeded container memory limit (2 GiB)"})
    EXPECT_EQ(answer(text).find("the pool that the program set aside"), std::string::npos) << answer(text);
  EXPECT_NE(answer("slurmstepd: error: Exceeded step memory limit at some point.").find("HOST MEMORY"),
            std::string::npos);
  EXPECT_NE(answer("engine: GPU memory pool exceeded its memory limit").find("the pool that the program"),
            std::string::npos);
}

TEST(Facts, SharedMemoryOfAGpuIsNotTheHosts) {
  // https://github.com/k4yt3x/video2x/issues/1440
  const std::string end =
      " is full and the upscaling process crashes with the Error code: VK_ERROR_OUT_OF_DEVICE_MEMORY";
  EXPECT_EQ(answer("When upscaling after around 30 Seconds my GPU (Shared Memory)" + end).find("HOST MEMORY"),
            std::string::npos);
  EXPECT_NE(answer("RuntimeError: failed to create shared memory segment of 536870912 bytes").find("HOST MEMORY"),
            std::string::npos);
}

TEST(Facts, ANegativeSizeIsAWrongOne) {
  // https://github.com/tdep-developers/tdep/issues/29
  for (const std::string text : {"ERROR: trying to allocate an array of size  -1208014592",
                                 "gpu: failed to allocate -2147483648 bytes", "allocation of -16 bytes failed"})
    EXPECT_NE(answer(text).find("A WRONG SIZE: a negative size"), std::string::npos) << text << '\n' << answer(text);
  for (const std::string text :
       {"gpu: allocation failed: -2147024882", "trying to allocate an array of size 1208014592",
        "trying to allocate the rest: -1208014592", "resized by -4096 bytes"})
    EXPECT_EQ(answer(text).find("A WRONG SIZE"), std::string::npos) << text << '\n' << answer(text);
}

TEST(Facts, ASizeOfPebibytesIsShownAsSuch) {
  // https://github.com/crest-lab/crest/issues/445
  EXPECT_EQ(size_words(2188448768777856), "1.94 PiB");
  EXPECT_EQ(size_words(2 * kTiB), "2.00 TiB");
  EXPECT_EQ(size_words(16 * kTiB * kMiB), "16.0 EiB");
}

TEST(Structure, ASizeThatIsTooLargeToCreateIsABoundOfOnePiece) {
  // https://github.com/ruffle-rs/ruffle/issues/14788
  const std::string text =
      "Uncaught RangeError: Failed to execute 'createBuffer' on 'GPUDevice': createBuffer failed, size is too large "
      "for "
      "the implementation when mappedAtCreation == true";
  EXPECT_NE(answer(text).find("A LIMIT"), std::string::npos) << answer(text);
  EXPECT_EQ(answer("upload failed on device: the file size is too large"), "");
}

TEST(Structure, MemoryThatIsTooLowIsALack) {
  // https://github.com/relativemodder/aegnux/issues/26
  const std::string text =
      "[STDERR] Log: Windows reports memory too low on GPU 0 to reliably allocate 1297920 byte block.\n"
      "[STDERR] Log:   Sapphire will fall back to CPU this render, free GPU memory and retry GPU later.";
  EXPECT_EQ(figure(text, Figure::asked), 1297920);
  EXPECT_EQ(answer("GPU memory clock too low"), "");
}

TEST(Structure, AnErrorAboutFailingToAllocateIsOne) {
  // https://github.com/ai4d-iasc/trixie/issues/92
  EXPECT_NE(answer("Each time I submit a job I get a CUDA error about failing to allocate memory."), "");
}

TEST(Facts, WhatTheWriterFoundLaterIsNoRequest) {
  // https://github.com/heavyai/heavydb/issues/127
  const std::string text =
      "I have run a query on MapD and got an exception of \"not enough GPU memory\", but the query was not complex. ";
  EXPECT_EQ(figure(text + "Then I found in the code that the size of a SLAB was 2GB in default.", Figure::asked), 0);
  EXPECT_EQ(figure(text + "The size of the request was 2GB.", Figure::asked), 2 * kGiB);
}

}  // namespace
}  // namespace vramtrack::explain
