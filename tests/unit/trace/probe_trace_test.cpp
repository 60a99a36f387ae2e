#include "trace/probe_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "golden.hpp"
#include "probe_script.hpp"
#include "trace/render/trace_render.hpp"
#include "trace/trace_report.hpp"

namespace vramtrack::trace {
namespace {

using probe::Call;
using probe::Record;

constexpr std::uint64_t kSegment = 2 << 20;

const ProcessTrace& only(const ProbeTrace& trace) {
  return *trace.processes().front();
}

/// The trace of a script, read to its end, with names.
struct Replayed {
  ProbeTrace trace;
  Symbols symbols;
  ProbeNames names;
  explicit Replayed(const ProbeScript& script, NativeNames* native = nullptr) : names(trace, symbols, native, {}) {
    replay(trace, script.slots);
  }
  TraceReport report() { return report_of(trace, names); }
};

TEST(ProbeTrace, BlocksTakeTheBytesOfWhatTheyLieIn) {
  ProbeScript script;
  const std::uint32_t model = script.line("/home/me/model.py", 3), raw = script.line("/home/me/raw.py", 9);
  script.alloc(0x10000000, kSegment, model);
  script.alloc(0x20000000, 1000, raw);
  script.alloc(0x10000000, 600, model, Call::torch_block);
  script.alloc(0x10000000 + 4096, 400, model, Call::torch_block);
  script.free(0x10000000, Call::torch_block);
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 1400) << "400 in a block, 1000 at the driver";
  EXPECT_EQ(only(trace).backing_bytes(), static_cast<std::int64_t>(kSegment));
  EXPECT_EQ(only(trace).cached_bytes(), static_cast<std::int64_t>(kSegment) - 400);
}

TEST(ProbeTrace, BackingIsBackingWhicheverCameFirst) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/model.py", 3);
  script.alloc(0x500, 10, line, Call::torch_block);  // not in any segment
  script.alloc(0x10000000, kSegment, line);
  script.alloc(0x10000000 + kSegment - 1, 1, line, Call::torch_block);
  script.alloc(0x10000000 + kSegment, 7, line, Call::torch_block);  // just outside
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 18);
  script.free(0x10000000);
  ProbeTrace freed;
  replay(freed, script.slots);
  EXPECT_EQ(only(freed).backing_bytes(), 0);
  EXPECT_EQ(only(freed).live_bytes(MemorySpace::device), 18);
}

TEST(ProbeTrace, ABlockOverSeveralPiecesBacksThemAll) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/model.py", 3);
  for (std::uint64_t piece = 0; piece < 4; ++piece)
    script.alloc(0x10000000 + piece * kSegment, kSegment, line, Call::cu_mem_create);
  script.alloc(0x10000000 + kSegment / 2, 2 * kSegment, line, Call::torch_block);  // in the first three
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_EQ(only(trace).backing_bytes(), 3 * static_cast<std::int64_t>(kSegment));
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 3 * static_cast<std::int64_t>(kSegment))
      << "the block, a piece";
  EXPECT_EQ(only(trace).cached_bytes(), static_cast<std::int64_t>(kSegment));
  // A piece that is mapped again serves as backing memory again.
  script.free(0x10000000 + kSegment, Call::cu_mem_create);
  script.alloc(0x10000000 + kSegment, kSegment, line, Call::cu_mem_create);
  script.alloc(0x10000000 + kSegment, 10, line, Call::torch_block);
  ProbeTrace again;
  replay(again, script.slots);
  EXPECT_EQ(only(again).backing_bytes(), 3 * static_cast<std::int64_t>(kSegment));
}

/// An autograd thread allocates a block, without a line of the program.
ProbeScript autograd_script() {
  ProbeScript script;
  script.module("/usr/lib/libtorch_cpu.so", 0x7000, 0x1000);
  const std::uint32_t engine = script.stack({0x7010, 0x7020}, {});
  script.put(Record::thread, Call::none, 0, 0, script.text("pt_autograd_0"), 3, 0, 0);
  script.put(Record::alloc, Call::torch_block, 0, 0, engine, probe::when(1, 3), 0x1000, 10);
  return script;
}

TEST(ProbeTrace, AThreadWithoutOwnCodeIsNamed) {
  Replayed replayed(autograd_script());
  EXPECT_EQ(only(replayed.trace).names().thread_name(3), "pt_autograd_0");
  const TraceReport report = replayed.report();
  ASSERT_EQ(report.sites.size(), 1U);
  EXPECT_EQ(report.sites[0].thread, "pt_autograd_0");
  EXPECT_EQ(replayed.symbols.name(report.sites[0].line.frame), "backward()");
  EXPECT_NE(trace_report_text(report, replayed.names, 5).find("on thread pt_autograd_0"), std::string::npos);
}

TEST(ProbeTrace, BackwardIsThatOfTheNodeOfTheGraph) {
  struct : NativeNames {
    std::vector<NativeName> look_up(const std::string& /*module*/, std::string_view /*id*/,
                                    std::uint64_t offset) override {
      return {
          {offset == 0x10 ? "at::native::mm" : "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Te",
           "", 0}};
    }
  } native;
  Replayed replayed(autograd_script(), &native);
  const TraceReport report = replayed.report();
  EXPECT_EQ(replayed.symbols.name(report.sites.at(0).line.frame), "backward() of AddmmBackward0");
}

TEST(ProbeTrace, APoolThatHidesItsTensorsIsNamedUnlessSomethingLeaks) {
  for (const bool has_pool : {true, false}) {
    ProbeScript script;
    const std::string allocator = has_pool ? "tsl::BFCAllocator::Extend" : "cupy::malloc";
    const std::uint32_t pool =
        script.stack({}, {{"/usr/lib/python3/dist-packages/jax/a.py", allocator, 1}, {"/home/me/a.py", "step", 3}});
    for (std::uint64_t i = 0; i < 5; ++i) script.alloc(0x100000000 * (i + 1), kSegment << i, pool);
    Replayed replayed(script);
    const TraceReport report = replayed.report();
    EXPECT_FALSE(report.leak);
    EXPECT_EQ(report.because.find("pool of JAX or TensorFlow") != std::string::npos, has_pool) << report.because;
    EXPECT_EQ(report.next_step.find("vramtrack run --exact") != std::string::npos, has_pool) << report.next_step;
  }
}

