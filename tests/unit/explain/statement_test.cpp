// Failed allocations without a known wording: found by their structure, with the memory, the figures and the outcome
// from the text.
#include "explain/statement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/units.hpp"
#include "explain/cause_words.hpp"
#include "explain/explanation.hpp"
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
double figure(const std::string& text, Figure which) {
  const auto messages = read_messages(text);
  return messages.empty() ? -1 : messages.front().figures.get(which).value_or(0);
}
void expect_went_on(bool went_on, const std::string& text) {
  const auto explanation = explain(read_messages(text));
  ASSERT_TRUE(explanation) << text;
  EXPECT_EQ(!explanation->failure().went_on.empty(), went_on) << text;
}
/// Checks the cause in the headline. tests/golden/words/explain/answers.txt has the words after it.
void expect_cause(Cause cause, const std::string& text) {
  EXPECT_TRUE(answer(text).starts_with(cause_words(cause))) << text << '\n' << answer(text);
}
void expect_other_cause(Cause cause, const std::string& text) {
  EXPECT_FALSE(answer(text).starts_with(cause_words(cause))) << text << '\n' << answer(text);
}
void expect_no_failure(const std::string& text) {
  EXPECT_EQ(answer(text), "") << text;
}
void expect_memory(std::string_view wording, const std::string& text) {
  EXPECT_EQ(memory_of(text), wording) << text;
}
void expect_figure(Figure which, double value, const std::string& text) {
  EXPECT_NEAR(figure(text, which), value, 0.5) << text;
}

TEST(Balance, LeavesOutWhatLiesInTheHostsMemory) {
  const auto explanation = explain(read_messages(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total "
      "capacity; 17.20 GiB already allocated; 0 bytes free; 19.15 GiB reserved in total by PyTorch)"));
  ASSERT_TRUE(explanation);
  EXPECT_EQ(balance_words(explanation->failure()), "");
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

/// Each in the words of one program; finding the structure does not identify the program.
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
        // processes that were killed for it
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
  expect_memory("statement_device", "worker: GPU ran out of memory");
  expect_memory("statement", "worker: ran out of memory");
  expect_memory("statement_device", "using GPU 0\nworker: ran out of memory");
  expect_memory("statement_host", "virtual memory exhausted: Cannot allocate memory");
  expect_memory("statement_host", "Ran out of memory. Last error: The paging file is too small for this operation");
  expect_memory("statement_pinned", "CUDA error out of memory\nReturn value 2 from cudaMallocHost(&chunk, size)");
  expect_memory("statement_shm", "cannot allocate 4096 bytes of shared memory in /dev/shm");
  expect_memory("statement_scratch",
                "ptxas error : Entry function 'f' uses too much shared data (0x10000 bytes, 0xc000 max)");
  expect_memory("statement_session", "[encoder] OpenEncodeSessionEx failed: out of memory (10)");
}

TEST(Statement, ReadsSizesByTheWordsBesideThem) {
  const std::string words = "gpu pool: Out of memory. Requested 8912 MB; Free 5898.5 MB";
  expect_figure(Figure::asked, 8912 * kMiB, words);
  expect_figure(Figure::free, 5898.5 * kMiB, words);
  const std::string behind =
      "insufficient GPU memory: 2095906816 bytes of memory found < 2667577216 bytes of memory required";
  expect_figure(Figure::total, 2095906816, behind);
  expect_figure(Figure::asked, 2667577216, behind);
  const std::string pair = "another job holds 22.6/24.5GB of the GPU: failed to allocate memory";
  EXPECT_NEAR(figure(pair, Figure::outside), 22.6 * kGiB, 1);
  EXPECT_NEAR(figure(pair, Figure::total), 24.5 * kGiB, 1);
  const std::string below =
      "gpu allocator out of memory\n [requestedSpace: 343146496 B]\n [totalFreeSpace: 81256448 B]\n";
  expect_figure(Figure::asked, 343146496, below);
  expect_figure(Figure::free, 81256448, below);
  expect_figure(Figure::allowed, 24576 * kMiB, "out of memory on the 24 576 MiB of the GPU, limit 24 576 MiB");
}

