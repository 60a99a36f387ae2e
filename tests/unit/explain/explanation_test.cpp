#include "explain/explanation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/units.hpp"
#include "explain/render.hpp"
#include "explain/sequence.hpp"

namespace vramtrack::explain {
namespace {

/// A message as printed by PyTorch 2; sizes in GiB.
std::string torch(double asked, double total, double free, double allocated, double cached,
                  std::string_view more = "") {
  return fmt::format(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {:.2f} GiB. GPU 0 has a total capacity of {:.2f} "
      "GiB of which {:.2f} GiB is free.{} Of the allocated memory {:.2f} GiB is allocated by PyTorch, and {:.2f} GiB "
      "is "
      "reserved by PyTorch but unallocated.\n",
      asked, total, free, more, allocated, cached);
}

Explanation explained(std::string_view text) {
  const auto explanation = explain(read_messages(text));
  EXPECT_TRUE(explanation) << text;
  return explanation.value_or(Explanation{});
}

Cause cause_of(std::string_view text) {
  return explained(text).cause;
}

void expect_cause(Cause cause, const std::string& text) {
  EXPECT_EQ(cause_of(text), cause) << text;
}

TEST(Diagnosis, EachCauseByItsFigures) {
  EXPECT_EQ(cause_of(torch(4, 24, 1, 22, 0.2)), Cause::full);
  EXPECT_EQ(cause_of(torch(4, 24, 1, 15, 7)), Cause::fragmentation);
  EXPECT_EQ(cause_of(torch(4, 24, 1, 8, 0.2)), Cause::outside);
  EXPECT_EQ(cause_of(torch(4, 24, 12, 11, 0.2)), Cause::unknown) << "it had room: no limit is shown";
  EXPECT_EQ(cause_of(torch(4, 24, 12, 11, 0.2, " 12.00 GiB allowed;")), Cause::limit);
  const std::string_view other = " Process 7 has 9.00 GiB memory in use.";
  EXPECT_EQ(cause_of(torch(4, 24, 1, 12, 0.2, other)), Cause::outside);
  EXPECT_EQ(cause_of("CUDA error: out of memory"), Cause::unknown);
  EXPECT_EQ(cause_of("OOMKilled"), Cause::host);
}

TEST(Diagnosis, ALimitIsNamedOnlyWhereTheTextShowsOne) {
  const auto room = explained(torch(0.1, 24, 12, 11, 0.2));
  EXPECT_EQ(room.cause, Cause::unknown);
  for (const std::string* const words : {&room.because, &room.fault, &room.missing_evidence})
    EXPECT_EQ(words->find("memory_fraction"), std::string::npos) << *words;
  const auto shown = explained(torch(0.1, 24, 12, 11, 0.2, " 11.25 GiB allowed;"));
  EXPECT_EQ(shown.cause, Cause::limit);
  EXPECT_NE(shown.fault.find("set_per_process_memory_fraction"), std::string::npos) << shown.fault;
}

TEST(Diagnosis, TheLastOfAFullDeviceIsNoRoom) {
  // Some MiB more were free than requested.
  const auto others = explained(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.91 GiB total capacity; 267.62 MiB already allocated; "
      "67.06 MiB free; 310.00 MiB reserved in total by PyTorch)");
  EXPECT_EQ(others.cause, Cause::outside) << others.because;
  EXPECT_EQ(cause_of(torch(0.02, 23.64, 0.09, 23.1, 0.1)), Cause::full) << "the same of its own memory";
}

TEST(Diagnosis, AProcessThatHoldsMostComesBeforeALimitButNotBeforeRoom) {
  const std::string named =
      " Process 4711 has 14.85 GiB memory in use. Including non-PyTorch memory, this process has {}.";
  const auto of = [&named](double asked, double free, double allocated, double cached) {
    return explained(
        torch(asked, 23.64, free, allocated, cached, fmt::format(fmt::runtime(named), "7.00 GiB memory in use")));
  };
  for (const Explanation& answer : {of(0.06, 1.5, 6.5, 0.1), of(0.06, 0.11, 6.5, 0.1)}) {
    EXPECT_EQ(answer.cause, Cause::outside) << answer.because;
    EXPECT_EQ(answer.fault, "another process: pid 4711 (14.85 GiB)");
  }
  EXPECT_EQ(of(0.06, 8, 0.3, 0.1).cause, Cause::unknown) << "there was room on the device";
  EXPECT_EQ(of(0.5, 0.3, 5, 1.5).cause, Cause::fragmentation) << "there was room in the cache";
  EXPECT_EQ(of(16, 1.5, 6.5, 0.1).cause, Cause::full) << "what they hold would not be enough";
}

TEST(Diagnosis, WhatTheDriverMovedToTheHostIsNoFragmentation) {
  EXPECT_EQ(cause_of(torch(2.11, 8, 0, 19.84, 2.42)), Cause::full);
}

TEST(Diagnosis, AContainersOwnPidIsNoOther) {
  const auto own = explained(torch(0.5, 16, 0.4, 14, 0.2, " Process 562167 has 15.25 GiB memory in use."));
  EXPECT_EQ(own.cause, Cause::full) << own.because;
  EXPECT_EQ(own.failure().own_pid, 562167);
  EXPECT_TRUE(own.failure().others.empty());
  const std::string text = explanation_text(own, "");
  EXPECT_NE(text.find("this process     15.25 GiB  pid 562167"), std::string::npos) << text;
}

TEST(Diagnosis, TheOwnPidIsKnownFromALoggersWords) {
  // By their sizes, two processes could be this one; the logger names its own.
  const std::string named = " Process 400 has 14.40 GiB memory in use. Process 4711 has 14.50 GiB memory in use.";
  const auto own = explained("(EngineCore pid=4711) ERROR " + torch(0.5, 32, 0.1, 14, 0.2, named));
  EXPECT_EQ(own.failure().own_pid, 4711);
  EXPECT_EQ(own.failure().figures.get(Figure::process), 14.5 * kGiB);
  ASSERT_EQ(own.failure().others.size(), 1U);
  EXPECT_EQ(own.failure().others[0].pid, 400);
  EXPECT_EQ(own.cause, Cause::outside);
  EXPECT_EQ(explained("[4711] " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 4711);
  EXPECT_EQ(explained("2026-01-01 [engine.py:4711] " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 0);
  EXPECT_EQ(explained("(pid=47110) " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 0);
}

TEST(Diagnosis, AProcessThatMayBeThisOneIsNotCalledAnother) {
  // The allocator holds nothing, and one process fills the device: an engine of this process, or a neighbour.
  const auto unsure = explained(torch(0.1, 22, 0.01, 0, 0, " Process 885415 has 21.98 GiB memory in use."));
  EXPECT_EQ(unsure.cause, Cause::outside);
  EXPECT_EQ(unsure.failure().own_pid, 0);
  EXPECT_TRUE(unsure.failure().may_name_itself);
  EXPECT_EQ(unsure.fault.find("another process"), std::string::npos) << unsure.fault;
  const std::string text = explanation_text(unsure, "");
  EXPECT_EQ(text.find("\n  other process"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("HELD OUTSIDE THE ALLOCATOR: ")) << text;
  EXPECT_NE(text.find("pid 885415, this one or another"), std::string::npos) << text;
  EXPECT_NE(explanation_json(unsure, "").find("\"others_may_be_own\":true"), std::string::npos);
}

TEST(Diagnosis, ThisProcessNamedTwiceIsOne) {
  const auto twice = explained(torch(0.5, 24, 0.1, 19, 0.2,
                                     " Process 1234 has 20.00 GiB memory in use. Including non-PyTorch memory, this "
                                     "process has 20.00 GiB memory in use."));
  EXPECT_EQ(twice.failure().own_pid, 1234) << "24 GiB cannot hold both";
  EXPECT_TRUE(twice.failure().others.empty());
  const auto two = explained(torch(0.5, 48, 0.1, 19, 0.2,
                                   " Process 1234 has 20.00 GiB memory in use. Including non-PyTorch memory, this "
                                   "process has 20.00 GiB memory in use."));
  EXPECT_EQ(two.failure().own_pid, 0);
  EXPECT_EQ(two.failure().others.size(), 1U);
  EXPECT_EQ(two.cause, Cause::outside);
}

TEST(Diagnosis, WhatThisProcessHoldsBesideItsAllocatorIsItsOwn) {
  const auto own = explained(torch(1.74, 23.57, 0.6, 20.2, 0.19, " Process 133288 has 22.97 GiB memory in use."));
  EXPECT_EQ(own.cause, Cause::outside);
  EXPECT_TRUE(headline(own, "").starts_with("HELD OUTSIDE THE ALLOCATOR: ")) << headline(own, "");
  EXPECT_TRUE(own.fault.starts_with("this process's own libraries")) << own.fault;
  EXPECT_EQ(own.next_step.find("end what is left over"), std::string::npos) << own.next_step;
}

TEST(Diagnosis, AMessageThatIsCutOffTellsWhatThisProcessHolds) {
  constexpr std::string_view kCut =
      "CUDA out of memory. Tried to allocate {} MiB. GPU has a total capacity of 23.52 GiB of which 13.00 MiB is "
      "free.{}";
  const auto cut = [&](int mib, std::string_view more) {
    return explained(fmt::format(fmt::runtime(kCut), mib, more));
  };
  const std::string own =
      " Including non-PyTorch memory, this process has 23.48 GiB memory in use. Of the allocated memory";
  EXPECT_EQ(cut(32, own).cause, Cause::full);
  EXPECT_EQ(cut(3200, own).cause, Cause::full);
  const std::string other =
      " Process 7 has 21.69 GiB memory in use. Including non-PyTorch memory, this process has 1.81 GiB "
      "memory in use. Of";
  EXPECT_EQ(cut(32, other).cause, Cause::outside);
  EXPECT_EQ(cut(32, "").cause, Cause::unknown) << "who holds the rest is not said";
}

TEST(Diagnosis, TheHostsBuffersOfLlamaCppAreTheHosts) {
  for (const auto& [device, cause] : {std::pair("CPU", Cause::host), std::pair("CUDA0", Cause::unknown)})
    expect_cause(cause, fmt::format("alloc_tensor_range: failed to allocate {} buffer of size 437944320", device));
  const auto one =
      explained("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 137438953504");
  EXPECT_EQ(one.cause, Cause::host);
  EXPECT_NE(one.next_step.find("more layers on the GPU"), std::string::npos) << one.next_step;
}

TEST(Diagnosis, OllamasFieldsAreItsFigures) {
  for (const std::string_view available : {"available=5153960755", "available=\"4.8 GiB\""}) {
    const auto one = explained(fmt::format(
        "level=WARN source=server.go:1044 msg=\"model request too large for system\" requested=\"5.3 GiB\" {} "
        "total=\"10.0 GiB\" free=\"4.8 GiB\" swap=\"0 B\"\n"
        "Error: model requires more system memory (5.3 GiB) than is available (4.8 GiB)\n",
        available));
    EXPECT_EQ(one.cause, Cause::host);
    EXPECT_EQ(one.failure().figures.get(Figure::asked), 5.3 * kGiB);
    EXPECT_NEAR(one.failure().figures.get(Figure::free).value_or(0), 4.8 * kGiB, 1);
    EXPECT_EQ(one.failures.size(), 1U) << "the log and the answer tell of one failure";
    EXPECT_EQ(one.failure().figures.get(Figure::total), 10 * kGiB);
  }
  for (const std::string_view memory : {"gpu", "system"}) {
    const auto messages = read_messages(fmt::format(
        "level=INFO msg=\"model requires more {} memory than is currently available, evicting a model to make space\"",
        memory));
    EXPECT_FALSE(explain(messages)) << "a notice";
    EXPECT_EQ(messages.size(), 1U);
  }
}

TEST(Diagnosis, FewerWorkersAreNoLimitToRaise) {
  const auto killed = explained("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed");
  EXPECT_EQ(killed.next_step.find("raise"), std::string::npos) << killed.next_step;
  EXPECT_NE(killed.next_step.find("fewer workers"), std::string::npos) << killed.next_step;
}

TEST(Diagnosis, ARequestThatAnEmptyDeviceWouldHoldIsNotWhatIsTooBig) {
  const auto full = explained(torch(0.02, 24, 0.01, 22.9, 0.2));
  EXPECT_EQ(full.cause, Cause::full) << full.because;
  EXPECT_NE(full.next_step.find("whether its memory grows"), std::string::npos) << full.next_step;
  EXPECT_EQ(cause_of(torch(12, 24, 6, 17, 0.2)), Cause::full) << "an empty device would hold it";
  EXPECT_EQ(cause_of(torch(22, 24, 10, 12, 0.2)), Cause::too_big) << "drivers and contexts leave no such device";
}

TEST(Diagnosis, WhatIsInTheWayOfARequestThatWouldFitBesideTheProgramIsNotItsOwn) {
  EXPECT_EQ(cause_of(torch(2.6, 4, 2, 0.4, 0.02)), Cause::outside) << "3 of 4 GiB, and 1.6 GiB are others'";
  EXPECT_EQ(cause_of(torch(2.6, 4, 2, 1.2, 0.02)), Cause::full) << "3.8 of 4 GiB";
  EXPECT_EQ(cause_of(torch(0.5, 4, 0.2, 2.3, 0.02)), Cause::full) << "the larger part is its own";
}

TEST(Diagnosis, PinnedHostMemoryIsTheHosts) {
  const auto pinned = explained(
      "  File \"cuda_accelerator.py\", line 217, in pin_memory\n    return tensor.pin_memory()\n"
      "RuntimeError: CUDA error: out of memory\n");
  EXPECT_EQ(pinned.cause, Cause::host);
  EXPECT_EQ(pinned.failures.size(), 1U);
}

TEST(Diagnosis, TheFiguresOfALineBesideHelp) {
  expect_cause(Cause::fragmentation,
               "bfc: Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded)\n"
               "Stats: \nLimit:  4294967296\nInUse:  1073741824\nMaxInUse: 4294967296\n");
}

/// A table of nvidia-smi for a 24 GiB device.
std::string smi(int used_mib, std::string_view processes = "", int index = 0) {
  return fmt::format(
      "|   {}  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |\n"
      "|  0%   41C    P8             16W /  450W |   {}MiB /  24576MiB |      0%      Default |\n"
      "| Processes:                                                                            |\n{}",
      index, used_mib, processes);
}
constexpr std::string_view kProcess =
    "|    0   N/A  N/A      4711      C   python serve.py                            23500MiB |\n";
constexpr std::string_view kBuffer =
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9866.00 MiB on device 0: cudaMalloc failed: out of "
    "memory\n";
constexpr std::string_view kWorkspace =
    "[W] Requested amount of GPU memory (4294967296 bytes) could not be allocated. There may not be enough free "
    "memory\n";

TEST(Table, OfNvidiaSmiShowsWhoHeldTheDevice) {
  for (const std::string_view text :
       {kBuffer, kWorkspace, std::string_view("RuntimeError: CUDA error: out of memory\n"),
        std::string_view("CUDA out of memory. Tried to allocate 2.00 GiB.\n")}) {
    EXPECT_EQ(cause_of(text), Cause::unknown) << text;
    for (const std::string& both :
         {smi(23528, kProcess) + std::string(text), std::string(text) + smi(23528, kProcess)}) {
      const auto held = explained(both);
      EXPECT_EQ(held.cause, Cause::outside) << both;
      const Failure& failure = held.failure();
      EXPECT_EQ(failure.figures.get(Figure::used), 23528 * kMiB) << both;
      EXPECT_EQ(failure.figures.get(Figure::total), 24576 * kMiB) << both;
      ASSERT_EQ(failure.others.size(), 1U) << both;
      EXPECT_EQ(failure.others[0].pid, 4711);
      EXPECT_EQ(failure.others[0].name, "serve.py");
      EXPECT_EQ(failure.others[0].bytes, 23500 * kMiB);
    }
    EXPECT_EQ(cause_of(std::string(text) + smi(23528)), Cause::outside) << "a container lists no processes";
    EXPECT_NE(cause_of(std::string(text) + smi(528)), Cause::outside) << text;
  }
}

TEST(Table, ARowOfAProcessWithoutItsTableShowsWhoHeldTheDevice) {
  const auto held = explained(
      "BufferMgr.cpp:416 ALLOCATION failed to find 2452160512B throwing out of memory GPU_MGR:0\n\n"
      "15021 C+G ...g/render-2024.1/kit/kit 7120MiB\n");
  EXPECT_EQ(held.cause, Cause::outside);
  EXPECT_NE(held.fault.find("pid 15021 kit (6.95 GiB)"), std::string::npos) << held.fault;
}

TEST(Table, OfGpustatIsOneToo) {
  const std::string row = "[6] NVIDIA A100 80GB PCIe | 52'C, 100 % | 10151 / 81920 MB | ";
  const auto named = explained("CUDA error: out of memory\n" + row + "alice(8123M) bob:python/77(1900M)\n");
  ASSERT_EQ(named.failure().others.size(), 2U);
  EXPECT_EQ(named.failure().others[0].name, "alice");
  EXPECT_EQ(named.failure().others[1].pid, 77);
  const auto nobodys = explained("CUDA error: out of memory\n" + row + "(null)\n");
  EXPECT_NE(nobodys.because.find("which lists no process"), std::string::npos) << nobodys.because;
}

TEST(Remark, ThatOthersUseTheDeviceDecidesWhereNoFigureDoes) {
  expect_cause(Cause::outside,
               "it only throws this when gaming:\n[h264_nvenc @ 0x6090380] InitializeEncoder failed: out of memory "
               "(10):\n");
  expect_cause(
      Cause::outside,
      "There are more MPI processes than the number of GPUs.\nCUDA error 2 in file A.cpp line 1: out of memory\n");
  expect_cause(Cause::unknown, "make sure that no game is running\nCUDA error 2 in file A.cpp line 1: out of memory\n");
}

TEST(Advice, NamesNoToolThatDoesNotRunThere) {
  const std::string message = "RuntimeError: CUDA error: out of memory\n";
  EXPECT_NE(explained(message).missing_evidence.find("vramtrack"), std::string::npos);
  for (const std::string& place : {std::string("Platform: Windows 10 2004\n"), std::string("Renderer: WebGL 2.0\n"),
                                   std::string("Android 14, Adreno 740\n")})
    EXPECT_EQ(explained(place + message).missing_evidence.find("vramtrack"), std::string::npos) << place;
  EXPECT_NE(explained("concurrent.futures.executor: callback failed\n" + message).missing_evidence.find("vramtrack"),
            std::string::npos);
  const auto gaudi = explained("FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::56836702208\n");
  EXPECT_NE(gaudi.missing_evidence.find("hl-smi"), std::string::npos);
}

TEST(Advice, ARendererHasNoBatches) {
  const auto scene = explained("System is out of GPU and shared host memory\n");
  EXPECT_EQ(scene.next_step.find("batch"), std::string::npos) << scene.next_step;
  EXPECT_EQ(scene.fault.find("need alone"), std::string::npos) << "no figure shows it: " << scene.fault;
}

TEST(Resource, OfObjectsWithoutBytes) {
  const auto leak = explained(
      "After a long time (1 million timesteps+) it crashes:\n"
      "cudaCreateTextureObject( & tex_obj ) error( cudaErrorMemoryAllocation): out of memory\n");
  EXPECT_EQ(leak.cause, Cause::resource);
  EXPECT_NE(leak.because.find("not destroyed"), std::string::npos) << leak.because;
  EXPECT_NE(leak.fault.find("objects of the driver"), std::string::npos) << leak.fault;
  EXPECT_NE(leak.next_step.find("destroy each such object"), std::string::npos) << leak.next_step;
}

TEST(Table, OfNvidiaSmiWithNobodyInItShowsTheProgramsOwnNeed) {
  expect_cause(Cause::too_big, smi(528) +
                                   "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 24300.00 MiB on device 0: "
                                   "cudaMalloc failed: out of memory\n");
  const auto some = explained(smi(528) + std::string(kBuffer));
  EXPECT_EQ(some.cause, Cause::unknown) << "earlier buffers may have filled it, or others afterwards";
  EXPECT_EQ(some.failure().figures.get(Figure::used), 528 * kMiB);
  EXPECT_NE(some.missing_evidence.find("-ngl"), std::string::npos) << some.missing_evidence;
}

TEST(Table, OfNvidiaSmiDecidesNothingBesideTheMessagesOwnFigures) {
  EXPECT_EQ(cause_of(smi(23528, kProcess) + torch(4, 24, 1, 22, 0.2)), Cause::full);
  expect_cause(Cause::outside, smi(23528, kProcess) + "RuntimeError: CUDA error: out of memory\n");
  const auto own = explained(smi(23528, kProcess) + "(pid=4711) RuntimeError: CUDA error: out of memory\n");
  EXPECT_NE(own.cause, Cause::outside) << "it is the program itself: " << own.because;
}

TEST(Table, OfNvidiaSmiOfSeveralDevicesCountsForTheDeviceOfTheMessage) {
  const std::string both = smi(10, "", 0) + smi(23528, "", 1);
  expect_cause(Cause::unknown, "RuntimeError: CUDA error: out of memory\n" + both);
  EXPECT_EQ(cause_of(both + std::string(kBuffer)), Cause::unknown) << "device 0";
  std::string second(kBuffer);
  second.replace(second.find("device 0"), 8, "device 1");
  EXPECT_EQ(cause_of(both + second), Cause::outside);
}

TEST(Diagnosis, WhatLlamaCppFindsFreeAtItsStartDecides) {
  const auto start = [](int free_mib) {
    return explained(fmt::format("  CUDA0: NVIDIA GeForce RTX 3090 (24576 MiB, {} MiB free)\n", free_mib) +
                     std::string(kBuffer));
  };
  EXPECT_EQ(start(24000).cause, Cause::unknown) << "there was room for it";
  EXPECT_EQ(start(4000).cause, Cause::outside);
  const auto filled = explained(
      "  CUDA0: NVIDIA GeForce RTX 3090 (24576 MiB, 24000 MiB free)\n"
      "load_tensors:        CUDA0 model buffer size = 18000.00 MiB\n" +
      std::string(kBuffer));
  EXPECT_EQ(filled.cause, Cause::full) << "its own weights took it";
  EXPECT_NE(filled.because.find("it has taken 17.58 GiB since"), std::string::npos) << filled.because;
}

constexpr std::string_view kTensor =
    "OOM when allocating tensor with shape[320000,512] and type float on /job:localhost/replica:0/task:0/"
    "device:GPU:0 by allocator GPU_0_bfc";

TEST(Diagnosis, TheSizeOfTheRequestAloneDoesNotShowThatItIsTooBig) {
  for (const std::string_view text :
       {std::string_view("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes."),
        std::string_view("RESOURCE_EXHAUSTED: Out of memory allocating 4770354232 bytes."),
        std::string_view(
            "RESOURCE_EXHAUSTED: Failed to allocate request for 176.00MiB (184549376B) on device ordinal 0"),
        std::string_view(
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 27.93GiB (rounded to 29995136256)"),
        kTensor}) {
    const auto one = explained(text);
    EXPECT_EQ(one.cause, Cause::unknown) << text;
    EXPECT_NE(one.missing_evidence.find("Stats: Limit"), std::string::npos) << one.missing_evidence;
    EXPECT_TRUE(one.next_step.empty()) << one.next_step;
  }
}

TEST(Diagnosis, ARequestBeyondTheDeviceOfTheTextIsTooBig) {
  const std::string tensor =
      "OOM when allocating tensor with shape[320000,51200] and type float on /job:localhost/replica:0/task:0/"
      "device:GPU:0 by allocator GPU_0_bfc\n";
  const std::string created =
      "Created device /job:localhost/replica:0/task:0/device:GPU:{} with 10415 MB memory:  -> device: 0, name: Tesla\n";
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(created), 0) + tensor), Cause::too_big) << "61 GiB";
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(created), 1) + tensor), Cause::unknown) << "of another device";
  const std::string small =
      "OOM when allocating tensor with shape[3200,512] and type float on /job:localhost/replica:0/task:0/"
      "device:GPU:0 by allocator GPU_0_bfc\n";
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(created), 0) + small), Cause::unknown);
  const std::string smi = "|  0%   41C    P8    16W / 350W |     12MiB / 24576MiB |      0%      Default |\n";
  const std::string xla =
      smi + "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes.\n";
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(xla), 30000000000)), Cause::too_big);
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(xla), 4770354232)), Cause::unknown);
}