TEST(ProbeTrace, WhatIsCachedIsThatOfTheMomentShown) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x10000000, kSegment, line);
  for (std::uint64_t i = 0; i < 4; ++i) script.alloc(0x10000000 + i * 4096, 4096, line, Call::torch_block);
  for (std::uint64_t i = 0; i < 4; ++i) script.free(0x10000000 + i * 4096, Call::torch_block);  // the exit
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_TRUE(only(trace).has_exit());
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 4 * 4096);
  EXPECT_EQ(only(trace).cached_bytes(), static_cast<std::int64_t>(kSegment) - 4 * 4096);
}

TEST(ProbeTrace, WhatTheProgramToldOfABlockIsItsCategory) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x10000000, kSegment, line);
  for (std::uint64_t i = 0; i < 4; ++i) script.alloc(0x10000000 + i * 4096, 4096, line, Call::torch_block);
  const auto tell = [&](std::uint64_t address, std::string_view category) {
    script.put(Record::label, Call::none, 0, 0, script.text("layer.weight"), 0, address, script.text(category));
  };
  tell(0x10000000, "weights");
  tell(0x10001000, "gradients");
  tell(0x10002000, "weights");
  tell(0x99999000, "weights");  // not a block
  tell(0x10003000, "of a newer program");
  script.free(0x10002000, Call::torch_block);
  script.alloc(0x10002000, 4096, line, Call::torch_block);  // another block, about which nothing was reported
  script.free(0x10000000, Call::torch_block);               // the exit begins
  for (std::uint64_t i = 1; i < 4; ++i) script.free(0x10000000 + i * 4096, Call::torch_block);
  Replayed replayed(script);
  const CategoryTotals totals = replayed.report().categories;
  EXPECT_EQ(totals[Category::weights].bytes, 4096);
  EXPECT_EQ(totals[Category::gradients].bytes, 4096);
  EXPECT_EQ(totals[Category::unknown].bytes, 2 * 4096);
  EXPECT_EQ(totals.bytes(), 4 * 4096);
}

TEST(ProbeTrace, WhatAnInterpreterFreesAtItsEndWasHeld) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  for (std::uint64_t i = 1; i <= 10; ++i) script.alloc(i * 4096, 100, line);
  script.free(4096);  // by the program
  script.put(Record::end, Call::none, 0, 0, 0, probe::when(script.now_us++, 0), 0, 0);
  for (std::uint64_t i = 2; i <= 4; ++i) script.free(i * 4096);  // by the interpreter: less than half
  script.alloc(0x100000, 1, line);                               // a destructor's block
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_TRUE(only(trace).has_exit());
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 901);
}

TEST(ProbeTrace, ALeakIsNamedHoweverManyStepsAreMarked) {
  for (const std::uint64_t steps : {20U, 90U, 120U, 150U, 200U, 500U, 3000U}) {
    ProbeScript script;
    const std::uint32_t leak = script.line("/home/me/train.py", 7), churn = script.line("/home/me/train.py", 8);
    for (std::uint64_t i = 1; i <= steps; ++i) {
      script.alloc(i << 20U, 1000, leak);
      script.alloc(1, 5000, churn);
      script.free(1);
      script.mark("step");
    }
    Replayed replayed(script);
    const TraceReport report = replayed.report();
    EXPECT_TRUE(report.leak) << steps;
    ASSERT_FALSE(report.sites.empty());
    EXPECT_EQ(replayed.symbols.frame(report.sites[0].line.frame).line, 7U) << steps;
  }
}

TEST(ProbeTrace, AWarmUpIsNoLeakHoweverManyStepsAreMarked) {
  for (const std::uint64_t steps : {20U, 120U, 150U, 500U, 3000U}) {
    ProbeScript script;
    const std::uint32_t line = script.line("/home/me/train.py", 7), churn = script.line("/home/me/train.py", 8);
    for (std::uint64_t i = 1; i <= steps; ++i) {
      if (i <= steps / 3) script.alloc(i << 20U, 1000, line);
      script.alloc(1, 5000, churn);
      script.free(1);
      script.mark("step");
    }
    Replayed replayed(script);
    EXPECT_FALSE(replayed.report().leak) << steps;
  }
}

TEST(ProbeTrace, ACacheThatWasFilledLongBeforeTheEndIsNoLeak) {
  for (const bool is_quiet : {false, true}) {
    ProbeScript script;
    const std::uint32_t cache = script.stack({0x5000}, {});
    for (std::uint64_t i = 1; i <= 64; ++i) script.alloc(i << 20U, 1000, cache);
    if (is_quiet) script.now_us += 1000;  // it continues, and allocates nothing
    for (std::uint64_t i = 1; i <= 64; ++i) script.free(i << 20U);
    Replayed replayed(script);
    EXPECT_EQ(replayed.report().leak, !is_quiet);
  }
}

TEST(ProbeTrace, AfterLossesNothingIsCalledALeak) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  for (std::uint64_t i = 1; i <= 200; ++i) script.alloc(i << 20U, 1000, line);
  script.put(Record::lost, Call::none, 0, 0, 0, 20, 0, 0);
  Replayed replayed(script);
  const TraceReport report = replayed.report();
  EXPECT_FALSE(report.leak);
  EXPECT_NE(trace_report_text(report, replayed.names, 5).find("too high or too low"), std::string::npos);
}

TEST(ProbeTrace, WhatIsFreedOfBeforeIsToldWithItsBytesBesideLossesToo) {
  for (const bool has_lost : {false, true}) {
    for (const std::uint64_t bytes : {0U, 3U << 20U}) {
      ProbeScript script;
      if (has_lost) script.put(Record::lost, Call::none, 0, 0, 0, 20, 0, 0);
      script.alloc(1 << 20U, 1000, script.line("/home/me/a.py", 1));
      script.free(1 << 20U);
      for (std::uint64_t i = 2; i <= 21; ++i)
        script.put(Record::free, Call::torch_block, 0, 0, 0, probe::when(script.now_us++, 0), i << 20U, bytes);
      Replayed replayed(script);
      EXPECT_EQ(only(replayed.trace).freed_of_before().blocks, 20);
      EXPECT_EQ(only(replayed.trace).freed_of_before().bytes, static_cast<std::int64_t>(20 * bytes));
      const TraceReport report = replayed.report();
      const std::string text = trace_report_text(report, replayed.names, 5);
      EXPECT_NE(text.find("note: process 4711: 20 frees "), std::string::npos);
      EXPECT_EQ(text.find("60.0 MiB, ") != std::string::npos, bytes > 0) << text;
      const std::string json = trace_report_json(report, replayed.names);
      EXPECT_NE(json.find(fmt::format("\"freed_of_before_bytes\":{},\"freed_of_before_count\":20", 20 * bytes)),
                std::string::npos)
          << json;
    }
  }
}