TEST(Statement, WhatWasFreeBeforeIsNotWhatWasFreeThen) {
  expect_figure(Figure::free, 0, "GPU 0: 8 GiB memory, 6 GiB free\nfailed to allocate 1 GiB of GPU memory");
  expect_figure(Figure::free, 512 * kMiB, "GPU 0: 8 GiB memory, 512 MiB free\nfailed to allocate 1 GiB of GPU memory");
}

TEST(Statement, TheMostSpecificProducerOfALineIsMeant) {
  const auto messages = read_messages(
      "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 4,096 bytes (allocated so far: 512 bytes).");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].wording->program, "CuPy");
}

TEST(Statement, ShowsWhetherTheProgramWentOn) {
  expect_went_on(true, "Failed to allocate 75 MiB of CUDA memory, falling back to pinned system memory\n");
  expect_went_on(false,
                 "Warning: GPU ran out of memory, retrying with tiles\n\n\n\n\n\n"
                 "cannot allocate 288 MiB of GPU memory: 512 MiB total\n");
}

TEST(Statement, AnotherReasonIsNoShortage) {
  for (const std::string text :
       {"PxgMemoryAllocator fail to allocate memory 675282944 bytes of the GPU!! Result = 700",
        "failed to allocate pinned system memory: CUDA driver version is insufficient for CUDA runtime version"})
    expect_no_failure(text);
}

TEST(Statement, RoomByWhatIsInUseIsNoShortage) {
  const std::string words = answer(
      "err:   DxvkMemoryAllocator: Memory allocation failed\nerr:     Size:      4096000\n"
      "err:   Heap 0: 328 MB allocated, 230 MB used, 8192 MB total\n");
  EXPECT_NE(words.find("the device had room"), std::string::npos) << words;
  EXPECT_NE(words.find("32 bits"), std::string::npos) << words;
}

TEST(Host, OfPaddleWhatOthersHoldIsNotItsOwn) {
  expect_cause(Cause::outside,
               "Out of memory error on GPU 0. Cannot allocate 45.776367MB memory on GPU 0, 44.376709GB memory has been "
               "allocated(actual using allocated memory 439.451172MB) and available memory is only 15.812500MB.");
}

TEST(Statement, AWrongSizeIsNoShortage) {
  expect_cause(Cause::bad_size, "HipAllocator out of memory\n[requestedSpace: 9223372036854775808 B]\n");
}

TEST(Statement, WhatRoseBeforeIsALeak) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += "step " + std::to_string(i) + " mem_allocated: " + std::to_string(1000 + 200 * i) + " MB\n";
  EXPECT_TRUE(answer(text + "GPU out of memory\n").starts_with("LEAK SUSPECTED: "))
      << answer(text + "GPU out of memory\n");
  std::string level;
  for (int i = 0; i < 10; ++i) level += "step mem_allocated: " + std::to_string(1000 + 200 * (i % 2)) + " MB\n";
  expect_other_cause(Cause::leak, level + "GPU out of memory\n");
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
    expect_no_failure(text);
}

TEST(Statement, AnEndBySignal9IsOneWhoeverTellsIt) {
  for (const std::string text :
       {"runner: task 7 finished with exit status 137", "[launcher] child died (exitcode: -9)",
        "supervisor: return code = -9", "job.sh: line 12:  4711 Killed                  ./solver",
        "gmake: *** [run] Killed", "Killed", "worker terminated by signal SIGKILL"})
    expect_memory("statement_killed", text);
  for (const std::string text : {"port 137 is open", "error code 13", "2026-09-01 -9 degrees", "kill -9 4711",
                                 "sending SIGKILL to process 4711", "137 files, exit code 1", "users killed by time"})
    expect_no_failure(text);
}

