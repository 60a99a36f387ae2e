// The purpose of memory, by its stack as recorded by PyTorch, the probe and others, and as reported by the program.
#include "trace/category.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pickle_writer.hpp"
#include "sample.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramtrack::trace::test {
namespace {

constexpr const char* kTorch = "/venv/lib/python3.11/site-packages/torch/";

class Categories : public ::testing::Test {
 protected:
  using Frames = std::vector<std::pair<std::string, std::string>>;  ///< function, file; "@" stands for PyTorch's folder
  StackId stack(const Frames& frames) {
    std::vector<FrameId> ids;
    for (auto [function, file] : frames) {
      if (!file.empty() && file[0] == '@') file = kTorch + file.substr(1);
      ids.push_back(symbols.intern(Frame{symbols.intern(function), symbols.intern(file), 1}));
    }
    return symbols.intern(ids);
  }
  std::string of(const Frames& frames) { return std::string(category_name(stacks.of(stack(frames)))); }

  Symbols symbols;
  StackCategories stacks{symbols};
};

TEST_F(Categories, TheInnermostFrameThatIsSureDecides) {
  const Frames forward = {{"forward", "@nn/modules/linear.py"}, {"_call_impl", "@nn/modules/module.py"}};
  EXPECT_EQ(of(forward), "activations");
  Frames in_backward = forward;
  in_backward.push_back({"torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", "libtorch_cpu.so"});
  EXPECT_EQ(of(in_backward), "activations") << "a checkpoint computes it again";
  Frames with_workspace = forward;
  with_workspace.insert(with_workspace.begin(), {"at::cuda::getCurrentCUDABlasHandle(bool)", "libtorch_cuda.so"});
  EXPECT_EQ(of(with_workspace), "workspaces");
  Frames with_cache = forward;
  with_cache.insert(with_cache.begin(), {"update", "/venv/lib/python3.11/site-packages/transformers/cache_utils.py"});
  EXPECT_EQ(of(with_cache), "kv_cache");
}

TEST_F(Categories, AnOptimizersStateIsWhatItsStepMakes) {
  const Frames step = {{"step", "@optim/adam.py"}, {"wrapper", "@optim/optimizer.py"}, {"main", "/home/me/train.py"}};
  Frames state = step;
  state.insert(state.begin(), {"_init_group", "@optim/adam.py"});
  EXPECT_EQ(of(state), "optimizer_state");
  EXPECT_EQ(of({{"step", "/home/me/my_adam.py"}, {"wrapper", "@optim/optimizer.py"}, {"main", "/home/me/train.py"}}),
            "optimizer_state")
      << "an optimizer of the program's own";
  Frames closure = step;
  closure.insert(closure.begin(), {{"at::_ops::to_device::call(at::Tensor const&)", "libtorch_cpu.so"},
                                   {"THPVariable_to", "libtorch_python.so"},
                                   {"closure", "/home/me/train.py"}});
  EXPECT_EQ(of(closure), "inputs") << "the optimizer called the program back";
}

TEST_F(Categories, OfHintsTheOutermostDecides) {
  const Frames user = {{"main", "/home/me/train.py"}};
  const auto called = [&](std::vector<std::string> functions) {
    Frames frames;
    for (std::string& function : functions) frames.push_back({std::move(function), "libtorch_cpu.so"});
    frames.insert(frames.end(), user.begin(), user.end());
    return of(frames);
  };
  EXPECT_EQ(called({"at::_ops::empty_like::call()", "at::_ops::mul_Tensor::call()"}), "activations");
  EXPECT_EQ(called({"at::_ops::empty_memory_format::call()", "at::_ops::zeros::call()"}), "unknown");
  EXPECT_EQ(called({"at::_ops::empty_strided::call()", "at::_ops::to_device::call()"}), "inputs");
  EXPECT_EQ(of(user), "unknown");
  EXPECT_EQ(of({}), "unknown");
  EXPECT_EQ(stacks.rule_of(stack(user)), nullptr);
}

TEST_F(Categories, Others) {
  EXPECT_EQ(of({{"<lambda>", "@nn/modules/module.py"}, {"_apply", "@nn/modules/module.py"}}), "weights");
  EXPECT_EQ(
      of({{"Module.cuda.<locals>.<lambda>", "@nn/modules/module.py"}, {"Module._apply", "@nn/modules/module.py"}}),
      "weights")
      << "as the probe names it";
  EXPECT_EQ(of({{"my_convert", "@nn/modules/module.py"}}), "unknown") << "the end of a name is none";
  EXPECT_EQ(of({{"torch::autograd::AccumulateGrad::apply()", "libtorch_cpu.so"},
                {"torch::autograd::Engine::evaluate_function()", "libtorch_cpu.so"}}),
            "gradients");
  EXPECT_EQ(of({{"cuMemAlloc_v2", "libcuda.so"}, {"ncclCommInitRank", "/usr/lib/libnccl.so.2"}}), "communication");
  EXPECT_EQ(
      of({{"c10d::Reducer::initialize_buckets()", "libtorch_cpu.so"}, {"__init__", "@nn/parallel/distributed.py"}}),
      "communication");
  EXPECT_EQ(of({{"pin_memory", "@utils/data/_utils/pin_memory.py"}}), "inputs");
  EXPECT_EQ(of({{"get_tensor", "/site-packages/safetensors/torch.py"}, {"main", "/home/me/run.py"}}), "weights");
  EXPECT_EQ(of({{"llama_kv_cache_unified::llama_kv_cache_unified", "libllama.so"}}), "kv_cache");
}

TEST_F(Categories, EachRuleCanDecide) {
  std::set<const CategoryRule*> decided;
  for (const CategoryRule& rule : category_rules()) {
    EXPECT_FALSE(rule.reason.empty());
    EXPECT_FALSE(rule.function.empty() && rule.file.empty()) << rule.reason;
    const auto text = [](std::string_view pattern) {
      return std::string(pattern.substr(pattern.starts_with('=') ? 1 : 0));
    };
    decided.insert(stacks.rule_of(stack({{text(rule.function), text(rule.file)}})));
  }
  for (const CategoryRule& rule : category_rules())
    EXPECT_TRUE(decided.count(&rule) != 0) << "hidden by an earlier one: " << rule.function << " " << rule.file;
}

TEST_F(Categories, NamesAreReadAsTheyAreWritten) {
  for (std::size_t i = 0; i < kCategories; ++i) {
    const auto category = static_cast<Category>(i);
    EXPECT_EQ(parse_category(category_name(category)), category);
    EXPECT_FALSE(category_words(category).empty());
  }
  EXPECT_FALSE(parse_category("").has_value());
  EXPECT_FALSE(parse_category("weight").has_value());
}

TEST_F(Categories, WhatTheProgramToldWinsAndTheRestIsByStack) {
  const StackId weights = stack({{"_apply", "@nn/modules/module.py"}});
  const StackId user = stack({{"main", "/home/me/train.py"}});
  const StringId one = symbols.intern("Net.one"), two = symbols.intern("Net.two");
  const Profile profile = {{weights, 100, 2}, {user, 60, 3}};
  const std::vector<ReportedBytes> reported = {{user, Category::kv_cache, one, 20, 1},
                                               {user, Category::kv_cache, two, 30, 1},
                                               {weights, Category::weights, one, 10, 1}};
  const CategoryTotals totals = categorize(profile, reported, stacks);
  EXPECT_EQ(totals.bytes(), 160);
  EXPECT_EQ(totals[Category::weights].bytes, 100);
  EXPECT_EQ(totals[Category::weights].reported_bytes, 10);
  EXPECT_EQ(totals[Category::kv_cache].bytes, 50);
  EXPECT_EQ(totals[Category::unknown].bytes, 10);
  EXPECT_EQ(totals[Category::unknown].blocks, 1);
  ASSERT_EQ(totals[Category::kv_cache].named.size(), 2U);
  EXPECT_EQ(totals[Category::kv_cache].named[0].name, two) << "the largest first";
  EXPECT_EQ(totals.held(), (std::vector{Category::weights, Category::kv_cache, Category::unknown}));
}

TEST_F(Categories, WhatWasToldOfABlockEndsWithIt) {
  LiveReports live;
  live.take(0x1000, {1, Category::weights, 7, 512, 1});
  live.take(0x2000, {2, Category::gradients, 8, 512, 1});
  live.take(0x2000, {2, Category::optimizer_state, 8, 512, 1});
  live.gave_back(0x1000);
  live.gave_back(0x3000);
  int count = 0;
  live.for_each([&](const LiveReports::BlockReport& reported) {
    ++count;
    EXPECT_EQ(reported.category, Category::optimizer_state);
  });
  EXPECT_EQ(count, 1);
}

TEST_F(Categories, ASnapshotHasWhatTheProgramTold) {
  const Py block = py(
      Dict{{"address", py(4096)}, {"size", py(512)}, {"requested_size", py(500)}, {"state", py("active_allocated")}});
  const Py next = py(
      Dict{{"address", py(4608)}, {"size", py(512)}, {"requested_size", py(300)}, {"state", py("active_allocated")}});
  const Py cached = py(Dict{{"address", py(5120)}, {"size", py(512)}, {"state", py("inactive")}});
  const auto reported = [](int address, const Py& category, const char* name) {
    return py(Dict{{"address", py(address)}, {"category", category}, {"name", py(name)}});
  };
  // Invalid categories, addresses without a live block, and, of two within one block, the first.
  const Py file =
      py(Dict{{"vramtrack_categories",
               py(List{reported(5120, py("weights"), "cached"), reported(1, py("weights"), "elsewhere"),
                       reported(4608, py("weight"), "none"), reported(4700, py(7), "no word"),
                       reported(4096, py("gradients"), "Net.weight.grad"), reported(4100, py("weights"), "within")})},
              {"segments", py(List{py(Dict{{"device", py(0)},
                                           {"address", py(4096)},
                                           {"total_size", py(1536)},
                                           {"blocks", py(List{block, next, cached})}})})},
              {"device_traces", py(List{})}});
  const auto snapshot = read(Writer(4).dump(file), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ASSERT_EQ(snapshot->block_categories.size(), 1U);
  const CategoryTotals totals = categories_of(*snapshot, stacks);
  EXPECT_EQ(totals.bytes(), 800);
  EXPECT_EQ(totals[Category::gradients].reported_bytes, 500);
  EXPECT_EQ(symbols.text(totals[Category::gradients].named.at(0).name), "Net.weight.grad");
  EXPECT_EQ(totals[Category::unknown].bytes, 300);
}

}  // namespace
}  // namespace vramtrack::trace::test