TEST(ProbeTrace, LedgersAreApart) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(1, 10, line, Call::cu_mem_alloc);
  script.alloc(2, 20, line, Call::cu_mem_alloc_managed);
  script.alloc(3, 40, line, Call::cu_mem_host_alloc, -1);
  script.alloc(4, 80, line, Call::cu_ipc_open_mem_handle);
  ProbeTrace trace;
  replay(trace, script.slots);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::device), 30);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::host), 40);
  EXPECT_EQ(only(trace).live_bytes(MemorySpace::mapped), 80);
}

TEST(ProbeTrace, SampledBlocksStandForMore) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.put(Record::sampling, Call::none, 0, 0, 0, 0, 0, 1000);
  script.alloc(1, 100, line);
  script.alloc(2, 5000, line);
  script.put(Record::lost, Call::none, 0, 0, 0, 3, 0, 0);
  Replayed replayed(script);
  EXPECT_EQ(only(replayed.trace).live_bytes(MemorySpace::device), 6000);
  EXPECT_EQ(only(replayed.trace).sites().front().live.blocks, 11);
  const std::string text = trace_report_text(replayed.report(), replayed.names, 10);
  expect_golden("words/trace/report_sampled.txt", text);
  script.free(1);
  script.free(2);
  ProbeTrace empty;
  replay(empty, script.slots);
  EXPECT_EQ(only(empty).held_at_exit().front().bytes, 0) << "what was added is taken away";
}

TEST(ProbeTrace, TheExitIsNotPartOfTheRun) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  for (std::uint64_t i = 1; i <= 100; ++i) script.alloc(i * 4096, 10, line);
  for (std::uint64_t i = 1; i <= 100; ++i) script.free(i * 4096);
  Replayed replayed(script);
  EXPECT_TRUE(only(replayed.trace).has_exit());
  EXPECT_EQ(only(replayed.trace).live_bytes(MemorySpace::device), 1000);
  EXPECT_EQ(only(replayed.trace).held_at_exit().front().bytes, 0);
  const TraceReport report = replayed.report();
  ASSERT_EQ(report.sites.size(), 1U);
  EXPECT_TRUE(report.sites[0].leak);
}

TEST(ProbeNames, PythonFramesReplaceTheLoopThatRanThem) {
  ProbeScript script;
  script.module("/usr/bin/python3.11", 0x1000, 0x1000);
  script.module("/home/me/site-packages/torch/lib/libtorch.so", 0x3000, 0x1000);
  script.module("/home/me/ext.so", 0x5000, 0x1000);
  //         torch    loop    ext     loop    main
  script.alloc(1, 10,
               script.stack({0x3010, 0x1010, 0x5010, 0x1010, 0x1090},
                            {{"/home/me/site-packages/torch/nn.py", "forward", 5, false},
                             {"/home/me/train.py", "step", 7, true},
                             {"/home/me/main.py", "<module>", 9, true}}));
  struct Names : NativeNames {
    std::vector<NativeName> look_up(const std::string& module, std::string_view, std::uint64_t offset) override {
      if (module == "/usr/bin/python3.11")
        return {{offset == 0x10 ? "_PyEval_EvalFrameDefault.cold" : "Py_RunMain", "", 0}};
      return {{"inlined", "/home/me/src/a.hpp", 3}, {"outer", "/home/me/src/a.cpp", 4}};
    }
  } native;
  Replayed replayed(script, &native);
  const StackId stack = replayed.names.stack(only(replayed.trace), 1);
  std::string told;
  for (const FrameId frame : replayed.symbols.stack(stack)) told += std::string(replayed.symbols.name(frame)) + " ";
  constexpr std::string_view kNative = "inlined outer forward step inlined outer <module> Py_RunMain ";
  EXPECT_EQ(told, kNative);
  EXPECT_EQ(replayed.symbols.name(replayed.names.line(stack).frame), "inlined");
  // Without symbols, the interpreter's own frames provide no information.
  Symbols plain;
  ProbeNames offsets(replayed.trace, plain, nullptr, {});
  told.clear();
  for (const FrameId frame : plain.stack(offsets.stack(only(replayed.trace), 1)))
    told += std::string(plain.name(frame)) + " ";
  EXPECT_EQ(told, "libtorch.so+0x10 forward step <module> ");
  const SiteLine line = offsets.line(offsets.stack(only(replayed.trace), 1));
  EXPECT_EQ(plain.name(line.frame), "step");
  EXPECT_TRUE(line.is_own);
}

TEST(ProbeNames, FramesOfTheInterpreterStandBetweenNoPythonFrames) {
  ProbeScript script;
  script.module("/usr/bin/python3.11", 0x1000, 0x1000);
  script.module("/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so", 0x3000, 0x1000);
  script.module("/home/me/ext.so", 0x5000, 0x1000);
  //         own     cpython loop    cpython own     ctypes  cpython loop    main
  script.alloc(1, 10,
               script.stack({0x5010, 0x1020, 0x1010, 0x1020, 0x5010, 0x3010, 0x1020, 0x1010, 0x1020},
                            {{"/home/me/train.py", "step", 7, true}, {"/home/me/main.py", "<module>", 9, true}}));
  struct Names : NativeNames {
    std::vector<NativeName> look_up(const std::string& module, std::string_view, std::uint64_t offset) override {
      if (module == "/home/me/ext.so") return {{"own", "/home/me/a.cpp", 4}};
      return {{offset == 0x10 && module == "/usr/bin/python3.11" ? "_PyEval_EvalFrameDefault" : "type_call", "", 0}};
    }
  } native;
  Replayed replayed(script, &native);
  std::string told;
  for (const FrameId frame : replayed.symbols.stack(replayed.names.stack(only(replayed.trace), 1)))
    told += std::string(replayed.symbols.name(frame)) + " ";
  constexpr std::string_view kFrames = "own type_call step own <module> type_call ";
  EXPECT_EQ(told, kFrames);
}

TEST(ProbeNames, WithoutOwnCodeTheOutermostLibraryFrameIsNamed) {
  ProbeScript script;
  script.alloc(1, 10,
               script.stack({}, {{"/x/site-packages/lib/a.py", "inner", 1}, {"/x/site-packages/run.py", "run", 2}}));
  Replayed replayed(script);
  const SiteLine line = replayed.names.line(replayed.names.stack(only(replayed.trace), 1));
  EXPECT_EQ(replayed.symbols.name(line.frame), "run");
  EXPECT_FALSE(line.is_own);
  Symbols again;
  ProbeNames mine(replayed.trace, again, nullptr, OwnCode({}, {"/x/site-packages/lib"}));
  EXPECT_EQ(again.name(mine.line(mine.stack(only(replayed.trace), 1)).frame), "inner");
}