TEST(Diagnosis, WhereTheFreeMemoryOrTheDeviceIsNotToldTheOtherFollows) {
  constexpr std::string_view kXpu =
      "XPU out of memory. Tried to allocate {} MiB. GPU 0 has a total capacity of 15.91 GiB. Of the allocated memory "
      "{:.2f} GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.";
  const auto xpu = [&](int asked_mib, double allocated_gib) {
    return cause_of(fmt::format(fmt::runtime(kXpu), asked_mib, allocated_gib));
  };
  EXPECT_EQ(xpu(256, 15.2), Cause::full);
  EXPECT_EQ(xpu(3000, 13.0), Cause::full);
  EXPECT_EQ(xpu(256, 4.0), Cause::unknown) << "who holds the rest is not said";
  constexpr std::string_view kPaddle =
      "Out of memory error on GPU 0. Cannot allocate {}MB memory on GPU 0, 11.999512GB memory has been allocated and "
      "available memory is only 0.000000B.";
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(kPaddle), 50)), Cause::full);
  EXPECT_EQ(cause_of(fmt::format(fmt::runtime(kPaddle), 5000)), Cause::full);
}

TEST(Diagnosis, AnInvalidBufferIsOneOfMetalByItsUnit) {
  EXPECT_EQ(cause_of("RuntimeError: Invalid buffer size: 16.00 GiB"), Cause::too_big);
  EXPECT_EQ(explained("RuntimeError: Invalid buffer size: 9.75 GB").failure().figures.get(Figure::asked), 9.75 * kGiB);
  EXPECT_FALSE(explain(read_messages("ValueError: Invalid buffer size: 1024")));
}

