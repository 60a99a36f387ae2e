// Answers: the arithmetic by hand, and the advice.
#include "sizing/answer.hpp"

#include <gmock/gmock.h>

#include "core/units.hpp"
#include "sizing/hugging_face.hpp"

namespace vramtrack::sizing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelFacts llama_8b() {
  return facts_of_config(R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "torch_dtype": "bfloat16", "max_position_embeddings": 131072})")
      .value();
}

Room room(double gib) {
  return {gib * kGiB, gib * kGiB};
}

TEST(Answer, YesNoAndUnsure) {
  Request request;
  request.context_tokens = 32768;
  request.sequences = 8;
  const Answer now = answer(llama_8b(), request, room(80));
  EXPECT_EQ(now.fits, Fits::yes);
  EXPECT_THAT(now.changes, IsEmpty());
  // Weights of 15.0 GiB and a cache of 32 GiB, both known exactly.
  EXPECT_NEAR(now.need.low_bytes() / kGiB, 14.96 + 32, 1);
  EXPECT_EQ(answer(llama_8b(), request, room(40)).fits, Fits::no);
  EXPECT_EQ(answer(llama_8b(), request, room((now.need.low_bytes() + now.need.high_bytes()) / 2 / kGiB)).fits,
            Fits::unsure);
}

TEST(Answer, RunsOfTheSameProgramDecideWhatTheHeadersLeaveOpen) {
  Request request;
  request.context_tokens = 32768;
  request.sequences = 8;
  const ModelFacts model = llama_8b();
  const double low = need_of(model, request).low_bytes(), high = need_of(model, request).high_bytes();
  const auto checked = [&](double free_bytes, double most_bytes) {
    Answer out = answer(model, request, {free_bytes, free_bytes});
    check(out, {free_bytes, free_bytes}, {"serve", 3, most_bytes, {}});
    return out;
  };
  const double between = (low + high) / 2;
  EXPECT_EQ(checked(between, low).fits, Fits::yes);
  EXPECT_THAT(checked(between, low).changes, IsEmpty());
  EXPECT_EQ(checked(between, high).fits, Fits::no);
  EXPECT_EQ(checked(80 * kGiB, between).fits, Fits::yes);
  EXPECT_EQ(checked(80 * kGiB, 81 * kGiB).fits, Fits::unsure) << "the headers say yes";
  EXPECT_EQ(checked(40 * kGiB, 39 * kGiB).fits, Fits::unsure) << "the headers say no";
  EXPECT_EQ(checked(40 * kGiB, 41 * kGiB).fits, Fits::no);
  const Need need = need_of(model, request);
  EXPECT_EQ(agreement(need, {"", 1, between, {}}), "within");
  EXPECT_EQ(agreement(need, {"", 1, high * 1.1, {}}), "above");
  EXPECT_EQ(agreement(need, {"", 1, low * 0.9, {}}), "below");
  const Room open{between, between};
  EXPECT_THAT(answer_text(checked(between, low), model, request, open, "GPU 0"),
              HasSubstr("yes: 3 earlier runs of serve needed up to "));
}

TEST(Answer, EachChangeAloneMakesItFit) {
  Request request;
  request.context_tokens = 32768;
  request.sequences = 8;
  const ModelFacts model = llama_8b();
  const Answer no = answer(model, request, room(36));
  ASSERT_EQ(no.fits, Fits::no);
  EXPECT_THAT(no.changes, Contains(Field(&Change::what, HasSubstr("an 8-bit cache"))));
  EXPECT_THAT(no.changes, Contains(Field(&Change::what, HasSubstr("a batch of "))));
  EXPECT_THAT(no.changes, Contains(Field(&Change::what, HasSubstr("2 such GPUs"))));
  for (const Change& change : no.changes) EXPECT_LE(change.need_bytes, 36 * kGiB) << change.what;
  EXPECT_THAT(answer_text(no, model, request, room(36), "GPU 0"), HasSubstr("no: it needs"));
  EXPECT_THAT(answer(model, request, room(1)).changes, IsEmpty());
}