TEST(Statement, WhatIsHeldDecidesForAnyProgram) {
  const std::string full =
      "MLU out of memory. Tried to allocate 96.00 MiB (MLU 0; 22.50 GiB total capacity; 21.60 GiB already "
      "allocated; 60.00 MiB free; 21.90 GiB reserved)\n";
  expect_cause(Cause::full, full);
  expect_figure(Figure::allocated, 21.6 * kGiB, full);
  expect_figure(Figure::total, 22.5 * kGiB, full);
  expect_cause(Cause::outside,
               "gpu pool out of memory: requested 2 GiB, 24 GiB total, 1 GiB free, 6 GiB allocated by this program\n");
  expect_cause(Cause::fragmentation,
               "GPU out of memory. Tried to allocate 1.50 GiB. 24 GiB total, 200 MiB free, 15 GiB is allocated by it, "
               "and 6.50 GiB is reserved but unallocated\n");
  // On lines of its own, and wrapped.
  const std::string fields =
      "Allocator: GPU out of memory\nCurrently allocated : 15.16 GiB\n"
      "Requested : 512.00 KiB\nDevice limit : 15.99 GiB\nFree : 0 bytes\n";
  expect_cause(Cause::full, fields);
  expect_figure(Figure::allocated, 15.32 * kGiB,
                "gpu allocator: out of memory for 138.00 MiB\nof 15.90 GiB in total, and\n15.32 GiB is allocated\n");
  // A process's number is not a size.
  expect_figure(Figure::used, 0, "GPU out of memory: process 885415 has 22.18 GiB in use");
}

TEST(Statement, AComparisonWithWhatThereIsIsOne) {
  for (const std::string text : {"error: model needs more system memory (12.1 GiB) than is available (7.5 GiB)",
                                 "free memory on device 0 (3.2 GiB) is less than the requested 8 GiB",
                                 "Attempting to allocate 196.00M on the TPU. That was not possible."})
    EXPECT_FALSE(answer(text).empty()) << text;
  expect_cause(Cause::too_big, "TPU ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm.");
  for (const std::string text :
       {"memory use is less than yesterday", "larger than life", "it is 3 times smaller than before"})
    expect_no_failure(text);
}

TEST(Statement, WhatItFallsBackToDidNotFail) {
  expect_memory("statement_device", "Failed to allocate 75 MiB of CUDA memory, falling back to pinned system memory");
}

TEST(Statement, APlaceholderIsNoMessage) {
  for (const std::string text : {"OutOfMemoryError: Out of memory allocating A bytes (allocated so far: B bytes).",
                                 "failed to allocate %zu bytes of device memory"})
    expect_no_failure(text);
}

TEST(Statement, TheReasonMayStandAbove) {
  expect_no_failure(
      "No device available for decoder: device type vaapi needed.\n"
      "Device setup failed for decoder on input stream #0:0 : Cannot allocate memory\n");
}

TEST(Statement, GoesOnWhereTheNextLinesSucceed) {
  expect_went_on(true, "[RMM] [error] [FAILURE maximum pool size exceeded]\n[       OK ] Test.Of (3987 ms)\n");
  expect_went_on(true, "[warn] could not allocate a 64 MB atlas in video memory, using a smaller one\n");
  expect_went_on(false, "GPU out of memory\nTraceback (most recent call last)\nJob finished\n");
  // From a warning that it survived once.
  expect_went_on(true,
                 "[W] Tactic Device request: 538MB Available: 168MB. Device memory is insufficient.\n[W] Skipping "
                 "tactic 3\n\n\n\n[W] Tactic Device request: 812MB Available: 190MB. Device memory is "
                 "insufficient.\n");
}

TEST(Remark, OfTheCardIsNoAdviceAndNotWhatOthersHold) {
  // Advice, other programs' memory and shares are not the card.
  for (const std::string line :
       {"At least 4 GB of VRAM are recommended", "device:GPU:1 with 4096 MB memory", "4 GB of RAM"})
    expect_figure(Figure::total, 0, line + "\nGPU: failed to allocate 8 GiB of memory\n");
}

TEST(Remark, OfALongRunSuspectsALeak) {
  expect_cause(Cause::leak, "It runs fine, but after about 6 hours:\nCUDA error 2: out of memory\n");
  expect_cause(Cause::leak, "My run is fine for roughly 14 million steps, then stops with:\nGPU out of memory\n");
  expect_other_cause(Cause::leak, "It fails after 3 steps:\nGPU out of memory\n");
}