TEST(Diagnosis, FreePiecesOfATpuAreFragmentation) {
  const auto pieces = explained(
      "RESOURCE_EXHAUSTED: Attempting to allocate 31.06M. That was not possible. There are 58.64M free. Due to "
      "fragmentation, the largest contiguous region of free memory is 30.56M.; (0x0x0_HBM0)");
  EXPECT_EQ(pieces.cause, Cause::fragmentation);
  EXPECT_NE(pieces.because.find("31.1 MiB were requested"), std::string::npos) << pieces.because;
  EXPECT_NE(pieces.because.find("30.6 MiB"), std::string::npos) << pieces.because;
}

TEST(Diagnosis, AReplicasErrorIsOneWithItsTrueMessage) {
  const auto replica = explained(
      "torch.cuda.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.\n"
      "Original Traceback (most recent call last):\n  File \"parallel_apply.py\", line 64, in _worker\n" +
      torch(0.02, 24, 0.01, 22.9, 0.2));
  EXPECT_EQ(replica.failures.size(), 1U);
  EXPECT_EQ(replica.cause, Cause::full);
}

constexpr std::string_view kBudget =
    "INFO worker.py: the current vLLM instance can use total_gpu_memory (80.00GiB) x gpu_memory_utilization (0.25) = "
    "20.00GiB\n";