TEST(OwnCode, LibrariesAreKnown) {
  const OwnCode own({"/srv/vendor"}, {});
  EXPECT_TRUE(own.is_own_python("/home/me/train.py"));
  EXPECT_TRUE(own.is_own_python("<stdin>"));
  for (const char* file : {"/usr/lib/python3.11/threading.py", "<frozen importlib._bootstrap>",
                           "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "/srv/vendor/a.py", ""})
    EXPECT_FALSE(own.is_own_python(file)) << file;
  EXPECT_TRUE(own.is_own_native("/home/me/a.out", "/home/me/a.cpp"));
  EXPECT_TRUE(own.is_own_native("/home/me/a.out", ""));
  EXPECT_FALSE(own.is_own_native("/home/me/a.out", "/usr/include/c++/12/bits/stl_vector.h"));
  for (const char* module :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/cuda/libcudart.so.12", "/home/me/libcuda.so.1",
        "/home/me/bin/python3.11", "/venv/site-packages/torch/lib/libc10.so"})
    EXPECT_FALSE(own.is_own_native(module, "")) << module;
}

TEST(OwnCode, AProgramIsTheUsersWhereverItIsInstalled) {
  const OwnCode own;
  EXPECT_TRUE(own.is_own_native("/opt/app/bin/server", ""));
  EXPECT_TRUE(own.is_own_native("/opt/app/bin/server", "/home/me/server.cpp"));
  EXPECT_TRUE(own.is_own_native("/usr/local/lib/app/server", "/usr/src/app/server.cpp"));
  EXPECT_FALSE(own.is_own_native("/opt/app/bin/server", "/opt/cuda/include/thrust/vector.h"));
  EXPECT_FALSE(own.is_own_native("/opt/app/bin/server", "/usr/include/c++/12/bits/stl_vector.h"));
  EXPECT_FALSE(own.is_own_native("/opt/app/lib/libengine.so.2", ""));
  EXPECT_FALSE(own.is_own_native("/opt/conda/bin/python3.11", ""));
}

TEST(TraceReport, JsonHasTheFieldsThatAreDocumented) {
  ProbeScript script;
  const std::uint32_t leak = script.line("/home/me/train.py", 42), kept = script.line("/home/me/model.py", 7);
  script.alloc(1, 5000, kept);
  for (std::uint64_t i = 2; i < 200; ++i) {
    script.now_us = i * 10'000;
    script.alloc(i * 4096, 100, leak);
  }
  Replayed replayed(script);
  const TraceReport report = replayed.report();
  const std::string json = trace_report_json(report, replayed.names);
  EXPECT_TRUE(json.starts_with(R"({"schema":"vramtrack.trace_report.v1","program":"./program --fast","duration_s":)"))
      << json;
  EXPECT_NE(
      json.find(
          R"("residual_bytes":null,"findings":[{"leak":true,"site":"/home/me/train.py:42 f","live_bytes":19800,)"),
      std::string::npos)
      << json;
  EXPECT_NE(
      json.find(
          R"({"leak":true,"suspected":false,"site":"/home/me/train.py:42 f","call":"cuMemAlloc","live_bytes":19800,"live_count":198,"growth_bytes_per_s":)"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("frames":[{"function":"f","file":"/home/me/train.py","line":42,"python":true}]})"),
            std::string::npos);
  EXPECT_LT(json.find("train.py"), json.find("model.py")) << "leaking sites first";
  EXPECT_NEAR(report.sites[0].growth_bytes_per_s, 10'000, 1'000);
  EXPECT_NEAR(report.sites[0].share, 1, 1e-9);
  EXPECT_NEAR(report.sites[0].oldest_s, 1.97, 0.01);
  const std::string text = trace_report_text(report, replayed.names, 10);
  expect_golden("words/trace/report_leak.txt", text);
}

/// Steps with an activation and a loss that are kept, and searches for what keeps them.
struct KeptSteps : ProbeScript {
  const std::uint32_t activation = line("/home/me/model.py", 7), loss = line("/home/me/train.py", 42);
  static constexpr std::uint64_t kActivations = 1U << 20U, kLosses = 2U << 20U;

  void steps(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      now_us = i * 10'000;
      alloc(kActivations + i * 64, 5000, activation);
      alloc(kLosses + i * 64, 100, loss);
    }
  }
  void kept(std::string_view words, std::uint64_t address, bool is_rooted) {
    put(probe::Record::kept, probe::Call::none, 0, is_rooted ? probe::kRootedKeeper : 0, text(words),
        probe::when(now_us, 0), address, 100);
  }
  void unheld(std::uint64_t address, std::uint8_t flags) {
    put(probe::Record::kept, probe::Call::none, 0, flags, text("-"), probe::when(now_us, 0), address, 100);
  }
  void kept(std::string_view words, std::uint64_t address, std::uint8_t flags, std::uint64_t all_bytes) {
    put(probe::Record::kept, probe::Call::none, 0, flags, text(words), probe::when(now_us, 0), address, all_bytes);
  }
  void look_ends(std::string_view why) {
    put(probe::Record::kept, probe::Call::none, 0, probe::kLookEnd, why.empty() ? 0 : text(why), probe::when(now_us, 0),
        200, 3000);
  }
};

struct ReadSteps : Replayed {
  explicit ReadSteps(const ProbeScript& script) : Replayed(script) {}
  TraceReport report = Replayed::report();
};

TEST(TraceReport, TheVariableThatKeepsALeakIsNamed) {
  KeptSteps script;
  script.steps(0, 100);
  for (std::uint64_t i = 0; i < 100; i += 4) script.kept("losses (list, 100 items)", KeptSteps::kLosses + i * 64, true);
  script.kept("loss", KeptSteps::kLosses + 99 * 64, true);
  script.look_ends("");
  script.steps(100, 200);
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  ASSERT_TRUE(read.report.findings[0].keeper);
  EXPECT_EQ(read.report.findings[0].keeper->words, "losses (list, 100 items)");
  EXPECT_NEAR(static_cast<double>(read.report.findings[0].keeper->looked_us), 0.987e6, 100);
  const std::string text = trace_report_text(read.report, read.names, 10);
  expect_golden("words/trace/report_kept.txt", text);
  EXPECT_NE(
      trace_report_json(read.report, read.names).find(R"x("kept_by":{"words":"losses (list, 100 items)","seen_s":)x"),
      std::string::npos);
}