TEST(Answer, AModelIsNotDividedAmongSoManyGpusThatServersRefuse) {
  Request request;
  request.context_tokens = 8192;
  request.shards = 3;
  ModelFacts model = llama_8b();
  const Answer no = answer(model, request, room(80));
  EXPECT_EQ(no.fits, Fits::no);
  EXPECT_EQ(no.refused, "32 attention heads cannot be divided by 3");
  EXPECT_THAT(no.changes, ElementsAre(Field(&Change::what, "one such GPU")));
  for (const StartRule& rule : no.rules) EXPECT_FALSE(rule.starts) << rule.server;
  EXPECT_THAT(answer_text(no, model, request, room(80), "GPU 0"),
              HasSubstr("no: 32 attention heads cannot be divided by 3, so tensors cannot be divided among 3 GPUs"));
  EXPECT_THAT(answer_json(no, model, request, room(80), "GPU 0"),
              HasSubstr(R"("refused":"32 attention heads cannot be divided by 3")"));
  // If there are more GPUs than heads for keys and values, each head is copied to the same number of GPUs.
  for (const double shards : {2.0, 4.0, 8.0, 16.0, 32.0}) EXPECT_EQ(refusal(model, shards), "") << shards;
  model.heads = 48;
  EXPECT_EQ(refusal(model, 12), "8 heads of keys and values cannot be divided by 12");
  model.heads = model.kv_heads = 30;
  EXPECT_EQ(refusal(model, 3), "14,336 rows of the feed-forward layers cannot be divided by 3");
  // llama.cpp gives each GPU whole layers.
  model.is_gguf = true;
  const Answer yes = answer(model, request, room(80));
  EXPECT_EQ(yes.fits, Fits::yes);
  EXPECT_THAT(answer_text(yes, model, request, room(80), "GPU 0"),
              HasSubstr("Servers that divide tensors refuse 3 GPUs: 14,336 rows"));
}

TEST(Answer, TheLargestContextIsNamed) {
  Request request;
  request.context_tokens = 131072;
  const ModelFacts model = llama_8b();
  const Answer no = answer(model, request, room(24));
  const auto at = std::find_if(no.changes.begin(), no.changes.end(),
                               [](const Change& c) { return c.what.find("a context of") == 0; });
  ASSERT_NE(at, no.changes.end());
  // 128 KiB per token: with another 256 tokens it would not fit.
  EXPECT_GT(at->need_bytes, 24 * kGiB - 256.0 * 131072 - 1);
}

TEST(Answer, TrainingTakesSixteenBytesAWeightInMixedPrecision) {
  Request request;
  request.context_tokens = 2048;
  request.training = parse_training("adamw,bf16").value();
  const ModelFacts model = llama_8b();
  double states = 0;
  for (const Part& part : need_of(model, request).parts)
    if (part.name != "activations" && part.name != "driver's context and libraries") states += part.high_bytes;
  EXPECT_NEAR(states / model.parameters, 16, 1e-9);  // ZeRO, section 3.1
  request.training = parse_training("adamw,pure-bf16").value();
  states = 0;
  for (const Part& part : need_of(model, request).parts)
    if (part.name != "activations" && part.name != "driver's context and libraries") states += part.high_bytes;
  EXPECT_NEAR(states / model.parameters, 8, 1e-9);
  request.training = parse_training("adamw,bf16").value();
  const Answer no = answer(model, request, room(80));
  EXPECT_EQ(no.fits, Fits::no);
  EXPECT_THAT(no.changes, Contains(Field(&Change::what, HasSubstr("LoRA"))));
  EXPECT_THAT(no.rules, IsEmpty());
}

const Part& part_of(const Need& need, std::string_view name) {
  return *std::find_if(need.parts.begin(), need.parts.end(), [name](const Part& part) { return part.name == name; });
}

TEST(Answer, GradientsTakeTheRoomThatActivationsLeave) {
  Request request;
  request.training = parse_training("adamw,fp32").value();
  const ModelFacts model = llama_8b();
  for (const double tokens : {512, 32768}) {
    request.context_tokens = tokens;
    const Need need = need_of(model, request);
    const double gradients = 4 * model.parameters;
    const double activations = part_of(need, "activations").low_bytes;
    EXPECT_NEAR(part_of(need, "gradients").low_bytes + activations, std::max(gradients, activations), 1);
    EXPECT_NEAR(part_of(need, "gradients").high_bytes, gradients, 1);
  }
}

TEST(Answer, TheStepOfAdamTakesAnotherNumberForEachWeightWhenActivationsAreGone) {
  Request request;
  request.context_tokens = 128;
  const ModelFacts model = llama_8b();
  const auto activations = [&](std::string_view how) {
    request.training = parse_training(how).value();
    return part_of(need_of(model, request), "activations");
  };
  EXPECT_NEAR(activations("adamw,bf16").high_bytes, 4 * model.parameters, 1);
  EXPECT_THAT(activations("adamw,bf16").formula, HasSubstr("for the optimizer's step"));
  EXPECT_NEAR(activations("adam,pure-bf16").high_bytes, 2 * model.parameters, 1);
  EXPECT_LT(activations("sgd,pure-bf16").high_bytes, 2 * model.parameters);
}