TEST(Statement, TheMostInOnePieceIsALimit) {
  expect_memory("statement_piece",
                "[GPU] Exceeded max size of memory object allocation: requested 5368709120 bytes, but max alloc size "
                "supported by device is 4294959104 bytes.\n");
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
    expect_memory("statement_piece", text);
  for (const std::string text :
       {"ERR [batch] failed to decode the batch: KV cache is full - try increasing it via the context size",
        "prompt is too long: 16535 tokens > 8221 maximum (prompt + generation); shorten the prompt or increase the KV "
        "cache "
        "budget",
        "[scene-cache] pool budget of 6144 MB reached: cannot place 412 MB (used 5998 MB)",
        "vkAllocateDescriptorSets failed: VK_ERROR_OUT_OF_POOL_MEMORY"})
    expect_memory("statement_pool", text);
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
  expect_memory("statement_pinned",
                "Could not pin 8589934592 bytes: Resource temporarily unavailable (RLIMIT_MEMLOCK 65536)");
  expect_memory("statement_host", "ERROR:std::exception: bad allocation");
  expect_memory("statement_host", "Your session crashed after using all available RAM.");
  const std::string need = answer(
      "| Error: Device \"GTX 1050 Ti\" does not have enough memory. |\n|  Allocating another 8680 MB would use a total "
      "of 11573 "
      "MB / 4095 MB. |");
  EXPECT_NE(need.find("TOO BIG"), std::string::npos) << need;
}

TEST(Statement, TheRelationGivesTheAmountsTheirRoles) {
  const std::string piece = "Buffer size 640000000 is greater than the maximum buffer size (268435456)";
  expect_figure(Figure::asked, 640000000, piece);
  expect_figure(Figure::allowed, 268435456, piece);
  const std::string wrapped = "[vgpu-core ERROR (allocator.c:53)]: Device 0 OOM 18446744073707737660 / 24146608128";
  expect_cause(Cause::bad_size, wrapped);
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
  expect_other_cause(Cause::host, "Failed to allocate device vector A (error code out of memory)!");
  EXPECT_TRUE(read_messages("With jemalloc the default is exceeded and the program fails to start").empty());
}

TEST(Statement, TheSentenceOfAFailureNamesItsMemoryBeforeOthersDo) {
  const std::string text =
      "When I run it with a long prompt it asks for one buffer that is too large for the driver. The largest size of a "
      "MTLBuffer (maxBufferLength) is 20 GB on it, so the allocation fails though the system has enough. It is not a "
      "matter of memory pressure.";
  expect_cause(Cause::limit, text);
}

TEST(Statement, TheSizeOfOneVariableIsALimit) {
  expect_cause(Cause::limit, "gpu:array:size, The maximum variable size that the device allows is exceeded.");
  expect_cause(Cause::unknown, "* Device #2: The device does not provide enough allocatable device-memory for this");
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
  expect_figure(Figure::asked, 512 * kMiB, free);
  expect_figure(Figure::free, 100 * kMiB, free);
  expect_figure(Figure::total, 8192 * kMiB, free);
  // A code is not a size.
  expect_figure(Figure::asked, 201326592, "CreateResource failed with HRESULT 8007000e, \"SizeBytes\": 201326592");
  const std::string bound =
      "[GPU] Exceeded max size of memory object allocation: requested 4831838208 bytes, but max "
      "alloc size supported by device is 1073741824 bytes.Please try to reduce batch size";
  expect_figure(Figure::asked, 4831838208, bound);
  expect_figure(Figure::allowed, 1073741824, bound);
}

TEST(Remark, TheLogIsBelievedBeforeWhoTellsOfIt) {
  const std::string text =
      "The game crashes on startup, in the log it tries to allocate 64mb of memory and fails, and I do not know why\n\n"
      "err:   DxvkMemoryAllocator: Memory allocation failed\nerr:     Size:      65536\n";
  EXPECT_NE(answer(text).find("64.0 KiB were requested"), std::string::npos) << answer(text);
}

