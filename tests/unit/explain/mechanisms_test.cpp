// Rules required by the fifth set of public messages: each is shown on texts from that set, with their reports, and on
// others of the same form.
#include <gtest/gtest.h>

#include <string>

#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/explanation.hpp"
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
  EXPECT_EQ(figure("[collectionID=444227381339095701] " + list + "records, selected size: 512 records)", Figure::asked),
            0);
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

TEST(Structure, ARequestForMoreThanThereIsNeedsNoFigure) {
  for (const std::string text :
       {// https://github.com/godotengine/godot/issues/64041
        "Godot started in good way for few times before stopping and show this message\n"
        "\"Request for more GPU memory than is available\".\nNow I can not use godot 3.5 mono stable again",
        // https://github.com/metinc/Abuse_1996/issues/2
        "Event viewer shows this:\n\n`An application has requested more GPU memory than is\navailable in the "
        "system.\nThe application will now be closed.\n\nError code: 6`",
        "renderer: asked for more VRAM than is available"})
    EXPECT_NE(answer(text).find("CANNOT TELL"), std::string::npos) << text << '\n' << answer(text);
  for (const std::string text : {"requested more pictures than are available", "more memory than is common"})
    EXPECT_EQ(answer(text), "") << text;
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

TEST(Structure, WhatARaisedErrorExplainsIsNoDescription) {
  // https://github.com/zhongkaifu/Seq2SeqSharp/issues/7
  const std::string words = "ErrorOutOfMemory: The API call failed because it was unable to allocate enough memory";
  EXPECT_NE(answer("ManagedCuda.CudaException: " + words + " to perform the requested operation"), "");
  EXPECT_EQ(answer("ErrorOutOfMemory: The API call fails if it is unable to allocate enough memory"), "");
}

TEST(Structure, ATitleAboveATraceIsAReport) {
  // https://github.com/deeplearning4j/nd4j/issues/2728
  const std::string title = "# ND4J CUDA error: Can't allocate [DEVICE] allocation buffer memory!\n\n";
  EXPECT_NE(answer(title + "Running it returns an initialization error:\n\njava.lang.ExceptionInInitializerError\n"
                           "\tat com.nd4jtest.LapackTest.testSgetrf1(LapackTest.java:24)\n"
                           "\tat sun.reflect.NativeMethodAccessorImpl.invoke0(Native Method)\n"),
            "");
  EXPECT_EQ(answer(title + "This page shows what to set.\n"), "");
}

TEST(Structure, ALabelledCodeAloneOnItsLineIsAReport) {
  // https://github.com/ROCm/rocprofiler-systems/issues/104
  EXPECT_NE(answer("# [Issue]: HIP driver error 'hipErrorOutOfMemory'\n\nHIP driver error 'hipErrorOutOfMemory' \n"
                   "when running rocprof-sys-run\n\n### Operating System\n\nUbuntu \"22.04.5 LTS\"\n\n### GPU\n\n"
                   "AMD Instinct MI300X"),
            "");
}

TEST(Place, WhatAPageIntroducesIsNoneOfItsMessages) {
  // https://support.chaos.com/hc/en-us/articles/4405841520273-How-to-fix-CUDA-out-of-memory-error
  EXPECT_EQ(answer("How to fix \"CUDA out-of-memory\" error\n\nIssue\n\n"
                   "The rendering process can stop with the following error in the log:\n\n"
                   "CUDA error: unable to allocate enough memory to perform the requested operation (out-of-mem)\n\n"
                   "[GPU Light Cache ]could not allocate buffer of size\n\n"
                   "Could not allocate texture buffer on device\n\nWhat this error means\n"),
            "");
  EXPECT_NE(answer("The rendering process stopped with the following error in the log:\n\n"
                   "[GPU Light Cache ]could not allocate buffer of size\n"),
            "");
}

TEST(Place, WhatAProgramPrintsEachTimeIsNoReport) {
  for (const std::string text :
       {// https://github.com/apache/mxnet/pull/16194
        "## Comments ##\n- I'm changing the memory pool allocation logic when cudaErrorMemoryAllocation occurrs:\n"
        "  1. release all cached unused memory chunks and retry\n",
        // https://github.com/NVIDIA/cudf-spark/issues/1018
        "To get a bit better visibility into the degree of pool fragmentation when a GPU OOM condition occurs, it "
        "would "
        "be nice if some memory stats were logged.\n\nThe former is already being logged on an allocation failure, and "
        "the latter is being tracked as part of memory threshold callbacks but not logged.",
        // https://github.com/flux-framework/flux-core/issues/5361
        "Problem: #5359 proposes to restrict job memory usage using cgroups MemoryMax, but when a job is killed by the "
        "oom killer, it may not be evident to the job owner that this is what killed their job.\n\n"
        "This could be checked in the shell callback, although if multiple ranks were killed, I'm not sure if we can "
        "reliably conclude that the exiting task was the target of the oom",
        // https://github.com/ROCm/spur/issues/308
        "The states of a job are generic.\n\n- An OOM kill arrives as SIGKILL/9, which is indistinguishable from any "
        "other SIGKILL, so the counter of the group is the only reliable one, and the rest is a guess."})
    EXPECT_EQ(answer(text), "") << text;
  for (const std::string text :
       {"An OOM kill occurred: SIGKILL/9 was sent to the job", "worker: killed by the oom killer",
        "It crashed when a large scene was loaded: CUDA out of memory",
        "app.service: A process of this unit has been killed by the OOM killer."})
    EXPECT_NE(answer(text), "") << text;
}

TEST(Place, AGuessIsNoReport) {
  // https://github.com/cdcseacave/openMVS/issues/485
  const std::string log = "Filtered depth-maps 464 (100%, 18m5s233ms)\nPS J:\\test3\\openmvs>\n\n";
  EXPECT_EQ(
      answer(log + "probably, the process run out of memory, pls try with fewer images, lower resolution, or more "
                   "RAM"),
      "");
  EXPECT_NE(answer(log + "DensifyPointCloud: the process ran out of memory"), "");
}

TEST(Place, ASentenceAboutADiffIsItsDescription) {
  // https://github.com/Genesis-Embodied-AI/quadrants/pull/453
  const std::string text =
      "Previously, device memory allocation silently failed and returned the previous value that is stored in the "
      "result "
      "buffer, which is wrong and confusing to debug.\n\n";
  const std::string diff =
      "+@test_utils.test(arch=[qd.gpu])\n+def test_huge_allocation():\n+    with pytest.raises(\n+        "
      "RuntimeError,\n";
  EXPECT_EQ(answer(text + diff), "");
  EXPECT_NE(answer("device memory allocation failed\n\n" + diff), "") << "a line of a log";
  EXPECT_NE(answer(text + "What shall I do about it?\n" + diff), "") << "whoever writes of themselves";
}

TEST(Facts, WhatTheWriterFoundLaterIsNoRequest) {
  // https://github.com/heavyai/heavydb/issues/127
  const std::string text =
      "I have run a query on MapD and got an exception of \"not enough GPU memory\", but the query was not complex. ";
  EXPECT_EQ(figure(text + "Then I found in the code that the size of a SLAB was 2GB in default.", Figure::asked), 0);
  EXPECT_EQ(figure(text + "The size of the request was 2GB.", Figure::asked), 2 * kGiB);
}

TEST(Owner, TheLabelBeforeABracketIsTheAmounts) {
  const std::string text = "scene limit reached, out of gpu memory: reqsize(157mb) used(432.7mb) limit(512mb)";
  EXPECT_EQ(figure(text, Figure::asked), 157 * kMiB);
  EXPECT_EQ(figure(text, Figure::allowed), 512 * kMiB);
  EXPECT_NEAR(figure(text, Figure::used), 432.7 * kMiB, kMiB);
}

TEST(Owner, WhatAMachineHasIsNotTheDevices) {
  const std::string failure = "CUDA error: out of memory, failed to allocate 58080000 bytes\n";
  for (const std::string text :
       {"I am using a laptop with 8 GB memory and a GeForce card.", "The CPU I am using is a Xeon with 64 GB of RAM.",
        "My machine has 64 GB of system memory and the GPU is new.", "The model is 33 GB of 64 GB total across 2 GPUs.",
        "A single buffer on my GPU may have 1/4 of the total VRAM capacity, in this case 512 MB."}) {
    EXPECT_EQ(figure(failure + text, Figure::total), 0) << text;
    EXPECT_EQ(figure(failure + text, Figure::used), 0) << text;
    EXPECT_NE(answer(failure + text).find("CANNOT TELL"), std::string::npos) << answer(failure + text);
  }
  for (const std::string text : {"I have a GT 1030 with 2 GB RAM.", "I have a 2 GB card.", "My GPU has 2 GB of VRAM.",
                                 "We have a Quadro with 2 GB and a laptop with 16 GB."})
    EXPECT_EQ(figure(failure + text, Figure::total), 2 * kGiB) << text;
}

TEST(Owner, ATotalIsTheDevicesOnlyIfItIsCalledSo) {
  EXPECT_EQ(figure("out of memory to allocate 1200000000 bytes (total 7204800000 bytes)", Figure::total), 0);
  EXPECT_EQ(figure("CUDA out of memory: 1200 MiB asked, device total 8192 MiB", Figure::total), 8 * kGiB);
  const std::string store = "device allocation of 345571976 bytes failed, device store has 4018006976 bytes. ";
  EXPECT_EQ(figure(store, Figure::total), 0);
  const std::string held =
      store + "Total allocated is 9319438848 bytes.\nWe have 9 GB in the pool, and our GPU has 40 GB.";
  EXPECT_EQ(figure(held, Figure::total), 40 * kGiB);
  EXPECT_EQ(figure(held, Figure::allocated), 9319438848);
}

TEST(Owner, ABracketBehindAnotherWordIsNoRequest) {
  EXPECT_EQ(figure("With two parts on an M40 (24 GB) the assertion fails: GPU allocation failed", Figure::asked), 0);
  const std::string input =
      "When training on a larger data set (~150M in txt format) I get \"Memory Allocation Error\"";
  EXPECT_EQ(figure(input + ": CUDA error 2", Figure::asked), 0);
  EXPECT_EQ(figure("GPU memory allocation failed (150 MB)", Figure::asked), 150 * kMiB);
}

TEST(Side, TheMessagesOwnWordsAndAdviceNameIt) {
  for (const std::string text : {"Couldn't allocate enough memory to render the picture (8790853268 bytes). Lower the "
                                 "resolution or add more RAM.",
                                 "It ended with an out of memory error, please allocate more start up memory (-Xms).",
                                 "The viewer crashed because the entire system is out of memory."})
    EXPECT_NE(answer(text).find("HOST MEMORY"), std::string::npos) << answer(text);
  const std::string text =
      "ERROR: Failed to allocate device memory of size 9289728\nERROR: Aborting (malloc.cpp:195 in "
      "device_pinned_malloc_())";
  EXPECT_EQ(answer(text).find("HOST MEMORY"), std::string::npos) << answer(text);
}

TEST(Side, TheFirstFailureGoesBeforeItsConsequences) {
  const std::string text =
      "CudaDeviceAllocator failed to allocate GPU memory 339738624 bytes!! Result = 2\n"
      "internal error: copy failed, error 700\n\n\n\nwarning: Failed to allocate pinned memory.";
  EXPECT_EQ(answer(text).find("HOST MEMORY:"), std::string::npos) << answer(text);
  EXPECT_NE(answer("warning: Failed to allocate pinned memory.").find("HOST MEMORY:"), std::string::npos);
}

TEST(Advice, WhatTheTextCallsIgnoredIsLeftOut) {
  const auto step = [](const std::string& text) {
    const auto explanation = explain(read_messages(text));
    return explanation ? explanation->next_step : std::string();
  };
  const std::string torch =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
      "of "
      "which 1.10 GiB is free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 9.00 GiB is reserved by "
      "PyTorch but unallocated.\n";
  EXPECT_NE(step(torch).find("ALLOC_CONF"), std::string::npos);
  const std::string ignored =
      step("WARNING: PYTORCH_CUDA_ALLOC_CONF is ignored because the backend is cudaMallocAsync\n" + torch);
  EXPECT_EQ(ignored.find("ALLOC_CONF"), std::string::npos) << ignored;
  EXPECT_NE(ignored.find("sizes repeat"), std::string::npos) << ignored;
}

TEST(Facts, ALineBesideWithAnotherRequestIsOfAnotherFailure) {
  const std::string other = "failed to allocate 512 MiB, 100 MiB free of 8192 MiB";
  const auto messages = read_messages("12:00:01 E " + other +
                                      "\n12:00:07 E failed to allocate 2048 MiB, 1100 MiB free of 24268 MiB: 20582 MiB "
                                      "allocated\n");
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].figures.get(Figure::total), 8192 * kMiB);
  EXPECT_EQ(messages[0].figures.get(Figure::allocated), std::nullopt);
  EXPECT_EQ(messages[1].figures.get(Figure::total), 24268 * kMiB);
}