constexpr std::string_view kNoCache =
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the "
    "engine.\n";

std::string profile(std::string_view weights, std::string_view left) {
  return fmt::format(
      "INFO worker.py: model weights take {}GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes "
      "1.21GiB; the rest of the memory reserved for KV Cache is {}GiB.\n",
      weights, left);
}

TEST(Engine, WhatTheBudgetIsShortOfGivesTheShareToSet) {
  const auto small = explained(std::string(kBudget) + profile("21.00", "-2.30") + std::string(kNoCache));
  EXPECT_EQ(small.cause, Cause::limit);
  EXPECT_NE(small.next_step.find("to 0.28 or more"), std::string::npos) << small.next_step;
  const auto large = explained(std::string(kBudget) + profile("81.00", "-62.30") + std::string(kNoCache));
  EXPECT_EQ(large.cause, Cause::too_big) << large.because;
  EXPECT_EQ(large.next_step.find("gpu-memory-utilization"), std::string::npos) << large.next_step;
}

TEST(Engine, ALengthThatTheCacheDoesNotHoldGivesTheLengthToSet) {
  const auto tokens = explained(std::string(kBudget) + profile("14.70", "4.00") +
                                "ValueError: The model's max seq len (32768) is larger than the maximum number of "
                                "tokens that can be stored in KV "
                                "cache (16384). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` "
                                "when initializing the engine.");
  EXPECT_EQ(tokens.cause, Cause::too_big);
  EXPECT_NE(tokens.next_step.find("to 16384 or less"), std::string::npos) << tokens.next_step;
  EXPECT_NE(tokens.next_step.find("to 0.30 or more"), std::string::npos) << tokens.next_step;
}