TEST(Remark, WhatTheTextShowsBesideDecidesOrIsSaid) {
  const std::string share = answer("gpu_mem_used_max=9\ncuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(share.find("the text sets"), std::string::npos);
  // Several programs.
  expect_cause(Cause::outside, "it fails if I have 2 kernels running\n\nE: cudaMalloc: out of memory\n");
  // With two cards, neither is the one.
  expect_figure(Figure::total, 0,
                "on an RTX 4070 with 12GB VRAM and an RTX 3090 with 24GB VRAM.\ncuMemAlloc: out of memory\n");
}

TEST(Remark, WhatElseTheTextTells) {
  // A smaller input fits.
  expect_cause(Cause::too_big,
               "It runs perfectly with smaller files.\nBut with larger images it crashes:\n"
               "Fatal error: cuMemAlloc: out of memory\n");
  // A single size is the requested one.
  expect_figure(Figure::asked, 120, "RuntimeError: Memory allocation failed on device: cuda for 120 bytes");
  expect_cause(Cause::host, "error: could not compile: killed out of memory");
  EXPECT_TRUE(read_messages("oom_kill 0").empty());
}

TEST(Host, AKillIsNoLeakAndADenialNone) {
  expect_cause(Cause::host, "the container keeps dying after a couple of hours with exit code 137\n");
  EXPECT_TRUE(read_messages("OOMKilled:false,").empty());
  EXPECT_TRUE(read_messages("{\"OOMKilled\": false}").empty());
}

TEST(Statement, AnAllocationThatIsRejectedIsOne) {
  expect_memory("statement_host",
                "[enforce fail at CPUAllocator.cpp:56] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0");
  expect_memory("statement_host", "mmap of 549755813888 bytes failed: ulimit -v is 67108864 kB");
}

TEST(Remark, ACardIsKnownByItsModel) {
  const std::string out = answer(
      "XLA: RESOURCE_EXHAUSTED: the program needs 14.44GiB of device memory\nout of memory on the "
      "GPU\n\nI am running a 3080 Ti GPU.\n");
  EXPECT_NE(out.find("12.00 GiB"), std::string::npos) << out;
  // The RTX 3080 was sold with 10 and 12 GB, and the laptop variant is another card.
  for (const std::string card : {"I have an RTX 3080.", "I have an RTX 4090 laptop.", "It is line 4090."})
    expect_figure(Figure::total, 0, "cuMemAlloc: out of memory\n" + card + "\n");
}

TEST(Remark, LessThanTheDeviceHasIsALimit) {
  const std::string message =
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB "
      "of "
      "which 15.09 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by "
      "PyTorch "
      "but unallocated.\n\n";
  // Two cards, and several of one kind.
  for (const std::string text : {"I have a card with 24 GB and a card with 96 GB.", "The cards have 30.5 GB of VRAM."})
    expect_other_cause(Cause::limit, message + text + "\n");
}

TEST(Remark, TheSizeOfAPictureIsNoNeed) {
  expect_other_cause(Cause::bad_size, "encoder: cuMemAlloc: out of memory\nIt works with 1080p sources\n");
}

TEST(Statement, SharesItsWordsWithTheLogs) {
  const std::string german =
      "gpu allocator: out of memory: 3.5 GiB belegt, 0.4 GiB frei, 4.0 GiB gesamt, 1.0 GiB requested";
  expect_figure(Figure::used, 3.5 * kGiB, german);
  expect_figure(Figure::free, 0.4 * kGiB, german);
  expect_figure(Figure::total, 4 * kGiB, german);
  expect_figure(Figure::device, 3, "gpu 3: out of memory, requested 2.0 GiB");
}

TEST(Remark, WhatTheProgramAdvisesIsTheAdvice) {
  const std::string limit = answer(
      "Buffer size (870585948) exceeds the max buffer size limit (536870912). This adapter supports a higher "
      "maxBufferSize "
      "of 4294967296, which can be specified in requiredLimits when calling requestDevice().");
  EXPECT_NE(limit.find("can be specified in requiredLimits"), std::string::npos) << limit;
  const std::string plan = answer("gpu: out of memory\nI will try it again tomorrow\n");
  EXPECT_EQ(plan.find("itself advises"), std::string::npos);
}

TEST(Remark, GrowthAndOthersAreFoundByTheirWordsAndNotByPhrases) {
  for (const std::string text :
       {"Even when I repeat the same stage, vram usage is always growing until it crashes:\n"
        "00:31:12.904 |E| GPU.MainThread : Unexpected API error \"ErrorOutOfDeviceMemory\".",
        "It rapidly runs out of memory:\nD3D11: Failed to create RenderTexture, error 0x8007000e",
        "Everything is normal until 2 hours of playing, then\nOUT OF VIDEO MEMORY! ( vmaAllocateMemory )"})
    expect_cause(Cause::leak, text);
  for (const std::string text :
       {"Now if I also run deployment A on the same card, A crashes with:\ncudaMalloc: out of memory",
        "It happens while Wallpaper Engine is open.\n[e] d3d11: out of video memory",
        "I had a second process on this GPU using it.\ncudaMalloc: out of memory"})
    expect_cause(Cause::outside, text);
  for (const std::string text : {"It also uses the CPU.\ncudaMalloc: out of memory",
                                 "It fails when running the other model.\ncudaMalloc: out of memory",
                                 "Memory does not grow.\ncudaMalloc: out of memory"})
    expect_cause(Cause::unknown, text);
}

TEST(Host, OneKillIsOneFailure) {
  const auto out =
      explain(read_messages("Memory cgroup out of memory: Kill process 24572 (java) score 0 or sacrifice child\n"
                            "Killed process 28438 (java) total-vm:20255636kB, anon-rss:466160kB\n"));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->failures.size(), 1U);
  EXPECT_NE(out->next_step.find("control group"), std::string::npos) << out->next_step;
}

