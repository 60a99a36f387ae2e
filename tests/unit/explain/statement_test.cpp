// Failed allocations that no wording knows: found by their structure, with the memory, the figures and the outcome that
// the text tells.
#include "explain/statement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/units.hpp"
#include "explain/judge.hpp"
#include "explain/render.hpp"
#include "explain/sequence.hpp"

namespace vramtrack::explain {
namespace {

std::string answer(const std::string& text) {
  const auto explanation = explain(read_messages(text));
  return explanation ? explanation_text(*explanation, "") : "";
}
std::string_view memory_of(const std::string& text) {
  const auto messages = read_messages(text);
  return messages.empty() ? "" : messages.front().wording->name;
}
Cause cause_of(const std::string& text) {
  const auto explanation = explain(read_messages(text));
  EXPECT_TRUE(explanation) << text;
  return explanation ? explanation->cause : Cause::leak;
}
double figure(const std::string& text, Figure which) {
  const auto messages = read_messages(text);
  return messages.empty() ? -1 : messages.front().figures.get(which).value_or(0);
}

TEST(Balance, IsShownWhereItAddsUp) {
  const auto said = [](const char* held) {
    return answer(std::string("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; "
                              "8.00 GiB total capacity; ") +
                  held + ")");
  };
  EXPECT_NE(said("5.00 GiB already allocated; 1.50 GiB free; 6.00 GiB reserved in total by PyTorch")
                .find("8.00 GiB = 5.00 GiB allocated + 1.00 GiB cached + 512.0 MiB held outside + 1.50 GiB free"),
            std::string::npos);
  EXPECT_NE(
      answer("RuntimeError: MPS backend out of memory (MPS allocated: 15.20 GiB, other allocations: 2.10 GiB, max "
             "allowed: 18.13 GiB). Tried to allocate 1.00 GiB on private pool.")
          .find("18.13 GiB = 15.20 GiB allocated + 2.10 GiB held outside + 849.9 MiB beside both; 1.00 GiB asked "
                "for: 174.1 MiB short"),
      std::string::npos);
  // What lies in the host's memory, too, is not part of the device's.
  EXPECT_EQ(said("17.20 GiB already allocated; 0 bytes free; 19.15 GiB reserved in total by PyTorch").find("balance"),
            std::string::npos);
}

TEST(Statement, IsFoundByItsStructure) {
  for (const std::string text :
       {"E: Not enough GPU memory to match 1234 features.", "engine: VRAM exhausted",
        "ArenaOfGpu fail to allocate memory 1048576 bytes!! Result = 2",
        "GPU 0: cannot allocate big buffer for the table", "gpu allocation of size 4096 failed",
        "D3D11: Failed to create RenderTexture, error 0x8007000e", "DDERR_OUTOFVIDEOMEMORY",
        "VkResult: ERROR_OUT_OF_DEVICE_MEMORY", "System is out of GPU and shared host memory",
        "cuMemAlloc(): out of memory", "显存不足"})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
}

/// Each in the words of one program; that the structure is found names no program.
TEST(Statement, IsFoundInAnyVoice) {
  for (const std::string text :
       {// who tried
        "Tried to allocate 2.00 MiB (GPU 0; 3.79 GiB total capacity; 654.97 MiB already allocated; 6.00 MiB free)",
        "importer: attempted to reserve 6 GiB of device memory",
        // who cannot
        "loader: can NOT allocate a block of 6 GiB", "scene: not able to allocate 512 MiB for the atlas",
        "Error while creating shared memory segment /dev/shm/ring-7 (size 9637888)",
        "!!! Exception during processing !!! Allocation on device",
        // what is not there
        "No available memory for the cache blocks.", "loading was stopped due to insufficient system resources",
        "Available KV cache memory: -0.59 GiB", "available device memory: -120 MB", "Allocate: no space left",
        "Call to posix_fallocate failed : No space left on device",
        // what is too much
        "the max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache (2048)",
        "model request too large for system", "the model requires more system memory than is",
        "Invalid buffer size: 11.25 GB",
        // counters and codes
        "CUDA OOMs: 2", "memory: usage 4kB, limit 4kB, failcnt 8", "MemoryError", "4711.batch OUT_OF_ME+",
        "com.nvidia.spark.rapids.jni.GpuRetryOOM", "NvMapMemAllocInternalTagged: 1075072515 error 12",
        "Dst tensor is not initialized.",
        // who was ended for it
        "kernel: Killed process 18177 (palo_be), UID 0, total-vm:70347780kB, anon-rss:45563572kB",
        "job killed after reaching the memory usage limit", "worker 7 was terminated because it exceeded its memory",
        "DataLoader worker (pid 22048) is killed by signal: Killed.",
        "DataLoader worker (pid 22048) is killed by signal: Bus error."})
    EXPECT_FALSE(read_messages(text + "\n").empty()) << text;
  for (const std::string text :
       {"tried to allocate a port", "the server can not be reached", "not able to open 512 MiB of files",
        "Error while creating the folder (size 12)", "Exception: allocation of seats", "no available node for the job",
        "insufficient permissions of system and resources", "offset: -120 MB", "available: -3 C",
        "write failed: No space left on device", "the title is larger than the picture (4096 and 2048)",
        "image too large for the page", "Invalid buffer size", "CUDA OOMs: 0",
        "memory: usage 3kB, limit 4kB, failcnt 0", "worker terminated because of a signal",
        "the memory of a job that was terminated"})
    EXPECT_TRUE(read_messages(text + "\n").empty()) << text;
}

TEST(Statement, NeedsAnAllocation) {
  for (const std::string text :
       {"failed to allocate an address for the pod", "device: write failed", "out of the box on every GPU",
        "the GPU is not enough of a reason", "gpu 0: 12 GiB allocated, 3 GiB free", "oom_kill_disable=False",
        "step 7 gpu 0 mem_allocated 1234 MiB used 3000 MiB, request failed, retries 0",
        "the data exceeds the maximum allowed length", "allocated storage size can't be less than that of the device",
        "self.kill(signal.SIGKILL)", "error: file not found on device",
        "| E_OUTOFMEMORY (0x8007000E) | Direct3D could not allocate sufficient memory to complete the call. |"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Statement, NamesTheMemory) {
  EXPECT_EQ(memory_of("worker: GPU ran out of memory"), "statement_device");
  EXPECT_EQ(memory_of("worker: ran out of memory"), "statement");
  EXPECT_EQ(memory_of("using GPU 0\nworker: ran out of memory"), "statement_device");
  EXPECT_EQ(memory_of("virtual memory exhausted: Cannot allocate memory"), "statement_host");
  EXPECT_EQ(memory_of("Ran out of memory. Last error: The paging file is too small for this operation"),
            "statement_host");
  EXPECT_EQ(memory_of("CUDA error out of memory\nReturn value 2 from cudaMallocHost(&chunk, size)"),
            "statement_pinned");
  EXPECT_EQ(memory_of("cannot allocate 4096 bytes of shared memory in /dev/shm"), "statement_shm");
  EXPECT_EQ(memory_of("ptxas error : Entry function 'f' uses too much shared data (0x10000 bytes, 0xc000 max)"),
            "statement_scratch");
  EXPECT_EQ(memory_of("[encoder] OpenEncodeSessionEx failed: out of memory (10)"), "statement_session");
}

TEST(Statement, ReadsSizesByTheWordsBesideThem) {
  const std::string words = "gpu pool: Out of memory. Requested 8912 MB; Free 5898.5 MB";
  EXPECT_EQ(figure(words, Figure::asked), 8912 * kMiB);
  EXPECT_EQ(figure(words, Figure::free), 5898.5 * kMiB);
  const std::string behind =
      "insufficient GPU memory: 2095906816 bytes of memory found < 2667577216 bytes of memory required";
  EXPECT_EQ(figure(behind, Figure::total), 2095906816);
  EXPECT_EQ(figure(behind, Figure::asked), 2667577216);
  const std::string pair = "another job holds 22.6/24.5GB of the GPU: failed to allocate memory";
  EXPECT_NEAR(figure(pair, Figure::outside), 22.6 * kGiB, 1);
  EXPECT_NEAR(figure(pair, Figure::total), 24.5 * kGiB, 1);
  const std::string below =
      "gpu allocator out of memory\n [requestedSpace: 343146496 B]\n [totalFreeSpace: 81256448 B]\n";
  EXPECT_EQ(figure(below, Figure::asked), 343146496);
  EXPECT_EQ(figure(below, Figure::free), 81256448);
  EXPECT_EQ(figure("out of memory on the 24 576 MiB of the GPU, limit 24 576 MiB", Figure::allowed), 24576 * kMiB);
}

TEST(Statement, WhatWasFreeBeforeIsNotWhatWasFreeThen) {
  EXPECT_EQ(figure("GPU 0: 8 GiB memory, 6 GiB free\nfailed to allocate 1 GiB of GPU memory", Figure::free), 0);
  EXPECT_EQ(figure("GPU 0: 8 GiB memory, 512 MiB free\nfailed to allocate 1 GiB of GPU memory", Figure::free),
            512 * kMiB);
}

TEST(Statement, TheMostSpecificProducerOfALineIsMeant) {
  const auto messages = read_messages(
      "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 4,096 bytes (allocated so far: 512 bytes).");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].wording->program, "CuPy");
}

TEST(Statement, TellsThatTheProgramWentOn) {
  const std::string survived =
      answer("Failed to allocate 75 MiB of CUDA memory, falling back to pinned system memory\n");
  EXPECT_NE(survived.find("the program continued: Failed to allocate"), std::string::npos) << survived;
  const std::string ended = answer(
      "Warning: GPU ran out of memory, retrying with tiles\n\n\n\n\n\n"
      "cannot allocate 288 MiB of GPU memory: 512 MiB total\n");
  EXPECT_EQ(ended.find("went on"), std::string::npos) << ended;
}

TEST(Statement, AnotherReasonIsNoShortage) {
  for (const std::string text :
       {"PxgMemoryAllocator fail to allocate memory 675282944 bytes of the GPU!! Result = 700",
        "failed to allocate pinned system memory: CUDA driver version is insufficient for CUDA runtime version"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, RoomByWhatIsInUseIsNoShortage) {
  const std::string words = answer(
      "err:   DxvkMemoryAllocator: Memory allocation failed\nerr:     Size:      4096000\n"
      "err:   Heap 0: 328 MB allocated, 230 MB used, 8192 MB total\n");
  EXPECT_NE(words.find("the device had room"), std::string::npos) << words;
  EXPECT_NE(words.find("32 bits"), std::string::npos) << words;
}

TEST(Host, OfPaddleWhatOthersHoldIsNotItsOwn) {
  EXPECT_TRUE(
      answer("Out of memory error on GPU 0. Cannot allocate 45.776367MB memory on GPU 0, 44.376709GB memory has been "
             "allocated(actual using allocated memory 439.451172MB) and available memory is only 15.812500MB.")
          .starts_with("OTHERS HOLD IT"));
}

TEST(Statement, AWrongSizeIsNoShortage) {
  const std::string words = answer("HipAllocator out of memory\n[requestedSpace: 9223372036854775808 B]\n");
  EXPECT_TRUE(words.starts_with("A WRONG SIZE: ")) << words;
}

TEST(Statement, ATinyRequestIsNotTheCause) {
  EXPECT_NE(
      answer("err: gpu memory allocation failed\nerr:     Size:      65536\n").find("only 64.0 KiB were requested"),
      std::string::npos);
}

TEST(Statement, WhatRoseBeforeIsALeak) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += "step " + std::to_string(i) + " mem_allocated: " + std::to_string(1000 + 200 * i) + " MB\n";
  EXPECT_TRUE(answer(text + "GPU out of memory\n").starts_with("LEAK SUSPECTED: "))
      << answer(text + "GPU out of memory\n");
  std::string level;
  for (int i = 0; i < 10; ++i) level += "step mem_allocated: " + std::to_string(1000 + 200 * (i % 2)) + " MB\n";
  EXPECT_FALSE(answer(level + "GPU out of memory\n").starts_with("LEAK")) << answer(level);
}

TEST(Statement, IsTheSameHoweverTheTextIsCut) {
  std::string text(3000, '.');
  text += "\nGPU 0: total 8 GiB memory\nfailed to allocate 1 GiB of GPU memory\n" + std::string(3000, '.');
  const auto whole = read_messages(text);
  ASSERT_EQ(whole.size(), 1U);
  Reader reader;
  for (const char c : text) reader.feed({&c, 1});
  const auto cut = reader.finish();
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].figures.get(Figure::total), whole[0].figures.get(Figure::total));
}

TEST(Statement, TheNumberOfCudaIsACode) {
  for (const std::string text :
       {"[h264_nvenc @ 0x7f0b3c07d540] Failed creating CUDA context for NVENC: 0x2",
        "[memory_saver.cpp] CUresult error  result=2 file=csrc/saver.cpp func=cu_mem_create line=108",
        "[7f] | GPU | ERROR | 12:00 | Your GPU memory is full. Try less (cuda error 2)", "Unknown error -2147024882"})
    EXPECT_FALSE(answer(text).empty()) << text;
  for (const std::string text : {"CUDA error 29 in line 2", "make: *** [all] Error 2", "result = 2 of 3"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, AnEndBySignal9IsOneWhoeverTellsIt) {
  for (const std::string text :
       {"runner: task 7 finished with exit status 137", "[launcher] child died (exitcode: -9)",
        "supervisor: return code = -9", "job.sh: line 12:  4711 Killed                  ./solver",
        "gmake: *** [run] Killed", "Killed", "worker terminated by signal SIGKILL"})
    EXPECT_EQ(memory_of(text), "statement_killed") << text;
  for (const std::string text : {"port 137 is open", "error code 13", "2026-09-01 -9 degrees", "kill -9 4711",
                                 "sending SIGKILL to process 4711", "137 files, exit code 1", "users killed by time"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, WhatIsHeldDecidesForAnyProgram) {
  EXPECT_TRUE(
      answer("MLU out of memory. Tried to allocate 96.00 MiB (MLU 0; 22.50 GiB total capacity; 21.60 GiB already "
             "allocated; 60.00 MiB free; 21.90 GiB reserved)\n")
          .starts_with("FULL: 21.60 GiB of the device's 22.50 GiB were allocated"));
  EXPECT_TRUE(
      answer("gpu pool out of memory: requested 2 GiB, 24 GiB total, 1 GiB free, 6 GiB allocated by this program\n")
          .starts_with("OTHERS HOLD IT"));
  EXPECT_TRUE(
      answer("GPU out of memory. Tried to allocate 1.50 GiB. 24 GiB total, 200 MiB free, 15 GiB is allocated by it, "
             "and 6.50 GiB is reserved but unallocated\n")
          .starts_with("FRAGMENTATION"));
  // On lines of its own, and wrapped.
  const std::string fields =
      "Allocator: GPU out of memory\nCurrently allocated : 15.16 GiB\n"
      "Requested : 512.00 KiB\nDevice limit : 15.99 GiB\nFree : 0 bytes\n";
  EXPECT_TRUE(answer(fields).starts_with("FULL")) << answer(fields);
  EXPECT_EQ(figure("gpu allocator: out of memory for 138.00 MiB\nof 15.90 GiB in total, and\n15.32 GiB is allocated\n",
                   Figure::allocated),
            15.32 * kGiB);
  // The number of a process is not a size.
  EXPECT_EQ(figure("GPU out of memory: process 885415 has 22.18 GiB in use", Figure::used), 0);
}

TEST(Statement, AComparisonWithWhatThereIsIsOne) {
  for (const std::string text : {"error: model needs more system memory (12.1 GiB) than is available (7.5 GiB)",
                                 "free memory on device 0 (3.2 GiB) is less than the requested 8 GiB",
                                 "Attempting to allocate 196.00M on the TPU. That was not possible."})
    EXPECT_FALSE(answer(text).empty()) << text;
  EXPECT_TRUE(answer("TPU ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm.").starts_with("TOO BIG"));
  for (const std::string text :
       {"memory use is less than yesterday", "larger than life", "it is 3 times smaller than before"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, WhatItFallsBackToDidNotFail) {
  EXPECT_EQ(memory_of("Failed to allocate 75 MiB of CUDA memory, falling back to pinned system memory"),
            "statement_device");
}

TEST(Statement, APlaceholderIsNoMessage) {
  for (const std::string text : {"OutOfMemoryError: Out of memory allocating A bytes (allocated so far: B bytes).",
                                 "failed to allocate %zu bytes of device memory"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, TheReasonMayStandAbove) {
  EXPECT_EQ(answer("No device available for decoder: device type vaapi needed.\n"
                   "Device setup failed for decoder on input stream #0:0 : Cannot allocate memory\n"),
            "");
}

TEST(Statement, GoesOnWhereTheNextLinesSucceed) {
  const auto went_on = [](const std::string& text) {
    return answer(text).find("the program continued") != std::string::npos;
  };
  EXPECT_TRUE(went_on("[RMM] [error] [FAILURE maximum pool size exceeded]\n[       OK ] Test.Of (3987 ms)\n"));
  EXPECT_TRUE(went_on("[warn] could not allocate a 64 MB atlas in video memory, using a smaller one\n"));
  EXPECT_FALSE(went_on("GPU out of memory\nTraceback (most recent call last)\nJob finished\n"));
  // Of a warning that it survived once.
  EXPECT_TRUE(
      went_on("[W] Tactic Device request: 538MB Available: 168MB. Device memory is insufficient.\n[W] Skipping "
              "tactic 3\n\n\n\n[W] Tactic Device request: 812MB Available: 190MB. Device memory is "
              "insufficient.\n"));
}

TEST(Remark, OfTheCardAndOfTheNeedDecides) {
  EXPECT_TRUE(answer("On the 6 GB RTX 3050 it fails:\nRESOURCE_EXHAUSTED: Out of memory while trying to allocate "
                     "51.26GiB.\n")
                  .starts_with("TOO BIG: 51.26 GiB were requested, and the device has 6.00 GiB in all"));
  EXPECT_TRUE(answer("cuda-0 GeForce GTX 1650 (Compute 7.5) Memory : 4.00 GB\ncuda-0 Generating DAG + Light : 3.77 "
                     "GB\ncuda-0 out of memory on CUDA device 01:00.0\n")
                  .starts_with("TOO BIG: 3.77 GiB were needed in all"));
  EXPECT_TRUE(answer("Estimated max RAM per process > 293.78 GB\ncall to cuMemAlloc returned error 2: Out of memory\n")
                  .starts_with("TOO BIG: 293.78 GiB were needed in all"));
  // Advice, what others hold and shares are not card.
  for (const std::string line :
       {"At least 4 GB of VRAM are recommended", "device:GPU:1 with 4096 MB memory", "4 GB of RAM"})
    EXPECT_EQ(figure(line + "\nGPU: failed to allocate 8 GiB of memory\n", Figure::total), 0) << line;
}

TEST(Remark, OfALongRunSuspectsALeak) {
  EXPECT_TRUE(answer("It runs fine, but after about 6 hours:\nCUDA error 2: out of memory\n").starts_with("LEAK"));
  EXPECT_TRUE(
      answer("My run is fine for roughly 14 million steps, then stops with:\nGPU out of memory\n").starts_with("LEAK"));
  EXPECT_FALSE(answer("It fails after 3 steps:\nGPU out of memory\n").starts_with("LEAK"));
}

TEST(Statement, TheMostInOnePieceIsALimit) {
  EXPECT_EQ(
      memory_of("[GPU] Exceeded max size of memory object allocation: requested 5368709120 bytes, but max alloc size "
                "supported by device is 4294959104 bytes.\n"),
      "statement_piece");
}

TEST(Statement, AnAmountBesideItsBoundIsOneByTheNounOfTheBound) {
  for (const std::string text :
       {"    Buffer size 640000000 is greater than the maximum buffer size (268435456)",
        "WebGPU error: Binding size (146847752) of [Buffer \"tiles\"] is larger than the maximum binding size "
        "(134217728).",
        "Error: Requested texture size [23040x23040] greater than WebGL maximum on this browser / GPU [16384x16384].",
        "failed assertion `Buffer Validation newBufferWith*:length 0x1e2b2c000 must not exceed 3758096384 bytes'",
        "failed assertion `error: Error: total bytes of NDArray > 2**32'",
        "clCreateBuffer failed: CL_INVALID_BUFFER_SIZE (-61): requested 3221225472 bytes, CL_DEVICE_MAX_MEM_ALLOC_SIZE "
        "is "
        "2147483648"})
    EXPECT_EQ(memory_of(text), "statement_piece") << text;
  for (const std::string text :
       {"ERR [batch] failed to decode the batch: KV cache is full - try increasing it via the context size",
        "prompt is too long: 16535 tokens > 8221 maximum (prompt + generation); shorten the prompt or increase the KV "
        "cache "
        "budget",
        "[scene-cache] pool budget of 6144 MB reached: cannot place 412 MB (used 5998 MB)",
        "vkAllocateDescriptorSets failed: VK_ERROR_OUT_OF_POOL_MEMORY"})
    EXPECT_EQ(memory_of(text), "statement_pool") << text;
  for (const std::string text :
       {"size of the provided `buffer` must not be larger than `2**31 - 1`.",
        "Pool reached maximum size and no more connections are allowed.", "error: memory usage limit was reached.",
        "Header size 40 exceeds the maximum buffer size of 32",
        "client intended to send too large body: 10485761 bytes, upstream buffer limit exceeded",
        "loaded 31.2 GiB of weights, larger than the 24 GiB of the last release"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Statement, WordsThatSayNothingDoNotHideIt) {
  for (const std::string text :
       {"Device does not have enough free memory to hold the DAG. Required: 5.08 GB, free: 5.02 GB.",
        "GPU 1: error when allocating memory or building the graph. Disabling card.",
        "Video memory has been exhausted (612.500 MB over budget).",
        "Your session crashed after using all available RAM.", "delegate: Out of host memoryError: Program not built!",
        "clCreateImage (-40) CL_INVALID_IMAGE_SIZE: 20480 x 20480 larger than CL_DEVICE_IMAGE2D_MAX_WIDTH 16384",
        "pods \"trainer-7\" is forbidden: exceeded quota: gpu-mem, requested: gpumem=24000, limited: gpumem=80000"})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
  for (const std::string text : {"Failed to reserve 17179869184 bytes of GPU virtual address space",
                                 "gpu0: 39.4 GiB of 40.0 GiB used; allocation refused",
                                 "model does not fit: weights 31.2 GiB + kv 6.0 GiB > 24.0 GiB of GPU memory",
                                 "error: GPU memory 23.1GiB over quota 20.0GiB for job 771, terminating",
                                 "vkCreateImage: extent 32768x32768 exceeds maxImageDimension2D 16384"})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
  EXPECT_EQ(memory_of("Could not pin 8589934592 bytes: Resource temporarily unavailable (RLIMIT_MEMLOCK 65536)"),
            "statement_pinned");
  EXPECT_EQ(memory_of("ERROR:std::exception: bad allocation"), "statement_host");
  EXPECT_EQ(memory_of("Your session crashed after using all available RAM."), "statement_host");
  const std::string need = answer(
      "| Error: Device \"GTX 1050 Ti\" does not have enough memory. |\n|  Allocating another 8680 MB would use a total "
      "of 11573 "
      "MB / 4095 MB. |");
  EXPECT_NE(need.find("TOO BIG"), std::string::npos) << need;
}

TEST(Statement, TheRelationGivesTheAmountsTheirRoles) {
  const std::string piece = "Buffer size 640000000 is greater than the maximum buffer size (268435456)";
  EXPECT_EQ(figure(piece, Figure::asked), 640000000);
  EXPECT_EQ(figure(piece, Figure::allowed), 268435456);
  EXPECT_NE(answer(piece).find("no piece may have more than 256.0 MiB"), std::string::npos) << answer(piece);
  EXPECT_NE(answer(piece).find("divide what is asked for"), std::string::npos);
  EXPECT_EQ(answer(piece).find("raise it"), std::string::npos);
  const std::string quota = "[vgpu-core ERROR (pid:30 allocator.c:53)]: Device 0 OOM 3171158016 / 3145728000";
  EXPECT_NE(answer(quota).find("A LIMIT: 2.95 GiB would be in use, and 2.93 GiB are allowed"), std::string::npos)
      << answer(quota);
  const std::string wrapped = "[vgpu-core ERROR (allocator.c:53)]: Device 0 OOM 18446744073707737660 / 24146608128";
  EXPECT_NE(answer(wrapped).find("A WRONG SIZE"), std::string::npos) << answer(wrapped);
  // What is in use is this process's, where far more is not free.
  const std::string own =
      answer("orig free=358350848 total=4227727360 limit=4294967296 usage=8520704\ncuMemoryAllocate failed res=2\n");
  EXPECT_NE(own.find("OTHERS HOLD IT"), std::string::npos) << own;
  EXPECT_NE(own.find("3.94 GiB = 8.1 MiB of this process + 3.60 GiB held outside + 341.8 MiB free"), std::string::npos)
      << own;
}

TEST(Statement, FreeInPiecesIsFragmentationForAnyProgram) {
  const std::string out = answer(
      "heap[0]: 9.8 GiB free in 4120 blocks, largest block 512 MiB: unable to satisfy request for 2.25 GiB of device "
      "memory");
  EXPECT_NE(out.find("FRAGMENTATION"), std::string::npos) << out;
}

TEST(Statement, MemoryIsWhatIsAllocatedUnlessAnotherThingIsNamed) {
  for (const std::string text :
       {"gpu: Failed to allocate MFQE framebuffer", "amdgpu: amdgpu_bo_alloc failed. (4194304)",
        "radeonsi: can't allocate a main shader part", "aom: Failed to allocate cm->mvs",
        "hevc: Failed to create decode context: 2 (buffer allocation failed)"})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
  for (const std::string text :
       {"unable to allocate any listen sockets on port 8080", "Cannot allocate color red", "failed to allocate vgpr",
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        "AT-SPI: Unable to allocate D-Bus slot"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Statement, ALackHasSeveralWords) {
  for (const std::string text :
       {"svc: no memory for strdup", "switch failed due to memory shortage!", "E: lack of GPU memory",
        "Failed to reserve shared memory. (error = 12)", "GPU OOM: need 12.5 GiB but GPU 0 has 10.9 GiB free",
        "TotalUsed : 29356337664 plus alloc size : 301990400 is more than total mem size : 29464985600."})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
  for (const std::string text : {"no memory region specified for the section", "No memory nodes are there",
                                 "nvidia-smi shows 2 GB of 24 GB in use, so this is not an out of memory problem"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Statement, WhatIsAllocatedOrWhoEndsItNamesTheHost) {
  for (const std::string text :
       {"Error: cannot allocate vector of size 7.5 Mb", "Error: vector memory exhausted (limit reached?)",
        "watcher.go:88] Created an OOM event in container {id: 7}", "kernel: Memory cgroup out of memor",
        "oomd[77]: [Ruleset.cpp:12] Running Action=kill_by_memory_size",
        "Ran out of memory allocating 4096 bytes. ページング ファイルが小さすぎます"}) {
    const auto explanation = explain(read_messages(text));
    ASSERT_TRUE(explanation) << text;
    EXPECT_EQ(explanation->cause, Cause::host) << text << ": " << explanation->because;
  }
  EXPECT_NE(cause_of("Failed to allocate device vector A (error code out of memory)!"), Cause::host);
  EXPECT_TRUE(read_messages("With jemalloc the default is exceeded and the program fails to start").empty());
}

TEST(Statement, TheSentenceOfAFailureNamesItsMemoryBeforeOthersDo) {
  const std::string text =
      "When I run it with a long prompt it asks for one buffer that is too large for the driver. The largest size of a "
      "MTLBuffer (maxBufferLength) is 20 GB on it, so the allocation fails though the system has enough. It is not a "
      "matter of memory pressure.";
  EXPECT_EQ(cause_of(text), Cause::limit);
}

TEST(Statement, TheSizeOfOneVariableIsALimit) {
  EXPECT_EQ(cause_of("gpu:array:size, The maximum variable size that the device allows is exceeded."), Cause::limit);
  EXPECT_EQ(cause_of("* Device #2: The device does not provide enough allocatable device-memory for this"),
            Cause::unknown);
}

TEST(Statement, ASummaryOfTheAllocatorThatCountsAFailureIsOne) {
  const auto summary = [](int count) {
    return "|            CUDA OOMs: " + std::to_string(count) +
           "            |        cudaMalloc retries: 2         |\n"
           "| Allocated memory      |   1024 MiB |   2048 MiB |   9000 GiB |   8999 GiB |\n";
  };
  const auto messages = read_messages(summary(1));
  const auto explanation = explain(messages);
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->cause, Cause::unknown);
  EXPECT_EQ(explanation->failure().figures.get(Figure::allocated), 1024 * kMiB);
  EXPECT_FALSE(explain(read_messages(summary(0))));
}

TEST(Statement, ACodeIsOneHoweverItsPartsAreJoined) {
  for (const std::string text :
       {"ray.RayOutOfMemoryError", "E: CL_MEM_OBJECT_ALLOCATION_FAILURE", "E: MTLCommandBufferErrorOutOfMemory",
        "E: hipErrorOutOfMemory", "E: STATUS_NO_MEMORY", "E: 0xC000012D", "E: VK_ERROR_MEMORY_MAP_FAILED",
        "E: ERR_MEMORY_ALLOCATION_FAILED", "cl::Buffer: error `-61`",
        "clEnqueueNDRangeKernel failed with error code -4", "vkQueueSubmit: error -2", "mmap failed, errno 12",
        "[drm] Failed to pin framebuffer with error -12", "the call set the error: cudaErrorMemoryAllocation"})
    EXPECT_EQ(read_messages(text).size(), 1U) << text;
  for (const std::string text :
       {"alloc_failures=0 rate 3", "error -2 in the shell", "cl_device_error count", "set_out_of_memory_handler"})
    EXPECT_TRUE(read_messages(text).empty()) << text;
}

TEST(Statement, APartOfAWholeGivesBoth) {
  for (const std::string text :
       {"gpu: could not allocate 1.50 GiB: 23.1 GiB of 24.0 GiB in use", "gpu: out of memory, usage 23.1/24.0 GiB",
        "gpu: out of memory: 23.1 GiB used out of 24.0 GiB"}) {
    EXPECT_NEAR(figure(text, Figure::used), 23.1 * kGiB, kMiB) << text;
    EXPECT_NEAR(figure(text, Figure::total), 24.0 * kGiB, kMiB) << text;
  }
  const std::string free = "cudaMalloc of 512 MiB failed: 100 MiB free of 8192 MiB";
  EXPECT_EQ(figure(free, Figure::asked), 512 * kMiB);
  EXPECT_EQ(figure(free, Figure::free), 100 * kMiB);
  EXPECT_EQ(figure(free, Figure::total), 8192 * kMiB);
  // A code is not a size.
  EXPECT_EQ(figure("CreateResource failed with HRESULT 8007000e, \"SizeBytes\": 201326592", Figure::asked), 201326592);
  const std::string bound =
      "[GPU] Exceeded max size of memory object allocation: requested 4831838208 bytes, but max "
      "alloc size supported by device is 1073741824 bytes.Please try to reduce batch size";
  EXPECT_EQ(figure(bound, Figure::asked), 4831838208);
  EXPECT_EQ(figure(bound, Figure::allowed), 1073741824);
}

TEST(Statement, WhatIsHeldAndAskedForExceedsTheLimit) {
  EXPECT_NE(answer("[ERROR] AddMemBlock: TotalUsedMem : 29356337664 plus alloc size : 301990400 is more than total mem "
                   "size : 29464985600.")
                .find("A LIMIT: 27.34 GiB were in use and 288.0 MiB requested, which is 27.62 GiB, and 27.44 GiB"),
            std::string::npos);
}

TEST(Remark, TheLogIsBelievedBeforeWhoTellsOfIt) {
  const std::string text =
      "The game crashes on startup, in the log it tries to allocate 64mb of memory and fails, and I do not know why\n\n"
      "err:   DxvkMemoryAllocator: Memory allocation failed\nerr:     Size:      65536\n";
  EXPECT_NE(answer(text).find("64.0 KiB were requested"), std::string::npos) << answer(text);
}

TEST(Remark, WhatTheTextShowsBesideDecidesOrIsSaid) {
  // A table that shows the contrary.
  EXPECT_NE(answer("Failed to allocate 16.00 GB GPU memory (0.00 GB available)\n"
                   "|   0  Tesla V100-SXM2...  On   | 00000000:88:00.0 Off |                    0 |\n"
                   "| N/A   44C    P0    44W / 300W |      0MiB / 32480MiB |      0%      Default |\n")
                .find("memory is not short"),
            std::string::npos);
  // A setting that takes most of the device.
  const std::string setting =
      "ti.init(arch=ti.cuda, device_memory_GB=9)\n"
      "CUDA Error CUDA_ERROR_OUT_OF_MEMORY: out of memory while calling malloc\n";
  EXPECT_NE(answer(setting).find("the text sets device_memory_GB=9"), std::string::npos);
  EXPECT_NE(answer("I have an RTX 3080 with 10GB of VRAM.\n" + setting)
                .find("A LIMIT: the text sets device_memory_GB=9, which takes 9.00 GiB of the device's 10.00 GiB"),
            std::string::npos);
  EXPECT_EQ(answer("gpu_mem_used_max=9\ncuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY").find("the text sets"),
            std::string::npos);
  // Room before.
  EXPECT_NE(answer("Free Intel GPU memory BEFORE: 32155.87 MiB\nFailed to allocate 15.8 GiB on device!\n")
                .find("31.40 GiB were free by a line above"),
            std::string::npos);
  // Several programs.
  EXPECT_NE(answer("it fails if I have 2 kernels running\n\nE: cudaMalloc: out of memory\n").find("OTHERS HOLD IT"),
            std::string::npos);
  // Of two cards none is the one.
  EXPECT_EQ(figure("on an RTX 4070 with 12GB VRAM and an RTX 3090 with 24GB VRAM.\ncuMemAlloc: out of memory\n",
                   Figure::total),
            0);
}

TEST(Remark, WhatElseTheTextTells) {
  // A smaller input fits.
  EXPECT_NE(answer("It runs perfectly with smaller files.\nBut with larger images it crashes:\n"
                   "Fatal error: cuMemAlloc: out of memory\n")
                .find("TOO BIG"),
            std::string::npos);
  // An object without bytes.
  EXPECT_NE(answer("dl_fn->cuda_dl->cuCtxCreate(&ctx, 0, cu_device) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory")
                .find("an object that takes hardly any memory"),
            std::string::npos);
  // What is in use is this allocator's.
  EXPECT_NE(answer("WARNING: CUDA memory allocation failed\n"
                   "Effective GPU memory usage: 99.55% (11.688 GiB/11.741 GiB)\n"
                   "Memory pool usage: 8.505 GiB (10.406 GiB reserved)\n")
                .find("FULL: 11.69 GiB of the device's 11.74 GiB were in use, 10.41 GiB of them by this allocator"),
            std::string::npos);
  // One size alone is what is asked for.
  EXPECT_EQ(figure("RuntimeError: Memory allocation failed on device: cuda for 120 bytes", Figure::asked), 120);
  EXPECT_NE(answer("Model loading was stopped due to insufficient system resources. Under the current settings, this "
                   "model requires approximately NaN undefined of memory.")
                .find("is not a number (NaN)"),
            std::string::npos);
  EXPECT_NE(answer("error: could not compile: killed out of memory").find("HOST MEMORY"), std::string::npos);
  EXPECT_TRUE(read_messages("oom_kill 0").empty());
  // A table that was made after the program had ended.
  EXPECT_NE(answer("CUDA error <out of memory>\n|   0  NVIDIA GeForce RTX 4060        On  | 00000000:01:00.0  On |\n"
                   "|  0%   39C    P5              N/A / 115W |    736MiB /  8188MiB |      0%      Default |\n")
                .find("made after it"),
            std::string::npos);
}

TEST(Host, WhoHoldsMostIsNamed) {
  const std::string list =
      "[  518.05] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
      "[  518.05] [   4711]  1000  4711  4294967  3123456 1234567        0             0 python3\n"
      "[  518.05] [    612]     0   612    12345     1072   65536        0         -1000 sshd\n"
      "[  518.06] Out of memory: Killed process 612 (sshd) total-vm:11964kB, anon-rss:4288kB, file-rss:0kB\n";
  EXPECT_NE(answer(list).find("the most is held by process 4711 python3 (11.92 GiB)"), std::string::npos)
      << answer(list);
  EXPECT_NE(
      answer("RayOutOfMemoryError: More than 95% of the memory on node a is used (11.8 / 12.3 GB). The top 5 are:\n"
             "\nPID\tMEM\tCOMMAND\n28442\t5.0GB\tray_X:alloc()\n")
          .find("process 28442 ray_X:alloc() (5.00 GiB)"),
      std::string::npos);
}

TEST(Host, AKillIsNoLeakAndADenialNone) {
  EXPECT_NE(answer("the container keeps dying after a couple of hours with exit code 137\n").find("HOST MEMORY"),
            std::string::npos);
  EXPECT_TRUE(read_messages("OOMKilled:false,").empty());
  EXPECT_TRUE(read_messages("{\"OOMKilled\": false}").empty());
  EXPECT_NE(answer("..\\c10\\core\\impl\\alloc_cpu.cpp: DefaultCPUAllocator: not enough memory: you tried to allocate "
                   "66846720 bytes.")
                .find("enlarge the page file"),
            std::string::npos);
}

TEST(Advice, BothAreSaidWhereEitherWouldHaveMadeRoom) {
  EXPECT_NE(answer("ValueError: Free memory on device (19.77/22.05 GiB) on startup is less than desired GPU memory "
                   "utilization (0.9, 19.84 GiB)")
                .find("both: a share that is set 71.7 MiB too high"),
            std::string::npos);
}

TEST(Statement, AnAllocationThatIsRejectedIsOne) {
  const std::string out = answer(
      "gpu allocator: request of 3.0 GiB rejected, 23.7 GiB capacity, 20.9 GiB held by other tenants, 1.1 GiB "
      "available");
  EXPECT_NE(out.find("OTHERS HOLD IT"), std::string::npos) << out;
  EXPECT_NE(out.find("23.70 GiB = 22.60 GiB in use + 1.10 GiB free; 3.00 GiB asked for: 1.90 GiB short"),
            std::string::npos)
      << out;
  EXPECT_EQ(memory_of("[enforce fail at CPUAllocator.cpp:56] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0"),
            "statement_host");
  EXPECT_EQ(memory_of("mmap of 549755813888 bytes failed: ulimit -v is 67108864 kB"), "statement_host");
}

TEST(Remark, ACardIsKnownByItsModel) {
  const std::string out = answer(
      "XLA: RESOURCE_EXHAUSTED: the program needs 14.44GiB of device memory\nout of memory on the "
      "GPU\n\nI am running a 3080 Ti GPU.\n");
  EXPECT_NE(out.find("12.00 GiB"), std::string::npos) << out;
  // The RTX 3080 was sold with 10 and 12 GB, and the laptop variant is another card.
  for (const std::string card : {"I have an RTX 3080.", "I have an RTX 4090 laptop.", "It is line 4090."})
    EXPECT_EQ(figure("cuMemAlloc: out of memory\n" + card + "\n", Figure::total), 0) << card;
}

TEST(Remark, LessThanTheDeviceHasIsALimit) {
  const std::string message =
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB "
      "of "
      "which 15.09 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by "
      "PyTorch "
      "but unallocated.\n\n";
  const std::string out = answer(message + "amdgpu 0000:c5:00.0: amdgpu: VRAM: 98304M\n");
  EXPECT_NE(out.find("A LIMIT: 16.00 GiB were requested; the program is shown 15.24 GiB"), std::string::npos) << out;
  EXPECT_EQ(out.find("raise it"), std::string::npos) << out;
  // Two cards, and several of one kind.
  for (const std::string text : {"I have a card with 24 GB and a card with 96 GB.", "The cards have 30.5 GB of VRAM."})
    EXPECT_EQ(answer(message + text + "\n").find("A LIMIT"), std::string::npos) << text;
}

TEST(Remark, ANeedThatNoMachineHasIsAWrongSize) {
  const std::string out =
      answer("Allocate: no space left\n\nThis will require 1.71799e+10Gb of memory, whatever is selected\n");
  EXPECT_NE(out.find("A WRONG SIZE: 16.0 EiB"), std::string::npos) << out;
  EXPECT_EQ(answer("encoder: cuMemAlloc: out of memory\nIt works with 1080p sources\n").find("WRONG SIZE"),
            std::string::npos);
}

TEST(Statement, SharesItsWordsWithTheLogs) {
  const std::string german =
      "gpu allocator: out of memory: 3.5 GiB belegt, 0.4 GiB frei, 4.0 GiB gesamt, 1.0 GiB requested";
  EXPECT_EQ(figure(german, Figure::used), 3.5 * kGiB);
  EXPECT_EQ(figure(german, Figure::free), 0.4 * kGiB);
  EXPECT_EQ(figure(german, Figure::total), 4 * kGiB);
  EXPECT_EQ(figure("gpu 3: out of memory, requested 2.0 GiB", Figure::device), 3);
}

TEST(Remark, WhatTheProgramAdvisesIsTheAdvice) {
  const std::string limit = answer(
      "Buffer size (870585948) exceeds the max buffer size limit (536870912). This adapter supports a higher "
      "maxBufferSize "
      "of 4294967296, which can be specified in requiredLimits when calling requestDevice().");
  EXPECT_NE(limit.find("can be specified in requiredLimits"), std::string::npos) << limit;
  const std::string wrapped =
      answer("Your GPU memory is full.\nTry reducing the timeline resolution\nor the number of correctors.\n");
  EXPECT_NE(wrapped.find("itself advises: Try reducing the timeline resolution or the number of correctors"),
            std::string::npos)
      << wrapped;
  EXPECT_EQ(answer("gpu: out of memory\nI will try it again tomorrow\n").find("itself advises"), std::string::npos);
}

TEST(Remark, GrowthAndOthersAreFoundByTheirWordsAndNotByPhrases) {
  for (const std::string text :
       {"Even when I repeat the same stage, vram usage is always growing until it crashes:\n"
        "00:31:12.904 |E| GPU.MainThread : Unexpected API error \"ErrorOutOfDeviceMemory\".",
        "It rapidly runs out of memory:\nD3D11: Failed to create RenderTexture, error 0x8007000e",
        "Everything is normal until 2 hours of playing, then\nOUT OF VIDEO MEMORY! ( vmaAllocateMemory )"})
    EXPECT_NE(answer(text).find("LEAK SUSPECTED"), std::string::npos) << text << answer(text);
  for (const std::string text :
       {"Now if I also run deployment A on the same card, A crashes with:\ncudaMalloc: out of memory",
        "It happens while Wallpaper Engine is open.\n[e] d3d11: out of video memory",
        "I had a second process on this GPU using it.\ncudaMalloc: out of memory"})
    EXPECT_NE(answer(text).find("OTHERS HOLD IT"), std::string::npos) << text << answer(text);
  for (const std::string text : {"It also uses the CPU.\ncudaMalloc: out of memory",
                                 "It fails when running the other model.\ncudaMalloc: out of memory",
                                 "Memory does not grow.\ncudaMalloc: out of memory"})
    EXPECT_NE(answer(text).find("CANNOT TELL"), std::string::npos) << text << answer(text);
}

TEST(Advice, AHigherLimitGivesNothingThatTheDeviceDoesNotHave) {
  const std::string out = answer("EnforceNotMet: enforce allocating <= available failed, 10513462067 > 1369702144");
  EXPECT_EQ(out.find("raise it"), std::string::npos) << out;
  EXPECT_NE(out.find("a lower one (FLAGS_fraction_of_gpu_memory_to_use)"), std::string::npos) << out;
}

TEST(Host, OneKillIsOneFailure) {
  const auto out =
      explain(read_messages("Memory cgroup out of memory: Kill process 24572 (java) score 0 or sacrifice child\n"
                            "Killed process 28438 (java) total-vm:20255636kB, anon-rss:466160kB\n"));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->failures.size(), 1U);
  EXPECT_NE(out->next_step.find("control group"), std::string::npos) << out->next_step;
}

TEST(Host, ALimitOfTheRuntimeIsNotTheHosts) {
  const std::string out = answer(
      "java.lang.OutOfMemoryError: Cannot reserve 65536 bytes of direct buffer memory (allocated: 8589934592, limit: "
      "8589934592)");
  EXPECT_NE(out.find("A LIMIT"), std::string::npos) << out;
  EXPECT_NE(out.find("-XX:MaxDirectMemorySize"), std::string::npos) << out;
}

TEST(Statement, WordsOfTheHostDecideAgainstTheDevice) {
  for (const std::string text :
       {"RuntimeException: Can't allocate [HOST] memory: 998662; threadId: 35\n\tat CudaDirectProvider.malloc\n",
        "app(19477) malloc: can't allocate region\n:*** mach_vm_map(size=1448378368, flags: 100) failed (error "
        "code=3)\n",
        "Conv node. Name:'347_nchwc' BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of "
        "size "
        "285081600\n"})
    EXPECT_EQ(memory_of(text), "statement_host") << text;
  EXPECT_EQ(memory_of("FATAL ERROR: CudaTileListKernel::build, maximum shared memory allocation exceeded\n"),
            "statement_scratch");
  EXPECT_NE(answer("VkCreateFence failed with ERROR_OUT_OF_HOST_MEMORY (file descriptors: 303, soft limit: 8192)\n")
                .find("CANNOT TELL"),
            std::string::npos);
}

TEST(Statement, ARuntimesOwnLimitIsOne) {
  for (const std::string text :
       {"FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n",
        "distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\n",
        "java.lang.OutOfMemoryError: Physical memory usage is too high: physicalBytes = 8G\n",
        "EnforceNotMet: enforce allocating <= available failed, 10513462067 > 1369702144\n"})
    EXPECT_NE(answer(text).find("A LIMIT"), std::string::npos) << text;
}

TEST(Statement, AFigureCountsByTheWordsBesideIt) {
  EXPECT_EQ(figure("CUDA error: out of memory, (freed 0 bytes)\n", Figure::free), 0);
  EXPECT_EQ(figure("VkResult: ERROR_OUT_OF_DEVICE_MEMORY (file descriptors: 303, soft limit: 8192)\n", Figure::allowed),
            0);
  EXPECT_EQ(figure("GPU out of memory, using qwen3-4b\n", Figure::used), 0);
  EXPECT_EQ(figure("OpenCL out of memory, total of AMD Radeon HD 8670M\n", Figure::total), 0);
  EXPECT_EQ(figure("kernel: Killed process 11726, UID 498, (mysqld) total-vm:7823732kB, anon-rss:2539268kB, "
                   "file-rss:768kB\n",
                   Figure::resident),
            2539268.0 * 1024);
}

TEST(Statement, APoolIsALimit) {
  const std::string words = answer("Out of CUDA pre-allocated memory.\nConsider init(device_memory_fraction=0.9)\n");
  EXPECT_TRUE(words.starts_with("A LIMIT: what ran out is the pool")) << words;
}

TEST(Statement, WhatAsksNamesTheMemory) {
  for (const std::string text :
       {"mkl_malloc: failed to allocate memory\n", "worker: malloc failed to allocate 64 MB\n",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"})
    EXPECT_TRUE(answer(text).starts_with("HOST MEMORY")) << text << answer(text);
  // A library of the device throws the same.
  for (const std::string text : {"MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/include/pool.hpp\n",
                                 "what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n"})
    EXPECT_TRUE(answer(text).starts_with("CANNOT TELL")) << text << answer(text);
  EXPECT_EQ(memory_of("`auto tile = sycl::local_accessor<float>(9000, h);`\n\nUR_RESULT_ERROR_OUT_OF_RESOURCES\n"),
            "statement_scratch");
  const std::string threads = answer("libgomp: Thread creation failed: Resource temporarily unavailable\n");
  EXPECT_NE(threads.find("no more threads"), std::string::npos) << threads;
}

TEST(Statement, AHeapOfTheDeviceIsNoneWithoutRoom) {
  const std::string words = answer(
      "vkAllocateMemory: attempting to allocate 33554440 bytes from heap 2, but size of that heap is only 33554432 "
      "bytes.\n");
  EXPECT_TRUE(words.starts_with("A LIMIT: 32.0 MiB were requested in one piece")) << words;
}

TEST(Statement, ACodeNeedsNoWords) {
  for (const std::string text :
       {"vkAllocateMemory returned -2\n", "vkAllocateMemory => -2\n",
        "Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")\n", "DriverError(2, \"out of memory\")\n"})
    EXPECT_TRUE(answer(text).starts_with("CANNOT TELL")) << text << answer(text);
  EXPECT_EQ(answer("log(LEVEL, \"out of memory\");\n"), "");
}

TEST(Statement, ANeedAboveABoundIsAFailureByItsAmounts) {
  // Of any program, in any order of words: two amounts, what each is, and a word that sets them against each other.
  EXPECT_TRUE(
      answer("round 412 needs 6.20 GB of memory but the device has 6.00 GB\n").starts_with("TOO BIG: 6.20 GiB"));
  EXPECT_TRUE(answer("the plan wants 9000 MB, only 8192 MB of VRAM can be used\n").starts_with("TOO BIG"));
  EXPECT_TRUE(answer("Cannot grow the heap: requested 1074790400 bytes, but the limit is 1073741824 bytes\n")
                  .starts_with("A LIMIT: 1.00 GiB were requested"));
  EXPECT_TRUE(answer("tile: too much shared memory used (50000/49152)\n").starts_with("ANOTHER RESOURCE"));
  EXPECT_TRUE(answer("buffers of this core take 1700000 B, which is beyond the L1 size of 1500000 B\n")
                  .starts_with("ANOTHER RESOURCE"));
  for (const std::string text :
       {"needs 4.00 GB but the device has 6.00 GB\n", "the upload needs 6 GB but the disk has only 4 GB\n",
        "peak memory 12.1 GB, 8.0 GB free\n", "step 7: 900 MB allocated, limit 800 MB\n"})
    EXPECT_EQ(answer(text), "") << text;
}

TEST(Statement, AnEndBySignal9IsTheHostsUnlessAnotherSenderIsNamed) {
  EXPECT_TRUE(answer("loading shard 3 of 9\nKilled\n").starts_with("HOST MEMORY"));
  EXPECT_TRUE(answer("agent[7]: Sending SIGKILL to group {\"by\": \"runtime.OOMController\"}\n").starts_with("HOST"));
  EXPECT_TRUE(answer("nohang: OOM threshold reached, killing process 4711\n").starts_with("HOST MEMORY"));
  for (const std::string text :
       {"job 7: time limit reached\nKilled\n", "pod ended: Reason: Error\nrunner exited with code 137\n",
        "liveness probe failed, restarting\nexit code 137\n", "$ kill -9 4711\nrun.sh: line 3: 4711 Killed  ./a\n"})
    EXPECT_TRUE(answer(text).starts_with("CANNOT TELL") || answer(text).empty()) << text << answer(text);
}

TEST(Statement, AnAllocationThatFailsForAnotherReasonIsNone) {
  for (const std::string text :
       {"failed to allocate memory: size 64.12 K failed. (The allocation returned the error "
        "\"cudaErrorNotSupported\")\n",
        "CUDA error: an illegal memory access was encountered: pool.cu: 12\nUnable to allocate memory of size 12\n",
        "NCCL WARN Cuda failure 'invalid argument'\n\nNCCL WARN Error while creating shared memory segment "
        "/dev/shm/n-1 (size "
        "9637888)\n"}) {
    const auto messages = read_messages(text);
    EXPECT_FALSE(explain(messages)) << text << answer(text);
    EXPECT_FALSE(events_of({}, messages).empty()) << text;
  }
  EXPECT_EQ(answer("听说是显存不够。\nRuntimeError: CUDA error: device kernel image is invalid\n"), "");
  EXPECT_TRUE(answer("cudaMalloc failed with cudaErrorMemoryAllocation: out of memory\n").starts_with("CANNOT TELL"));
}

TEST(Statement, WordsBesideAFailureShowPiecesAndOthers) {
  EXPECT_TRUE(answer("failed to allocate 512 MiB on the GPU, 2.1 GiB are free: the memory is badly fragmented\n")
                  .starts_with("FRAGMENTATION"));
  EXPECT_TRUE(
      answer("CUDA error: out of memory (try max_split_size_mb to avoid fragmentation)\n").starts_with("CANNOT"));
  EXPECT_TRUE(
      answer("RuntimeError: CUDA error: out of memory\n显存被别人的程序占了，怎么办？\n").starts_with("OTHERS"));
  EXPECT_TRUE(answer("CUDA error: out of memory\nWhy? A second render process holds the card at the same time.\n")
                  .starts_with("OTHERS"));
  EXPECT_TRUE(answer("CUDA out of memory. Tried to allocate 120.00 GiB\n\nAny idea? NVIDIA gpu with 8gb.\n")
                  .starts_with("TOO BIG: 120.00 GiB were requested, and the device has 8.00 GiB"));
}

TEST(Statement, ATitleIsAReportWhereTheTextHasNoOther) {
  const std::string rest = "The tool should look at what is left of the card before it starts its work on it.\n";
  EXPECT_TRUE(
      answer("GPU out of memory error when running on a GPU with another process\n" + rest).starts_with("OTHERS"));
  EXPECT_TRUE(answer("If I start a game and then the encoder, I have a \"GPU out of memory\" from it.\n" + rest)
                  .starts_with("OTHERS"));
  EXPECT_EQ(answer("GPU out of memory when the batch is too large: take a smaller one"), "");
}

TEST(Statement, WhatIsNeitherTheDevicesNorTheHostsIsAnotherResource) {
  EXPECT_TRUE(
      answer("Entry function 'mix' uses too much shared data (0xd000 bytes, 0xc000 max)\n")
          .starts_with("ANOTHER RESOURCE: a kernel needs 52.0 KiB of the memory on the chip, and may have 48.0"));
  EXPECT_TRUE(answer("OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.\n")
                  .starts_with("ANOTHER RESOURCE: a kernel needs 128.0 KiB"));
  EXPECT_TRUE(answer("solver: pthread_create failed: Resource temporarily unavailable\n").starts_with("ANOTHER"));
  EXPECT_TRUE(answer("wine: out of virtual address space, no room for 64 MB\n")
                  .starts_with("ANOTHER RESOURCE: the "
                               "addresses"));
}

TEST(Statement, ARequirementOfTheProgramIsALimit) {
  const std::string words = answer("[opencl] discarding device 1 'Card' due to insufficient global memory (1024MB).\n");
  EXPECT_TRUE(words.starts_with("A LIMIT")) << words;
}

TEST(Statement, AnEndWithAnotherReasonIsNone) {
  EXPECT_EQ(answer("  \"OOMKilled\": false,\n  \"Dead\": false,\n  \"ExitCode\": 137,\n"), "");
  EXPECT_EQ(answer("Last State: Terminated\n  Reason: ContainerCannotRun\n  Exit Code: 137\n"), "");
  EXPECT_NE(answer("Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137\n"), "");
  // Whatever the language of the shell, and whatever failed after it.
  for (const std::string text : {"run.sh: riga 24:  8612 Killed   python train.py\n",
                                 "run.sh: Zeile 7: 311 Killed ./a\ncat: log: No such file or directory\n"})
    EXPECT_EQ(memory_of(text), "statement_killed") << text;
}

TEST(Statement, FiguresWithoutAFailureWordDecide) {
  EXPECT_TRUE(answer("Scene is too large: 1x 1600 MB of memory required, 1x 640 MB available\n").find("1.56 GiB") !=
              std::string::npos);
  EXPECT_TRUE(answer("The byte size of the arguments (86973087744) exceeds the base limit (81174881894) of the GPU.\n")
                  .starts_with("A LIMIT"));
  EXPECT_TRUE(
      answer("CreateResource failed: HRESULT=8007000e\n{\n  \"Budget\": {\n    \"BudgetBytes\": 3540000000,\n    "
             "\"UsageBytes\": 4229000000\n  }\n}\n")
          .starts_with("A LIMIT: 3.94 GiB would be in use"));
  EXPECT_TRUE(answer("model weights take 5.20GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes "
                     "1.42GiB; the rest of the memory reserved for KV Cache is -1.05GiB.\n")
                  .starts_with("A LIMIT: nothing is left for the KV cache: 1.05 GiB are missing"));
}

TEST(Remark, ANumberBeforeAColonCountsNothing) {
  EXPECT_TRUE(answer("process_linux.go:402: container init on gpu caused: cuda error: out of memory\n")
                  .starts_with("CANNOT TELL"));
}

TEST(Plan, BeforeTheFailureDecides) {
  const std::string fit = answer(
      "common_params_fit_impl: projected to use 24840 MiB of device memory vs. 22341 MiB of free device memory\n"
      "common_params_fit_impl: cannot meet free memory target of 1024 MiB, need to reduce device memory by 3523 MiB\n"
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4532.12 MiB on device 0: cudaMalloc failed: out of "
      "memory\n");
  EXPECT_TRUE(fit.starts_with("TOO BIG: its own plan before it needed 24.26 GiB, and 21.82 GiB were free")) << fit;
  const std::string component = answer(
      "[TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation failed due to insufficient "
      "GPU memory.\n\n"
      "The following component could not be created: KV cache\nTotal GPU memory (GiB): 140.06\n"
      "Free GPU memory before component creation attempt (GiB): 108.86\n");
  EXPECT_TRUE(component.starts_with("TOO BIG: KV cache, which could not be created, did not fit into the 108.86 GiB"))
      << component;
}

TEST(Plan, NamesThePartThatFailedAndWhatThoseBeforeItTook) {
  const std::string words = answer(
      "[serve] executor creation failed due to insufficient GPU memory\n"
      "The following part could not be built: draft model\n"
      "Total GPU memory: 47.40 GiB\nFree GPU memory: 20.10 GiB\n"
      "Built parts and free memory before/after each (MiB):\n"
      "Encoder: 48537 -> 30822\nTables: 30822 -> 30822\nSampler: 30822 -> 20582\n");
  EXPECT_NE(words.find("draft model, which could not be created, did not fit into the 20.10 GiB"), std::string::npos)
      << words;
  EXPECT_NE(words.find("created before it: 17.30 GiB of Encoder; 10.00 GiB of Sampler"), std::string::npos) << words;
}

TEST(Plan, ThatFillsTheDeviceIsItsOwnNeed) {
  const std::string words = answer(
      "[    2.101] amdgpu 0000:c4:00.0: amdgpu: 31744M of GTT memory ready.\n"
      "engine: preparing 12 tensors of the model: 29.50 GiB\n"
      "engine: hipMalloc of a chunk of 512.00 MiB failed: out of memory\n");
  EXPECT_TRUE(
      words.starts_with("FULL: 512.0 MiB were requested, and the program needs 29.50 GiB of the GTT's 31.00 GiB"))
      << words;
  EXPECT_NE(words.find("31.00 GiB = 29.50 GiB planned + 1.50 GiB beside that; 512.0 MiB asked for"), std::string::npos)
      << words;
  EXPECT_NE(words.find("amdgpu.gttsize"), std::string::npos) << words;
  // A plan that leaves enough shows nothing.
  EXPECT_TRUE(answer("amdgpu: 31744M of GTT memory ready.\nengine: preparing model tensors: 4.50 GiB\n"
                     "engine: hipMalloc of a chunk of 512.00 MiB failed: out of memory\n")
                  .starts_with("CANNOT TELL"));
}

TEST(Account, ABudgetWhoseUseTheProgramCountsIsItsLimit) {
  for (const std::string text : {"Foo engine 3.2: VRAM budget 6144 MB\n"
                                 "Foo: allocation of 512 MB for render target failed, 6000 MB of 6144 MB used\n",
                                 "[gfx] GPU memory budget: 6144 MiB\n"
                                 "[gfx] could not reserve 512 MiB of GPU memory, 6000 MiB of 6144 MiB in use\n"}) {
    const std::string words = answer(text);
    EXPECT_TRUE(words.starts_with("A LIMIT: 5.86 GiB were in use and 512.0 MiB requested, which is 6.36 GiB")) << words;
    EXPECT_NE(words.find("6.00 GiB allowed - 5.86 GiB held; 512.0 MiB asked for: 368.0 MiB short"), std::string::npos)
        << words;
  }
  EXPECT_TRUE(answer("Foo: VRAM budget 6144 MB\nFoo: allocation of 64 MB failed, 3000 MB of 6144 MB used\n")
                  .starts_with("CANNOT TELL"));
}

TEST(Account, ANamedProcessIsAnotherOne) {
  for (const std::string line :
       {"GPU 0 has 11264 MB; pid 900 (blender) uses 7000 MB", "GPU 0: 11264 MB total\nprocess 900 (blender): 7000 MB",
        "device 0 has 11264 MB, blender (pid 900) is using 7000 MB of it"}) {
    const std::string words = answer(line + "\nmyapp: error: hipMalloc(5368709120) returned hipErrorOutOfMemory\n");
    EXPECT_TRUE(
        words.starts_with("OTHERS HOLD IT: 5.00 GiB were requested; others held 6.84 GiB (process 900 blender "
                          "(6.84 GiB)) of the device's 11.00 GiB"))
        << words;
    EXPECT_NE(words.find("11.00 GiB = 6.84 GiB of others + 4.16 GiB beside them; 5.00 GiB asked for: 856.0 MiB short"),
              std::string::npos)
        << words;
  }
  // It may be the program that failed: by its name, or because nothing says which one that is.
  for (const std::string failure : {"blender: error: hipMalloc(5368709120) returned hipErrorOutOfMemory\n",
                                    "hipMalloc(5368709120) returned hipErrorOutOfMemory\n"})
    EXPECT_FALSE(answer("GPU 0 has 11264 MB; pid 900 (blender) uses 7000 MB\n" + failure).starts_with("OTHERS"))
        << failure;
  // There was room beside it.
  EXPECT_FALSE(answer("GPU 0 has 11264 MB; pid 900 (blender) uses 3000 MB\nmyapp: hipMalloc(1073741824) returned "
                      "hipErrorOutOfMemory\n")
                   .starts_with("OTHERS"));
}

TEST(Account, WhatCouldNotBeTakenIsTheRequest) {
  for (const char* const verb : {"could not reserve", "could not obtain", "unable to obtain", "failed to commit"}) {
    const std::string words = answer(std::string("[flux] device 0: 8192 MiB total, 7100 MiB in use\n[flux] ERROR: ") +
                                     verb + " 2048 MiB of device memory for the grid (only 1092 MiB available)\n");
    EXPECT_NE(words.find("8.00 GiB = 6.93 GiB in use + 1.07 GiB free; 2.00 GiB asked for: 956.0 MiB short"),
              std::string::npos)
        << verb << words;
  }
}

TEST(Host, IsToldAsItWas) {
  EXPECT_NE(
      answer("(raylet) node_manager.cc:3277: 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
             "crashed due to other reasons\n")
          .find("Ray ended 3 workers"),
      std::string::npos);
  const std::string pinned =
      answer("ggml_cuda_host_malloc: failed to allocate 0.00 MiB of pinned memory: out of memory\n");
  EXPECT_NE(pinned.find("pinning does not work here"), std::string::npos) << pinned;
  EXPECT_EQ(pinned.find("0 bytes were requested"), std::string::npos) << pinned;
}

TEST(Story, RequestsThatFailEachTimeForLessArePinnedInTheEnd) {
  const std::string words = answer(
      "could not allocate pinned host memory of size: 8589934592\ncould not allocate pinned host memory of size: "
      "7730940928\ncould not allocate pinned host memory of size: 6957846528\n");
  EXPECT_NE(words.find("the program continued: it asked for less"), std::string::npos) << words;
}

TEST(Advice, IsPossibleOnThatPlatform) {
  const std::string mac = answer(
      "RuntimeError: MPS backend out of memory (MPS allocated: 9.60 GiB, other allocations: 17.30 GiB, max allowed: "
      "27.20 "
      "GiB). Tried to allocate 310.00 MiB on private pool.\n");
  EXPECT_TRUE(mac.starts_with("HELD OUTSIDE THE ALLOCATOR")) << mac;
  EXPECT_EQ(mac.find("CUDA"), std::string::npos) << mac;
  EXPECT_EQ(mac.find("vramtrack holders"), std::string::npos) << mac;
  const std::string npu = answer(
      "RuntimeError: NPU out of memory. Tried to allocate 5.11 GiB (NPU 3; 60.96 GiB total capacity; 49.30 GiB already "
      "allocated; 49.30 GiB current active; 1.28 GiB free; 57.61 GiB reserved in total by PyTorch)\n");
  EXPECT_NE(npu.find("PYTORCH_NPU_ALLOC_CONF"), std::string::npos) << npu;
  EXPECT_EQ(npu.find("CUDA"), std::string::npos) << npu;
}

}  // namespace
}  // namespace vramtrack::explain