TEST(TraceReport, TheLineWhoseBlocksAVariableKeepsComesFirst) {
  KeptSteps script;
  script.steps(0, 200);
  for (std::uint64_t i = 0; i < 200; i += 4) script.kept("outputs (list)", KeptSteps::kActivations + i * 64, true);
  for (std::uint64_t i = 0; i < 200; i += 4) script.kept("an object of C", KeptSteps::kLosses + i * 64, false);
  script.look_ends("");
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  ASSERT_EQ(read.report.findings[0].sites.size(), 2U);
  EXPECT_EQ(read.report.sites[read.report.findings[0].sites.front()].live.bytes, 200 * 5000);
  ASSERT_TRUE(read.report.findings[0].keeper);
  EXPECT_EQ(read.report.findings[0].keeper->words, "outputs (list)");
}

TEST(TraceReport, LinesOfOneStepThatTwoVariablesKeepAreTwoFindings) {
  KeptSteps script;
  script.steps(0, 200);
  for (std::uint64_t i = 0; i < 200; i += 4) {
    script.kept("outputs (list, 200 items) in a.py module globals", KeptSteps::kActivations + i * 64, true);
    script.kept("losses (list, 200 items) in a.py module globals", KeptSteps::kLosses + i * 64, true);
  }
  script.look_ends("");
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 2U);
  ASSERT_TRUE(read.report.findings[0].keeper && read.report.findings[1].keeper);
  EXPECT_TRUE(read.report.findings[0].keeper->words.starts_with("outputs "));
  EXPECT_EQ(read.report.findings[0].live.bytes, 200 * 5000);
  EXPECT_TRUE(read.report.findings[1].keeper->words.starts_with("losses "));
  EXPECT_EQ(read.report.findings[1].live.bytes, 200 * 100);
}

/// A step with three lines: blocks without a reference in Python belong to the variable that keeps graphs.
TEST(TraceReport, WhatAGraphHoldsGoesWithWhatKeepsTheGraph) {
  KeptSteps script;
  const std::uint32_t metric = script.line("/home/me/train.py", 50);
  constexpr std::uint64_t kMetrics = 3U << 20U;
  for (std::uint64_t i = 0; i < 200; ++i) {
    script.steps(i, i + 1);
    script.alloc(kMetrics + i * 64, 300, metric);
  }
  for (std::uint64_t i = 0; i < 200; i += 4) {
    script.kept("losses (list, 200 items) in a.py module globals", KeptSteps::kLosses + i * 64,
                probe::kRootedKeeper | probe::kGraphKeeper, 400);
    script.kept("metrics (list, 200 items) in a.py module globals", kMetrics + i * 64, probe::kRootedKeeper, 400);
  }
  script.look_ends("");
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 2U);
  EXPECT_TRUE(read.report.findings[0].keeper->words.starts_with("losses "));
  EXPECT_EQ(read.report.findings[0].live.bytes, 200 * 5100);
  EXPECT_TRUE(read.report.findings[1].keeper->words.starts_with("metrics "));
}

/// One call site: `of` returns the list that keeps the block of a step; "recent" has the last `count` blocks.
struct OneSite : KeptSteps {
  template <class Of>
  explicit OneSite(Of of) {
    for (std::uint64_t i = 0; i < 240; ++i) {
      now_us = i * 10'000;
      alloc(kLosses + i * 64, 1000, loss);
    }
    for (std::uint64_t i = 0; i < 240; i += 2)
      for (const std::string_view words : of(i)) kept(words, kLosses + i * 64, probe::kRootedKeeper, 240'000);
    look_ends("");
  }
};
using Keepers = std::vector<std::string_view>;

TEST(TraceReport, OneLineThatTwoVariablesKeepIsTwoFindings) {
  const ReadSteps read(OneSite([](std::uint64_t i) {
    return Keepers{i % 3 == 0 ? "a (list, 80 items) in a.py module globals"
                              : "b (list, 160 items) in a.py module globals"};
  }));
  ASSERT_EQ(read.report.findings.size(), 2U);
  EXPECT_EQ(read.report.sites.size(), 2U);
  std::int64_t bytes = 0, blocks = 0;
  for (const Finding& finding : read.report.findings) {
    ASSERT_TRUE(finding.keeper);
    bytes += finding.live.bytes;
    blocks += finding.live.blocks;
  }
  EXPECT_EQ(bytes, 240'000);
  EXPECT_EQ(blocks, 240);
}

TEST(TraceReport, OneLineIsOneFindingWhereOneVariableKeepsMoreAndMore) {
  constexpr std::string_view kA = "a (list, 200 items) in a.py module globals",
                             kB = "b (list, 40 items), local of f() at a.py:3",
                             kX = "['x'] (list, 120 items) of log (dict, 2 items) in a.py module globals",
                             kY = "['y'] (list, 120 items) of log (dict, 2 items) in a.py module globals";
  const auto findings = [](auto of) { return ReadSteps(OneSite(of)).report.findings.size(); };
  EXPECT_EQ(findings([&](std::uint64_t i) { return Keepers{i < 40 ? kB : kA}; }), 1U) << "what was loaded at first";
  EXPECT_EQ(findings([&](std::uint64_t i) { return Keepers{i >= 200 ? kB : kA}; }), 1U) << "a window of the last steps";
  EXPECT_EQ(findings([&](std::uint64_t) { return Keepers{kA, kB}; }), 1U) << "the same blocks in both";
  EXPECT_EQ(findings([&](std::uint64_t i) { return Keepers{i % 4 < 2 ? kX : kY}; }), 1U)
      << "two keys that one line fills";
}

TEST(TraceReport, WhatWasGivenBackBeforeTheLookHadAKeeperThen) {
  KeptSteps script;
  script.steps(0, 200);
  for (std::uint64_t i = 0; i < 200; ++i) {
    script.free(KeptSteps::kActivations + i * 64);
    script.free(KeptSteps::kLosses + i * 64);
  }
  script.put(probe::Record::end, probe::Call::none, 0, 0, 0, probe::when(script.now_us, 0), 0, 0);
  script.now_us += 100;
  script.look_ends("");
  script.now_us += 100;
  script.put(probe::Record::exit, probe::Call::none, 0, 0, 0, probe::when(script.now_us, 0), 0, 0);
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  expect_golden("words/trace/no_keeper_given_back.txt", read.report.findings[0].why_no_keeper + "\n");
}

TEST(TraceReport, WhatKeepsOneBlockOfManyKeepsNoLeak) {
  KeptSteps script;
  script.steps(0, 200);
  script.kept("loss", KeptSteps::kLosses + 199 * 64, true);
  script.look_ends("stopped after 1 s, with tensors left");
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  EXPECT_FALSE(read.report.findings[0].keeper);
  EXPECT_TRUE(read.report.findings[0].why_no_keeper.ends_with(": stopped after 1 s, with tensors left"));
  EXPECT_NE(trace_report_json(read.report, read.names).find(R"("kept_by":null,"no_keeper_because":"the last search,)"),
            std::string::npos);
}

/// A cycle outlives its function: an earlier search then found more than the last one.
TEST(TraceReport, AKeeperOfALookStaysWhereTheLastOneFindsNoVariable) {
  KeptSteps script;
  script.steps(0, 100);
  for (std::uint64_t i = 0; i < 100; i += 4)
    script.kept("a chain of m.Node (100 items) that begins at root, local of f() at a.py:1",
                KeptSteps::kLosses + i * 64, true);
  script.look_ends("");
  script.steps(100, 200);
  for (std::uint64_t i = 0; i < 200; i += 4) script.kept("an object of m.Node", KeptSteps::kLosses + i * 64, false);
  script.look_ends("");
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  ASSERT_TRUE(read.report.findings[0].keeper);
  EXPECT_TRUE(read.report.findings[0].keeper->words.starts_with("a chain of m.Node "));
}

/// The items of a container are counted at the search, however many blocks there are at the end.
TEST(TraceReport, LinesOfOneContainerAreOneFindingHoweverLongAgoItWasSeen) {
  KeptSteps script;
  const auto steps = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      script.now_us = i * 10'000;
      script.alloc(KeptSteps::kLosses + i * 64, 100, script.loss);
      if (i % 3 == 0) script.alloc(KeptSteps::kActivations + i * 64, 300, script.activation);
    }
  };
  steps(0, 60);
  for (std::uint64_t i = 0; i < 60; i += 3) {
    script.kept("tuple, 2 items within log (list, 80 items) in a.py module globals", KeptSteps::kLosses + i * 64, true);
    script.kept("log (list, 80 items) in a.py module globals", KeptSteps::kActivations + i * 64, true);
  }
  script.look_ends("");
  steps(60, 900);
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  EXPECT_EQ(read.report.findings[0].sites.size(), 2U);
}