TEST(Statement, WordsOfTheHostDecideAgainstTheDevice) {
  for (const std::string text :
       {"RuntimeException: Can't allocate [HOST] memory: 998662; threadId: 35\n\tat CudaDirectProvider.malloc\n",
        "app(19477) malloc: can't allocate region\n:*** mach_vm_map(size=1448378368, flags: 100) failed (error "
        "code=3)\n",
        "Conv node. Name:'347_nchwc' BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of "
        "size "
        "285081600\n"})
    expect_memory("statement_host", text);
  expect_memory("statement_scratch",
                "FATAL ERROR: CudaTileListKernel::build, maximum shared memory allocation exceeded\n");
  expect_cause(Cause::unknown,
               "VkCreateFence failed with ERROR_OUT_OF_HOST_MEMORY (file descriptors: 303, soft limit: 8192)\n");
}

TEST(Statement, ARuntimesOwnLimitIsOne) {
  for (const std::string text :
       {"FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n",
        "distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\n",
        "java.lang.OutOfMemoryError: Physical memory usage is too high: physicalBytes = 8G\n",
        "EnforceNotMet: enforce allocating <= available failed, 10513462067 > 1369702144\n"})
    expect_cause(Cause::limit, text);
}

TEST(Statement, AFigureCountsByTheWordsBesideIt) {
  expect_figure(Figure::free, 0, "CUDA error: out of memory, (freed 0 bytes)\n");
  expect_figure(Figure::allowed, 0, "VkResult: ERROR_OUT_OF_DEVICE_MEMORY (file descriptors: 303, soft limit: 8192)\n");
  expect_figure(Figure::used, 0, "GPU out of memory, using qwen3-4b\n");
  expect_figure(Figure::total, 0, "OpenCL out of memory, total of AMD Radeon HD 8670M\n");
  expect_figure(Figure::resident, 2539268.0 * 1024,
                "kernel: Killed process 11726, UID 498, (mysqld) total-vm:7823732kB, anon-rss:2539268kB, "
                "file-rss:768kB\n");
}