TEST(Facts, WhatAnAllocatorUsesOfItsMemoryIsNotTheUseOfTheDevice) {
  // https://github.com/doitsujin/dxvk/issues/1410
  const std::string words = answer(
      "err:   DxvkMemoryAllocator: Memory allocation failed\nerr:     Size:      4102400\n"
      "err:   Heap 0: 326 MB allocated, 229 MB used, 349 MB allocated (driver), 8001 MB budget (driver), 8192 MB "
      "total");
  EXPECT_NE(words.find("this program held 349.0 MiB of the device's 8.00 GiB"), std::string::npos) << words;
  EXPECT_EQ(words.find("by all"), std::string::npos) << words;
}

TEST(Facts, ARequestThatWouldHaveFitIsExplained) {
  const auto balance = [](const std::string& chunk) {
    return answer(
        "amdgpu 0000:bd:00.0:  63968M of GTT memory ready.\nserver: preparing model tensor mappings: 58.56 GiB\n"
        "server: model arena alloc failed for tensor-span:105 (" +
        chunk + " MiB chunk): out of memory");
  };
  EXPECT_NE(balance("1792.00").find("to spare, of which the driver keeps some back"), std::string::npos);
  EXPECT_NE(balance("1792.00").find("beside that would be enough, but"), std::string::npos);
  EXPECT_NE(balance("8192.00").find("short\n"), std::string::npos);
}

TEST(Place, ALineThatEndsWithItsPlaceInCodeIsAReport) {
  // https://github.com/gfx-rs/wgpu/issues/548
  const std::string panic =
      "thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: AllocationError(OutOfMemory(Device))'";
  EXPECT_NE(answer(panic + ", /home/ann/wgpu-core/src/device/mod.rs:328:22\nstack backtrace:"), "");
  EXPECT_NE(answer(panic + ", src/main.rs:3:5"), "");
  EXPECT_EQ(answer("The test stops with 'AllocationError(OutOfMemory(Device))', as the page says."), "");
}

TEST(Place, ALongerCodeSpanThatASentenceNamesIsAMention) {
  // https://github.com/ncbi/fcs/issues/81
  const std::string span = "`TERM_MEMLIMIT: job killed after reaching LSF memory usage limit`";
  EXPECT_EQ(
      answer("The run completed.\nNormally LSF terminates jobs that go over it and emits the " + span + " message"),
      "");
  EXPECT_NE(answer("My job ended with the " + span + " message"), "");
  EXPECT_NE(answer("The job was terminated with the " + span + " message"), "");
}

}  // namespace
}  // namespace vramtrack::explain