TEST(TraceReport, WhatTheDriverTakesIsNamedByItsCall) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 3);
  script.alloc(1 << 12, 300 << 20, line, Call::cu_context);
  script.alloc(2 << 12, 5 << 20, line, Call::cu_module);
  script.alloc(3 << 12, 2 << 20, line, Call::cu_library);
  script.alloc(4 << 12, 3 << 20, line, Call::cu_graph_exec);
  script.alloc(5 << 12, 1 << 20, line, Call::cu_graph_memory);
  script.alloc(0x4000'0000, 9 << 20, line, Call::cu_mem_alloc_managed);
  script.alloc(0x8000'0000, 8 << 20, line);
  const ReadSteps read(script);
  const std::string text = trace_report_text(read.report, read.names, 5);
  expect_golden("words/trace/report_of_driver.txt", text);
}

/// Each reason for not finding a variable, in words.
TEST(TraceReport, WhereNoKeeperIsNamedTheReasonIs) {
  std::string reasons;
  const auto why = [&reasons](const std::function<void(KeptSteps&)>& look) {
    KeptSteps script;
    script.steps(0, 100);
    look(script);
    script.steps(100, 200);
    const ReadSteps read(script);
    EXPECT_EQ(read.report.findings.size(), 1U);
    if (read.report.findings.empty()) return;
    EXPECT_FALSE(read.report.findings[0].keeper);
    const std::string& reason = read.report.findings[0].why_no_keeper;
    EXPECT_NE(trace_report_text(read.report, read.names, 5).find(": " + reason + '\n'), std::string::npos);
    reasons += reason + '\n';
  };
  why([](KeptSteps&) {});
  why([](KeptSteps& script) {
    script.put(probe::Record::onward, probe::Call::none, 0, 0, 0, probe::when(script.now_us, 0), 0, 0);
  });
  why([](KeptSteps& script) {
    script.put(probe::Record::kept, probe::Call::none, 0, probe::kLookEnd, script.text("it is switched off"),
               probe::when(script.now_us, 0), 0, 0);
  });
  why([](KeptSteps& script) { script.look_ends(""); });
  for (const auto flags : {probe::kUnheldBlock, probe::kUnaskedBlock})
    why([flags](KeptSteps& script) {
      for (std::uint64_t i = 0; i < 100; ++i) script.unheld(KeptSteps::kLosses + i * 64, flags);
      script.look_ends("");
    });
  why([](KeptSteps& script) {
    for (std::uint64_t i = 0; i < 100; i += 4) script.kept("an object of C++", KeptSteps::kLosses + i * 64, false);
    script.look_ends("");
  });
  ProbeScript native;
  native.module("/home/me/server", 0x10000, 0x1000);
  const std::uint32_t stack = native.stack({0x10010}, {});
  for (std::uint64_t i = 0; i < 200; ++i) {
    native.now_us = i * 10'000;
    native.alloc((i + 1) << 20U, 5000, stack);
  }
  const ReadSteps read(native);
  ASSERT_EQ(read.report.findings.size(), 1U);
  expect_golden("words/trace/no_keeper.txt", reasons + read.report.findings[0].why_no_keeper + '\n');
}

/// The allocations in a program's steps: Python stacks, innermost first.
struct Stacks : ProbeScript {
  using Frames = std::vector<Python>;
  void steps(std::initializer_list<std::pair<Frames, std::uint64_t>> kept) {
    std::vector<std::uint32_t> stacks;
    for (const auto& [frames, bytes] : kept) stacks.push_back(stack({}, frames));
    for (std::uint64_t i = 0; i < 200; ++i) {
      now_us = i * 10'000;
      std::uint64_t site = 0;
      for (const auto& [frames, bytes] : kept) {
        alloc(((site + 1) << 20U) + i * 64, bytes, stacks[site]);
        ++site;
        now_us += 100;
      }
    }
  }
  std::string first_line() const {
    const ReadSteps read(*this);
    EXPECT_EQ(read.report.findings.size(), 1U);
    if (read.report.findings.empty()) return {};
    return frame_words(read.symbols, read.report.sites[read.report.findings[0].sites.front()].line.frame);
  }
};

/// The innermost library other than the driver's; for a stack without one, Python.
TEST(TraceReport, LibrariesThatAllocateAreToldApart) {
  ProbeScript script;
  script.module("/usr/lib/libcudart.so.12", 0x10000, 0x1000);
  script.module("/opt/llama/libggml-cuda.so", 0x20000, 0x1000);
  script.module("/opt/llama/server", 0x30000, 0x1000);
  script.alloc(0x1000, 3 << 20, script.stack({0x10010, 0x30010}, {}));
  script.alloc(0x1000000, 5 << 20, script.stack({0x10010, 0x20010, 0x30010}, {}));
  script.alloc(0x2000000, 1 << 20, script.line("/home/me/a.py", 3));
  script.alloc(0x3000000, 9 << 20, script.stack({0x20010}, {}), Call::cu_mem_host_alloc);
  const ReadSteps read(script);
  const std::string text = trace_report_text(read.report, read.names, 5);
  expect_golden("words/trace/report_libraries.txt", text);
  EXPECT_NE(trace_report_json(read.report, read.names).find(R"({"library":"server","bytes":3145728,"count":1})"),
            std::string::npos);
}

/// Calls from ctypes are Python's, whatever started the program; an extension that Python calls is a library.
TEST(TraceReport, WhatPythonCallsItselfIsItsOwnAndNotOfWhatBeganTheProgram) {
  ProbeScript script;
  script.module("/usr/lib/libcudart.so.12", 0x10000, 0x1000);
  script.module("/usr/lib/libffi.so.8.1.2", 0x20000, 0x1000);
  script.module("/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so", 0x30000, 0x1000);
  script.module("/usr/bin/python3.11", 0x40000, 0x1000);
  script.module("/usr/lib/libc.so.6", 0x50000, 0x1000);
  script.module("/home/me/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", 0x60000, 0x1000);
  const std::vector<ProbeScript::Python> python = {{"/home/me/train.py", "step", 7, true}};
  script.alloc(0x1000, 3 << 20, script.stack({0x10010, 0x20010, 0x30010, 0x40010, 0x50010}, python));
  script.alloc(0x1000000, 5 << 20, script.stack({0x10010, 0x60010, 0x40010, 0x50010}, python));
  const ReadSteps read(script);
  const std::string text = trace_report_text(read.report, read.names, 5);
  EXPECT_NE(text.find(" libtorch_cuda.so 5.0 MiB, Python 3.0 MiB\n"), std::string::npos) << text;
}

/// An address without a name in the debug information: for a library its name, once; for the program its location.
TEST(ProbeNames, ALibraryWithoutNamesIsNamedByItself) {
  ProbeScript script;
  script.module("/usr/lib/libffi.so.8.1.2", 0x20000, 0x1000);
  script.module("/home/me/server", 0x30000, 0x1000);
  script.alloc(1, 10, script.stack({0x20010, 0x20030, 0x30010, 0x20010}, {}));
  struct Nothing : NativeNames {
    std::vector<NativeName> look_up(const std::string&, std::string_view, std::uint64_t) override { return {}; }
  } native;
  Replayed replayed(script, &native);
  std::string told;
  for (const FrameId frame : replayed.symbols.stack(replayed.names.stack(only(replayed.trace), 1)))
    told += frame_words(replayed.symbols, frame) + "|";
  constexpr std::string_view kFrames = "libffi.so.8.1.2|/home/me/server server+0x10|libffi.so.8.1.2|";
  EXPECT_EQ(told, kFrames);
}

TEST(TraceReport, WaysOfAllocatingAreToldApart) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.cu", 3);
  script.alloc(0x1000, 3 << 20, line);
  script.alloc(0x1000000, 5 << 20, line, Call::cu_mem_alloc_managed);
  script.alloc(0x2000000, 1 << 20, line, Call::cu_graph_memory);
  script.alloc(0x3000000, 1 << 20, line, Call::cu_graph_memory);
  script.alloc(0x4000000, 9 << 20, line, Call::cu_mem_host_alloc);
  for (const std::uint64_t module : {1U, 2U}) script.alloc(module, 0, script.line("/home/me/a.cu", 4), Call::cu_module);
  const ReadSteps read(script);
  const std::string text = trace_report_text(read.report, read.names, 5);
  expect_golden("words/trace/report_calls.txt", text);
  EXPECT_NE(
      trace_report_json(read.report, read.names).find(R"({"call":"memory of CUDA graphs","bytes":2097152,"count":2})"),
      std::string::npos);
}