TEST(Answer, AModelOf32BitsComputesAndCachesIn32Bits) {
  ModelFacts model = llama_8b();
  Request request;
  request.context_tokens = 1024;
  const Need half = need_of(model, request);
  model.weights_bytes = 4 * model.parameters;
  const Need full = need_of(model, request);
  EXPECT_EQ(part_of(full, "cache of keys and values").low_bytes,
            2 * part_of(half, "cache of keys and values").low_bytes);
  EXPECT_GT(part_of(full, "working memory").low_bytes, 1.9 * part_of(half, "working memory").low_bytes);
  request.cache_element_bytes = cache_type_bytes("f16").value();
  EXPECT_EQ(part_of(need_of(model, request), "cache of keys and values").low_bytes,
            part_of(half, "cache of keys and values").low_bytes);
  request.cache_element_bytes.reset();
  model.is_gguf = true;
  EXPECT_EQ(part_of(need_of(model, request), "cache of keys and values").low_bytes,
            part_of(half, "cache of keys and values").low_bytes);
}

TEST(Answer, CheckpointsKeepLess) {
  Request request;
  request.context_tokens = 8192;
  request.training = parse_training("adamw,bf16").value();
  const double without = need_of(llama_8b(), request).high_bytes();
  request.training = parse_training("adamw,bf16,checkpoints").value();
  EXPECT_LT(need_of(llama_8b(), request).high_bytes(), without - 5 * kGiB);
}

TEST(Answer, WordsThatAreNotKnownAreNamedWithThoseThatAre) {
  EXPECT_THAT(parse_training("adamw,int9").error().message,
              HasSubstr("'int9' is not known; expected an optimizer (adamw, "));
  EXPECT_THAT(parse_training("bf16").error().message, HasSubstr("no optimizer is named"));
  EXPECT_THAT(cache_type_bytes("q9").error().message, HasSubstr("expected one of: f32, f16"));
}

TEST(StartRules, AreTheServersOwn) {
  Request request;
  request.context_tokens = 8192;
  const ModelFacts model = llama_8b();
  const Answer now = answer(model, request, room(80), 0.9);
  ASSERT_EQ(now.rules.size(), 2U);
  // vLLM: blocks of 16 tokens in the rest of 0.9 of the GPU.
  EXPECT_EQ(std::fmod(now.rules[0].tokens, 16), 0);
  EXPECT_NEAR(now.rules[0].cache_bytes, now.rules[0].tokens * 131072, 16 * 131072);
  EXPECT_LT(now.rules[0].cache_bytes, 0.9 * 80 * kGiB - model.weights_bytes);
  // SGLang: the memory that is free after the weights, minus a tenth of what was free before.
  EXPECT_EQ(now.rules[1].tokens, std::floor((0.9 * 80 * kGiB - model.weights_bytes) / 131072));
  const Answer small = answer(model, request, room(14));
  EXPECT_FALSE(small.rules[0].starts);
  EXPECT_FALSE(small.rules[1].starts);
  EXPECT_THAT(small.rules[0].formula, HasSubstr("it refuses to start"));
}

TEST(StartRules, LlamaCppLeavesAMargin) {
  ModelFacts model = llama_8b();
  model.is_gguf = true;
  Request request;
  request.context_tokens = 8192;
  const Answer now = answer(model, request, room(24));
  ASSERT_EQ(now.rules.size(), 1U);
  const StartRule& rule = now.rules.front();
  const double working = 512 * (128256 + 4096) * 4;
  EXPECT_DOUBLE_EQ(rule.cache_bytes, 23 * kGiB - weights_on_gpu_bytes(model, request) - working);
  EXPECT_EQ(rule.tokens, std::floor(rule.cache_bytes / 131072 / 256) * 256);
  EXPECT_EQ(answer(model, request, room(80)).rules.front().tokens, 131072) << "no more than it was trained for";
}

TEST(Answer, HostileSizesMakeNoNonsense) {
  ModelFacts model = llama_8b();
  model.weights_bytes = 1e300;
  model.cache.assign(4, {1e300, 0, false});
  Request request;
  request.context_tokens = 1e9;
  request.sequences = 1e6;
  const Answer no = answer(model, request, room(80));
  EXPECT_EQ(no.fits, Fits::no);
  EXPECT_FALSE(answer_text(no, model, request, room(80), "GPU 0").empty());
  EXPECT_FALSE(answer_json(no, model, request, room(80), "GPU 0").empty());
}

}  // namespace
}  // namespace vramtrack::sizing