TEST(Engine, OfSeveralBudgetsThatPrintedLastCounts) {
  const auto second =
      explained("Requested memory: 0.500000 (util), 40.00 GiB\nRequested memory: 0.250000 (util), 20.00 GiB\n" +
                std::string(kNoCache));
  EXPECT_EQ(second.failure().figures.get(Figure::fraction), 0.25);
}

TEST(Engine, TheProgramWhoseCodeLedToItHasItsOwnAdvice) {
  const auto advice = [](std::string_view frame) {
    return explained(
               fmt::format("Traceback\n  File \"{}\", line 1, in run\n{}", frame, torch(0.02, 24, 0.01, 22.9, 0.2)))
        .next_step;
  };
  EXPECT_NE(
      advice("/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py").find("lower --gpu-memory-utilization"),
      std::string::npos);
  EXPECT_NE(advice("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py").find("lower --mem-fraction-static"),
            std::string::npos);
  EXPECT_NE(advice("D:\\ComfyUI_portable\\ComfyUI\\execution.py").find("--lowvram"), std::string::npos);
  EXPECT_NE(
      explained("(EngineCore_DP0 pid=7) ERROR " + torch(0.02, 24, 0.01, 22.9, 0.2)).next_step.find("--max-num-seqs"),
      std::string::npos);
  EXPECT_NE(advice("/lib/deepspeed/runtime/engine.py").find("ZeRO"), std::string::npos);
  EXPECT_EQ(advice("/home/me/train.py").find("lower --"), std::string::npos);
  // If it is far above, it belongs to another program.
  EXPECT_EQ(explained("File \"/lib/vllm/a.py\"\n" + std::string(100, '\n') + torch(0.02, 24, 0.01, 22.9, 0.2))
                .next_step.find("gpu-memory"),
            std::string::npos);
}