TEST(TraceReport, OfAKeptGraphTheLossIsNamedFirst) {
  Stacks script;
  script.steps({{{{"t.py", "forward", 3}, {"t.py", "train", 12}}, 5000}, {{{"t.py", "train", 13}}, 100}});
  EXPECT_EQ(script.first_line(), "t.py:13 train");
  Stacks module;
  module.steps({{{{"t.py", "<module>", 12}}, 5000}, {{{"t.py", "<module>", 13}}, 100}});
  EXPECT_EQ(module.first_line(), "t.py:13 <module>") << "the steps run in it";
}

TEST(TraceReport, OfLinesInOneFunctionThatTheStepsCallTheOneThatHoldsMostIsNamedFirst) {
  Stacks script;
  const Stacks::Frames step = {{"t.py", "<module>", 30}};
  script.steps({{step, 300},
                {{{"t.py", "__init__", 8}, {"t.py", "<module>", 31}}, 5000},
                {{{"t.py", "__init__", 9}, {"t.py", "<module>", 31}}, 100}});
  EXPECT_EQ(script.first_line(), "t.py:8 __init__");
}

TEST(TraceReport, ALineOfTooFewBlocksBelongsToTheLeakWithWhichItGoesInStep) {
  KeptSteps script;
  const std::uint32_t scratch = script.line("/home/me/model.py", 9);
  for (std::uint64_t i = 0; i < 11; ++i) {
    script.now_us = i * 1'000'000;
    script.alloc(64, 10, scratch);
    script.free(64);
    script.alloc(KeptSteps::kLosses + i * 64, 100, script.loss);
    script.alloc(KeptSteps::kActivations + i * 64, 5000, script.activation);
  }
  const ReadSteps read(script);
  ASSERT_EQ(read.report.findings.size(), 1U);
  EXPECT_EQ(read.report.findings[0].sites.size(), 2U);
  EXPECT_EQ(read.report.findings[0].live.bytes, 11 * (5000 + 100));
}