TEST(Statement, WhatAsksNamesTheMemory) {
  for (const std::string text :
       {"mkl_malloc: failed to allocate memory\n", "worker: malloc failed to allocate 64 MB\n",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"})
    expect_cause(Cause::host, text);
  // A library for the device throws the same.
  for (const std::string text : {"MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/include/pool.hpp\n",
                                 "what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n"})
    expect_cause(Cause::unknown, text);
  expect_memory("statement_scratch",
                "`auto tile = sycl::local_accessor<float>(9000, h);`\n\nUR_RESULT_ERROR_OUT_OF_RESOURCES\n");
}

TEST(Statement, ACodeNeedsNoWords) {
  for (const std::string text :
       {"vkAllocateMemory returned -2\n", "vkAllocateMemory => -2\n",
        "Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")\n", "DriverError(2, \"out of memory\")\n"})
    expect_cause(Cause::unknown, text);
  expect_no_failure("log(LEVEL, \"out of memory\");\n");
}

TEST(Statement, ANeedAboveABoundIsAFailureByItsAmounts) {
  // From any program, with words in any order: two amounts, what each is, and a word that compares them.
  const std::string round = "round 412 needs 6.20 GB of memory but the device has 6.00 GB\n";
  expect_cause(Cause::too_big, round);
  expect_figure(Figure::asked, 6.2 * kGiB, round);
  expect_cause(Cause::too_big, "the plan wants 9000 MB, only 8192 MB of VRAM can be used\n");
  const std::string heap = "Cannot grow the heap: requested 1074790400 bytes, but the limit is 1073741824 bytes\n";
  expect_cause(Cause::limit, heap);
  expect_figure(Figure::asked, 1074790400, heap);
  expect_cause(Cause::resource, "tile: too much shared memory used (50000/49152)\n");
  expect_cause(Cause::resource, "buffers of this core take 1700000 B, which is beyond the L1 size of 1500000 B\n");
  for (const std::string text :
       {"needs 4.00 GB but the device has 6.00 GB\n", "the upload needs 6 GB but the disk has only 4 GB\n",
        "peak memory 12.1 GB, 8.0 GB free\n", "step 7: 900 MB allocated, limit 800 MB\n"})
    expect_no_failure(text);
}

TEST(Statement, AnEndBySignal9IsTheHostsUnlessAnotherSenderIsNamed) {
  expect_cause(Cause::host, "loading shard 3 of 9\nKilled\n");
  expect_cause(Cause::host, "agent[7]: Sending SIGKILL to group {\"by\": \"runtime.OOMController\"}\n");
  expect_cause(Cause::host, "nohang: OOM threshold reached, killing process 4711\n");
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
  expect_no_failure("听说是显存不够。\nRuntimeError: CUDA error: device kernel image is invalid\n");
  expect_cause(Cause::unknown, "cudaMalloc failed with cudaErrorMemoryAllocation: out of memory\n");
}

TEST(Statement, WordsBesideAFailureShowPiecesAndOthers) {
  expect_cause(Cause::fragmentation,
               "failed to allocate 512 MiB on the GPU, 2.1 GiB are free: the memory is badly fragmented\n");
  expect_cause(Cause::unknown, "CUDA error: out of memory (try max_split_size_mb to avoid fragmentation)\n");
  expect_cause(Cause::outside, "RuntimeError: CUDA error: out of memory\n显存被别人的程序占了，怎么办？\n");
  expect_cause(Cause::outside,
               "CUDA error: out of memory\nWhy? A second render process holds the card at the same time.\n");
  const std::string card = "CUDA out of memory. Tried to allocate 120.00 GiB\n\nAny idea? NVIDIA gpu with 8gb.\n";
  expect_cause(Cause::too_big, card);
  expect_figure(Figure::total, 8 * kGiB, card);
}

TEST(Statement, ATitleIsAReportWhereTheTextHasNoOther) {
  const std::string rest = "The tool should look at what is left of the card before it starts its work on it.\n";
  expect_cause(Cause::outside, "GPU out of memory error when running on a GPU with another process\n" + rest);
  expect_cause(Cause::outside,
               "If I start a game and then the encoder, I have a \"GPU out of memory\" from it.\n" + rest);
  expect_no_failure("GPU out of memory when the batch is too large: take a smaller one");
}

TEST(Statement, WhatIsNeitherTheDevicesNorTheHostsIsAnotherResource) {
  expect_cause(Cause::resource,
               "OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.\n");
  expect_cause(Cause::resource, "solver: pthread_create failed: Resource temporarily unavailable\n");
}

TEST(Statement, AnEndWithAnotherReasonIsNone) {
  expect_no_failure("  \"OOMKilled\": false,\n  \"Dead\": false,\n  \"ExitCode\": 137,\n");
  expect_no_failure("Last State: Terminated\n  Reason: ContainerCannotRun\n  Exit Code: 137\n");
  expect_cause(Cause::host, "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137\n");
  // In any language of the shell, and whatever failed after it.
  for (const std::string text : {"run.sh: riga 24:  8612 Killed   python train.py\n",
                                 "run.sh: Zeile 7: 311 Killed ./a\ncat: log: No such file or directory\n"})
    expect_memory("statement_killed", text);
}

TEST(Statement, FiguresWithoutAFailureWordDecide) {
  expect_cause(Cause::limit,
               "The byte size of the arguments (86973087744) exceeds the base limit (81174881894) of the GPU.\n");
}

TEST(Remark, ANumberBeforeAColonCountsNothing) {
  expect_cause(Cause::unknown, "process_linux.go:402: container init on gpu caused: cuda error: out of memory\n");
}

TEST(Plan, ThatLeavesEnoughShowsNothing) {
  expect_cause(Cause::unknown,
               "amdgpu: 31744M of GTT memory ready.\nengine: preparing model tensors: 4.50 GiB\n"
               "engine: hipMalloc of a chunk of 512.00 MiB failed: out of memory\n");
}

TEST(Account, ABudgetWhoseUseTheProgramCountsIsItsLimit) {
  for (const std::string text : {"Foo engine 3.2: VRAM budget 6144 MB\n"
                                 "Foo: allocation of 512 MB for render target failed, 6000 MB of 6144 MB used\n",
                                 "[gfx] GPU memory budget: 6144 MiB\n"
                                 "[gfx] could not reserve 512 MiB of GPU memory, 6000 MiB of 6144 MiB in use\n"}) {
    expect_cause(Cause::limit, text);
    expect_figure(Figure::used, 6000 * kMiB, text);
    expect_figure(Figure::allowed, 6144 * kMiB, text);
  }
  expect_cause(Cause::unknown, "Foo: VRAM budget 6144 MB\nFoo: allocation of 64 MB failed, 3000 MB of 6144 MB used\n");
}

TEST(Account, ANamedProcessIsAnotherOne) {
  for (const std::string line :
       {"GPU 0 has 11264 MB; pid 900 (blender) uses 7000 MB", "GPU 0: 11264 MB total\nprocess 900 (blender): 7000 MB",
        "device 0 has 11264 MB, blender (pid 900) is using 7000 MB of it"}) {
    const std::string text = line + "\nmyapp: error: hipMalloc(5368709120) returned hipErrorOutOfMemory\n";
    expect_cause(Cause::outside, text);
    expect_figure(Figure::total, 11264 * kMiB, text);
    const auto explanation = explain(read_messages(text));
    ASSERT_EQ(explanation->failure().others.size(), 1U) << text;
    EXPECT_EQ(explanation->failure().others[0].pid, 900);
    EXPECT_EQ(explanation->failure().others[0].bytes, 7000 * kMiB);
  }
  // It may be the program that failed: by its name, or because nothing shows which one that is.
  for (const std::string failure : {"blender: error: hipMalloc(5368709120) returned hipErrorOutOfMemory\n",
                                    "hipMalloc(5368709120) returned hipErrorOutOfMemory\n"})
    expect_other_cause(Cause::outside, "GPU 0 has 11264 MB; pid 900 (blender) uses 7000 MB\n" + failure);
  // There was room besides it.
  expect_other_cause(Cause::outside,
                     "GPU 0 has 11264 MB; pid 900 (blender) uses 3000 MB\nmyapp: hipMalloc(1073741824) returned "
                     "hipErrorOutOfMemory\n");
}

TEST(Account, WhatCouldNotBeTakenIsTheRequest) {
  for (const char* const verb : {"could not reserve", "could not obtain", "unable to obtain", "failed to commit"}) {
    const std::string text = std::string("[flux] device 0: 8192 MiB total, 7100 MiB in use\n[flux] ERROR: ") + verb +
                             " 2048 MiB of device memory for the grid (only 1092 MiB available)\n";
    expect_figure(Figure::asked, 2048 * kMiB, text);
    expect_figure(Figure::free, 1092 * kMiB, text);
    expect_figure(Figure::total, 8192 * kMiB, text);
  }
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