TEST(Story, AMessagePrintedTwiceIsOneFailure) {
  const std::string message = torch(4, 24, 1, 22, 0.2);
  const auto twice = explained(message + "\nTraceback\n" + message);
  EXPECT_EQ(twice.failures.size(), 1U);
  EXPECT_EQ(twice.message_count, 2U);
  EXPECT_TRUE(twice.sequence.empty());
}

TEST(Story, GrowthFromOneFailureToTheNextIsALeak) {
  const auto leak = explained(torch(4, 24, 3, 19, 0.2) + torch(4, 24, 2, 20.5, 0.2) + torch(4, 24, 1, 22, 0.2));
  EXPECT_EQ(leak.cause, Cause::leak) << leak.because;
  const std::string mixed = torch(4, 24, 3, 17, 0.2) + torch(3, 24, 2.5, 19, 0.2) + torch(4, 24, 2, 20.5, 0.2);
  EXPECT_NE(cause_of(mixed), Cause::leak) << "twice, among others";
  EXPECT_EQ(cause_of(mixed + torch(4, 24, 1, 22, 0.2)), Cause::leak);
  const auto two = explained(torch(4, 24, 3, 19, 0.2) + torch(3, 24, 1, 22, 0.2));
  EXPECT_EQ(two.cause, Cause::full) << "two may be two places";
  const auto same = explained(torch(0.02, 24, 0.01, 20, 2) + torch(0.02, 24, 0.01, 22.9, 0.1));
  EXPECT_EQ(same.cause, Cause::leak) << "the same request";
  // A full card has no room for a rise of a tenth: four in rising order are not due to chance.
  std::string slow;
  for (const double held : {22.10, 22.25, 22.40}) slow += torch(0.02, 24, 0.01, held, 0.2);
  EXPECT_EQ(cause_of(slow), Cause::full) << "three";
  EXPECT_EQ(explained(slow).failures.size(), 3U) << "figures that differ are no message that was printed twice";
  const auto four = explained(slow + torch(0.02, 24, 0.01, 22.55, 0.2));
  EXPECT_EQ(four.cause, Cause::leak) << four.because;
  const std::string text = explanation_text(four, "");
  EXPECT_EQ(text.find("rose each time"), text.rfind("rose each time")) << "said once: " << text;
  EXPECT_EQ(cause_of(slow + torch(0.02, 24, 0.01, 22.20, 0.2)), Cause::full) << "not in rising order";
  const auto ranks = explained("[rank0]: " + torch(4, 24, 3, 19, 0.2) + "[rank1]: " + torch(4, 24, 1, 22, 0.2));
  EXPECT_EQ(ranks.cause, Cause::full) << "two ranks, each with a GPU that it calls 0";
  const auto flat = explained(torch(4, 24, 1, 22, 0.2) + torch(3, 24, 1, 20, 0.2) + torch(4, 24, 1, 21, 0.2));
  EXPECT_EQ(flat.cause, Cause::full);
  EXPECT_NE(flat.sequence.find("did not grow"), std::string::npos) << flat.sequence;
}