TEST(TraceReport, WhatOneContainerKeepsIsOneLeakHoweverItEnds) {
  for (const bool has_keeper : {true, false}) {
    KeptSteps script;
    script.steps(0, 200);
    if (has_keeper) {
      constexpr std::string_view kWords = "losses (list, 200 items) in t.py module globals";
      for (std::uint64_t i = 0; i < 200; i += 4) {
        script.kept("T.saved (tuple, 1 items), attribute of an object of m.T within " + std::string(kWords),
                    KeptSteps::kActivations + i * 64, true);
        script.kept(kWords, KeptSteps::kLosses + i * 64, true);
      }
      script.look_ends("");
    }
    // The collector finalizes all of one kind, then all of the other.
    script.put(probe::Record::end, probe::Call::none, 0, 0, 0, probe::when(script.now_us, 0), 0, 0);
    for (const std::uint64_t all : {KeptSteps::kActivations, KeptSteps::kLosses})
      for (std::uint64_t i = 0; i < 200; ++i) script.free(all + i * 64);
    const ReadSteps read(script);
    ASSERT_EQ(read.report.findings.size(), has_keeper ? 1U : 2U);
    if (!has_keeper) continue;
    EXPECT_EQ(read.report.findings[0].steps, 200U);
    EXPECT_EQ(read.report.sites[read.report.findings[0].sites.front()].live.bytes, 200 * 100) << "the nearer one";
  }
}

TEST(TraceReport, ALookThatFindsNothingKeepsWhatAnEarlierOneFound) {
  KeptSteps script;
  script.steps(0, 200);
  for (std::uint64_t i = 0; i < 200; i += 4) script.kept("losses (list)", KeptSteps::kLosses + i * 64, true);
  script.look_ends("");
  script.look_ends("");
  script.kept("cut off", KeptSteps::kLosses, true);
  const ReadSteps read(script);
  ASSERT_TRUE(read.report.findings.at(0).keeper);
  EXPECT_EQ(read.report.findings[0].keeper->words, "losses (list)");
}

TEST(TraceReport, SuppressionsLeaveSitesOut) {
  EXPECT_TRUE(matches_pattern("*train*", "/home/me/train.py"));
  EXPECT_TRUE(matches_pattern("f", "f"));
  EXPECT_FALSE(matches_pattern("f", "ff"));
  EXPECT_TRUE(matches_pattern("a*b*c", "axxbyybzc"));
  EXPECT_FALSE(matches_pattern("a*b*c", "axxbyybz"));
  ProbeScript script;
  const std::uint32_t leak = script.line("/home/me/train.py", 42);
  for (std::uint64_t i = 2; i < 200; ++i) script.alloc(i * 4096, 100, leak);
  Replayed replayed(script);
  const TraceReport report =
      report_of(replayed.trace, replayed.names, Suppressions::parse("# known\n\nleak:*/train.py \n"));
  EXPECT_FALSE(report.leak);
  EXPECT_EQ(report.suppressed_sites, 1U);
}

TEST(TraceReport, ProcessesAreToldEachAndSummed) {
  ProbeTrace trace;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ProbeScript script;
    const std::uint32_t line = script.line("/home/me/a.py", 1);
    for (std::uint64_t i = 1; i < 100; ++i) script.alloc(i * 4096, 10, line);
    ASSERT_TRUE(trace.process(rank, {100 + rank, 5, 0, "rank"}));
    ASSERT_TRUE(trace.slots(rank, script.slots));
  }
  trace.finish();
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, {});
  const TraceReport report = report_of(trace, names);
  ASSERT_EQ(report.processes.size(), 2U);
  EXPECT_EQ(report.processes[1].pid, 101U);
  EXPECT_EQ(report.live_bytes[0], 1980);
  ASSERT_EQ(report.sites.size(), 1U);
  EXPECT_EQ(report.sites[0].live.bytes, 1980);
  EXPECT_EQ(report.sites[0].pids, (std::vector<std::uint32_t>{100, 101}));
}

TEST(TraceReport, ResidualIsTheDriversFigureLessWhatIsTracked) {
  ProbeTrace trace;
  ASSERT_TRUE(trace.process(0, {100, 5, 0, ""}));
  ProbeScript script;
  script.alloc(4096, 1000, script.line("/home/me/a.py", 1));
  ASSERT_TRUE(trace.slots(0, script.slots));
  for (std::int64_t i = 0; i < 12; ++i)
    ASSERT_TRUE(trace.reading(0, {i * 1'000'000, "GPU", static_cast<std::uint64_t>(5000 + 100 * i), {}}));
  trace.finish();
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, {});
  const TraceReport report = report_of(trace, names);
  EXPECT_EQ(report.residual_bytes, 5100);
  EXPECT_TRUE(report.residual_grows);
  EXPECT_NEAR(report.residual_bytes_per_s, 100, 10);
}

TEST(ProbeTrace, MomentsHoldWhatWasLiveThen) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(1, 10, line);
  script.mark("epoch");
  script.alloc(2, 20, line);
  script.mark("epoch");
  script.alloc(3, 40, line);
  ProbeTrace trace;
  trace.wants({*parse_moment("epoch"), *parse_moment("epoch#2")});
  replay(trace, script.slots);
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, {});
  const Profile first = profile_of(trace, names, MemorySpace::device, 0),
                second = profile_of(trace, names, MemorySpace::device, 1);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].bytes, 30);
  EXPECT_EQ(difference(first, second)[0].bytes, 20);
  EXPECT_EQ(*parse_moment("1.5s")->time_us, 1'500'000U);
  EXPECT_FALSE(parse_moment("epoch#0"));
  EXPECT_FALSE(parse_moment(""));
}

TEST(ProbeTrace, MomentsAreKeptInTheOrderInWhichTheyWereAskedFor) {
  ProbeScript script;
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.now_us = 1'000'000;
  script.alloc(1, 10, line);
  script.now_us = 3'000'000;
  script.mark("late");
  script.alloc(2, 20, line);
  ProbeTrace trace;
  trace.wants({*parse_moment("late"), *parse_moment("2s"), *parse_moment("3.5s"), *parse_moment("9s")});
  (void)trace.process(0, {4711, 99, 1'000'000, "./program"});
  (void)trace.slots(0, script.slots);
  (void)trace.end(kNoProbeProcess, {5'000'000, 0, 0});
  trace.finish();
  const auto& moments = trace.processes().front()->moments();
  ASSERT_EQ(moments.size(), 4U);
  EXPECT_EQ(moments[0]->name, "late");
  EXPECT_EQ(moments[1]->live_bytes, 10);
  EXPECT_EQ(moments[2]->live_bytes, 30) << "after the last record, before the end of the run";
  EXPECT_FALSE(moments[3]);
  EXPECT_DOUBLE_EQ(trace.duration_s(), 4.0) << "from the process's begin: no file says an earlier one";
}

}  // namespace
}  // namespace vramtrack::trace