TEST(Story, GrowthOfTheRequestIsNoLeak) {
  // Larger batches hold more and request more; among smaller requests, those fail that find the device fuller.
  const auto up = explained(torch(3, 24, 2.9, 19.5, 0.2) + torch(4, 24, 2, 20.5, 0.2) + torch(6, 24, 1, 22, 0.2));
  EXPECT_EQ(up.cause, Cause::full) << up.because;
  EXPECT_EQ(cause_of(torch(6, 24, 2.9, 19.5, 0.2) + torch(4, 24, 2, 20.5, 0.2) + torch(3, 24, 1, 22, 0.2)),
            Cause::full);
}

TEST(Story, FailuresOfDifferentBatchesShowNoLeak) {
  for (const std::string_view size :
       {"Trying batch size {}\n", "$ python train.py --batch-size {}\n", "train: batch_size={}, lr=0.1\n",
        "per_device_train_batch_size: {}\n", "Batch size {} succeeded, trying batch size {}\n", "Batch Size: {}\n"}) {
    std::string text;
    std::string same;
    int batch = 8;
    for (const double held : {18.0, 20.5, 22.0}) {
      text += fmt::format(fmt::runtime(size), batch, batch) + torch(4, 24, 2, held, 0.2);
      same += fmt::format(fmt::runtime(size), 8, 8) + torch(4, 24, 2, held, 0.2);
      batch *= 2;
    }
    const auto search = explained(text);
    EXPECT_EQ(search.cause, Cause::full) << search.because;
    EXPECT_NE(search.growth.find("with batch sizes from 8 to 32"), std::string::npos) << search.growth;
    EXPECT_EQ(cause_of(same), Cause::leak) << same;
  }
}

TEST(Story, OtherFailuresAreToldInTheirOrder) {
  const auto all = explained(
      "[rank2]: " + torch(0.3, 79.15, 0.14, 77.21, 0.28) +
      "[rank5]:[E ProcessGroupNCCL.cpp:563] [Rank 5] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=15734)\n"
      "[rank3]:[E ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=15734)\n"
      "W1026 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 2521733 closing signal SIGTERM\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
      "Killed\n"
      "command terminated with exit code 137\n");
  EXPECT_EQ(all.cause, Cause::full);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lines;
  for (const Event& event : all.events) lines.emplace_back(event.line, event.count);
  EXPECT_EQ(lines, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}, {2, 2}, {4, 1}, {5, 1}, {6, 1}}));
  EXPECT_NE(explanation_json(all, "").find("\"events\":[{\"line\":1,\"last_line\":1,\"count\":1,"), std::string::npos);
}

TEST(Story, ALibraryThatRanOutBesidePyTorchIsAFailureOfItsOwn) {
  const auto both =
      explained(torch(0.02, 24, 0.01, 22.9, 0.2) + "node:15325 [2] NCCL WARN Cuda failure 2 'out of memory'\n");
  ASSERT_EQ(both.events.size(), 2U);
  EXPECT_TRUE(both.events[1].what.starts_with("NCCL ran out ")) << both.events[1].what;
  const auto last = explained(torch(0.02, 24, 0.01, 22.9, 0.2) + "Last error:\nCuda failure 2 'out of memory'\n");
  ASSERT_EQ(last.events.size(), 2U);
  EXPECT_EQ(last.events[1].what, both.events[1].what);
}

constexpr std::string_view kNotice =
    "2021-01-01 W tensorflow/core/common_runtime/bfc_allocator.cc:245] Allocator (GPU_0_bfc) ran out of memory trying "
    "to "
    "allocate 2.10GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there "
    "could be performance gains if more memory were available.\n";

TEST(Story, AWarningIsNoFailure) {
  const auto messages = read_messages(kNotice);
  EXPECT_FALSE(explain(messages));
  const auto events = events_of({}, messages);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_NE(events[0].what.find("a warning, no failure"), std::string::npos);
  std::string wrapped(kNotice);
  for (const std::string_view place : {"trying to ", "count=0. ", "that this is "})
    wrapped[wrapped.find(place) + place.size() - 1] = '\n';
  EXPECT_FALSE(explain(read_messages(wrapped)));
  constexpr std::string_view kCut =
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.16GiB. The caller indicates that this is not a "
      "failure, but may mean";
  EXPECT_FALSE(explain(read_messages(kCut)));
  const auto after = explained(std::string(kNotice) + std::string(kNotice) + std::string(100, '\n') +
                               torch(0.02, 24, 0.01, 22.9, 0.2));
  EXPECT_EQ(after.cause, Cause::full);
  EXPECT_EQ(after.message_count, 1U);
  ASSERT_EQ(after.events.size(), 2U);
  EXPECT_EQ(after.events[0].count, 2U);
}

TEST(Story, TheFirstThatTellsItsCauseDecides) {
  const auto both = explained("CUDA error: out of memory\n" + std::string(200, '\n') + torch(4, 24, 1, 15, 7));
  EXPECT_EQ(both.cause, Cause::fragmentation);
  EXPECT_EQ(both.decisive, 1U);
  EXPECT_EQ(both.failure().line, 202U);
}

/// The lines around an unknown program's failure contain the figures, and arithmetic decides.
TEST(Account, OfTheLinesAboveDecidesForAnyProgram) {
  const struct {
    std::string_view text;
    Cause cause;
    std::string_view words;
  } cases[] = {
      {"gridcalc: GPU memory: total 16.0 GiB, free 2.5 GiB, held by us 0.9 GiB\ngridcalc: cannot allocate 3.0 GiB on "
       "the device\n",
       Cause::outside, "2.50 GiB were free"},
      {"solver: device memory: total 23.6 GiB, free 4.1 GiB, allocated by us 1.2 GiB\nsolver: could not allocate 6.1 "
       "GiB on the device\n",
       Cause::outside, "18.30 GiB are used outside"},
      {"lattice: device memory: capacity=24576 MiB free=900 MiB allocated=22100 MiB\nlattice: allocation of 1500 MiB "
       "on "
       "GPU failed\n",
       Cause::full, "21.58 GiB"},
      {"gpu0: total 40.0 GiB, free 3.0 GiB, this process 36.5 GiB\nfoldit: GPU allocation of 5.0 GiB failed\n",
       Cause::full, "this process had 36.50 GiB"},
      {"Memory of other processes on device 1: 9.5 GiB\nDevice 1: 12.0 GiB total\nopticsim: error: could not allocate "
       "4.0 GiB on device 1\n",
       Cause::outside, "others held 9.50 GiB of the device's 12.00 GiB"},
      {"tidal: other clients use 20.1 GiB of GPU memory\ntidal: failed to allocate 6.0 GiB of GPU memory\n",
       Cause::outside, "others held 20.10 GiB"},
      {"arena limit = 4096 MiB, arena in use = 3900 MiB (GPU)\nraywave: out of GPU memory: cannot allocate 400 MiB\n",
       Cause::limit, "4.00 GiB are allowed"},
      {"[gpu] pool limit: 8192 MiB, in use: 8000 MiB\n[gpu] failed to allocate 512 MiB from pool\n", Cause::limit,
       "8.00 GiB are allowed"},
      // There was room below the limit, and the free memory suffices: neither set of figures is for the failure.
      {"[gpu] pool limit: 8192 MiB, in use: 800 MiB\n[gpu] failed to allocate 512 MiB from pool\n", Cause::unknown, ""},
      {"solver: device memory: total 23.6 GiB, free 9.1 GiB, allocated by us 1.2 GiB\nsolver: could not allocate 6.1 "
       "GiB on the device\n",
       Cause::unknown, ""},
      {"mesh: unable to reserve 3072 MiB of GPU memory (1800 MiB free of 8192 MiB)\n", Cause::unknown,
       "3.00 GiB were requested, and 1.76 GiB"},
      {"quark: could not commit 2.0 GiB of device memory, 1.2 GiB available\n", Cause::unknown,
       "2.00 GiB were requested and 1.20 GiB were free"},
  };
  for (const auto& each : cases) {
    const auto found = explained(std::string(each.text));
    EXPECT_EQ(found.cause, each.cause) << each.text;
    EXPECT_NE(found.because.find(each.words), std::string::npos) << each.text << found.because;
  }
}

TEST(Advice, DoesNotNameAnOptionThatTheTextSaysIsIgnored) {
  const std::string fragmented = torch(2, 24, 1.1, 12, 9);
  EXPECT_NE(explained(fragmented).next_step.find("expandable_segments:True"), std::string::npos);
  for (const std::string_view line :
       {"UserWarning: expandable_segments not supported on this platform (Triggered internally)\n",
        "warning: option expandable_segments is ignored\n",
        "Unrecognized CachingAllocator option: expandable_segments\n"}) {
    const auto ignored = explained(std::string(line) + fragmented);
    EXPECT_EQ(ignored.cause, Cause::fragmentation) << line;
    EXPECT_EQ(ignored.next_step.find("expandable_segments"), std::string::npos) << line;
  }
}

TEST(Advice, NoHigherShareForWeightsThatExceedTheDevice) {
  const auto of = [](std::string_view weights) {
    return explained("INFO Model loading took " + std::string(weights) +
                     " GiB and 12.3 seconds\nValueError: No available memory for the cache blocks. Try increasing "
                     "`gpu_memory_utilization` when initializing the engine.\nINFO gpu_memory_utilization=0.90, total "
                     "GPU memory 23.99 GiB\n");
  };
  EXPECT_NE(of("20.0").next_step.find("raise --gpu-memory-utilization"), std::string::npos);
  const auto above_the_share = of("23.0");  // 0.96 of the device
  EXPECT_EQ(above_the_share.cause, Cause::limit);
  EXPECT_NE(above_the_share.next_step.find("raise --gpu-memory-utilization to 0.96 or more (now 0.90)"),
            std::string::npos)
      << above_the_share.next_step;
  EXPECT_NE(above_the_share.because.find("the model's weights alone take 23.00 GiB"), std::string::npos)
      << above_the_share.because;
  const auto larger = of("30.0");
  EXPECT_EQ(larger.cause, Cause::too_big);
  EXPECT_EQ(larger.next_step.find("raise"), std::string::npos) << larger.next_step;
}

TEST(Render, TextAndJson) {
  const auto explanation = explained(torch(1.12, 23.99, 0.85, 22.41, 0.21,
                                           " Including non-PyTorch memory, this process has 23.13 GiB memory in use."));
  EXPECT_TRUE(headline(explanation, "train.log").starts_with("train.log:1: FULL: "));
  const std::string text = explanation_text(explanation, "train.log");
  EXPECT_NE(text.find("responsible"), std::string::npos);
  EXPECT_NE(text.find("this process"), std::string::npos);
  const std::string json = explanation_json(explanation, "train.log");
  EXPECT_NE(json.find("\"schema\":\"vramtrack.explain.v1\""), std::string::npos);
  EXPECT_NE(json.find("\"cause\":\"full\""), std::string::npos);
}

TEST(Render, ForeignBytesAreHarmless) {
  const std::string text = explanation_text(explained("CUDA error: out of memory"), "a\x1b[31m.log");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_FALSE(explain(read_messages("nothing here")));
}

}  // namespace
}  // namespace vramtrack::explain
