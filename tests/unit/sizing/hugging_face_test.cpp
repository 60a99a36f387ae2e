// config.json and safetensors headers.
#include "sizing/hugging_face.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "../temp_folder.hpp"
#include "sizing/model_file.hpp"

namespace vramtrack::sizing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kConfig =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "torch_dtype": "bfloat16",
        "max_position_embeddings": 2048})";

const char* const kHeader = R"({"__metadata__": {"format": "pt"},
  "model.embed_tokens.weight": {"dtype": "BF16", "shape": [1000, 64], "data_offsets": [0, 128000]},
  "lm_head.weight": {"dtype": "F8_E4M3", "shape": [1000, 64], "data_offsets": [128000, 192000]}})";

std::string file_of(const std::string& header) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header;
}

TEST(HuggingFace, WeightsFollowFromTheConfiguration) {
  const ModelFacts model = facts_of_config(kConfig).value();
  const double layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64;
  EXPECT_EQ(model.parameters, 2 * layer + 64 + 2 * 1000 * 64);
  EXPECT_EQ(model.weights_bytes, 2 * model.parameters);
  EXPECT_FALSE(model.weights_are_counted);
  EXPECT_EQ(cache_bytes(model, 100, 3, 2, 1), 2.0 * 2 * 2 * 16 * 100 * 3 * 2);
  EXPECT_EQ(cache_bytes_per_token(model, 2, 2), 2 * 2 * 1 * 16 * 2) << "one of two heads";
  EXPECT_EQ(cache_bytes_per_token(model, 2, 8), 2 * 2 * 1 * 16 * 2) << "no shard has less than a head";
}

TEST(HuggingFace, SafetensorsAreCountedByTheirOffsets) {
  ModelFacts counted;
  ASSERT_TRUE(add_safetensors(kHeader, counted));
  EXPECT_EQ(counted.parameters, 128000);
  EXPECT_EQ(counted.weights_bytes, 192000);
  EXPECT_EQ(counted.bytes_by_type.at("F8_E4M3"), 64000);
  const ModelFacts model = facts_of_config(kConfig, counted).value();
  EXPECT_EQ(model.weights_bytes, 192000);
  EXPECT_TRUE(model.weights_are_counted);
  EXPECT_EQ(model.layers, 2U);
}

TEST(HuggingFace, ErrorsNameTheOffsetOrTheTensor) {
  ModelFacts out;
  const auto error = [&out](std::string_view header) { return add_safetensors(header, out).error().message; };
  EXPECT_THAT(error(R"({"a": )"), HasSubstr("offset 14: this is not valid JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("offset 8: expected a JSON object"));
  EXPECT_THAT(error(R"({"a": {"dtype": "F16", "shape": [1]}})"), HasSubstr("tensor 'a': expected data_offsets"));
  EXPECT_THAT(error(R"({"a": {"dtype": "F16", "shape": [1], "data_offsets": [4, 2]}})"),
              HasSubstr("end before they begin"));
  EXPECT_THAT(error(R"({"a": {"dtype": "F16", "shape": [-1], "data_offsets": [0, 2]}})"),
              HasSubstr("whole numbers in its shape"));
  EXPECT_THAT(error(std::string(100, '[')), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(safetensors_header_bytes("abc").error().message, HasSubstr("offset 3: the file ends"));
  EXPECT_THAT(safetensors_header_bytes(std::string(8, '\xff')).error().message, HasSubstr("offset 0: a header of"));
  EXPECT_THAT(facts_of_config("{}").error().message, HasSubstr("num_hidden_layers"));
  EXPECT_THAT(
      facts_of_config(R"({"model_type": "odd", "hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1})")
          .error()
          .message,
      HasSubstr("the weights of a 'odd' cannot be derived"));
}

TEST(HuggingFace, AnIndexNamesFilesBesideIt) {
  EXPECT_THAT(
      indexed_files(R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "2.safetensors"}})").value(),
      ElementsAre("1.safetensors", "2.safetensors"));
  EXPECT_THAT(indexed_files(R"({"weight_map": {"a": "../secret"}})").error().message,
              HasSubstr("not a file next to the index"));
  EXPECT_THAT(indexed_files("{}").error().message, HasSubstr("weight_map"));
}

TEST(HuggingFace, WindowsOfLayers) {
  const auto windows = [](const std::string& more) {
    std::string config = kConfig;
    config.insert(1, more + ", ");
    std::vector<double> out;
    const ModelFacts model = facts_of_config(config).value();
    for (const CacheLayer& layer : model.cache) out.push_back(layer.window_tokens);
    return out;
  };
  EXPECT_THAT(windows(R"("sliding_window": 512)"), ElementsAre(512, 512));
  EXPECT_THAT(windows(R"("sliding_window": null)"), ElementsAre(0, 0));
  EXPECT_THAT(windows(R"("sliding_window": 512, "use_sliding_window": false)"), ElementsAre(0, 0));
  EXPECT_THAT(windows(R"("sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"])"),
              ElementsAre(512, 0));
  EXPECT_THAT(windows(R"("sliding_window": 512, "sliding_window_pattern": 2)"), ElementsAre(512, 0));
  EXPECT_THAT(windows(R"("layer_types": ["linear_attention", "full_attention"])"), ElementsAre(0))
      << "one layer caches";
}

TEST(HuggingFace, AFolderIsReadWithItsFiles) {
  const TempFolder folder;
  std::ofstream(folder.file("config.json")) << kConfig;
  EXPECT_FALSE(read_model(folder.path()).value().weights_are_counted);
  std::ofstream(folder.file("model.safetensors"), std::ios::binary) << file_of(kHeader);
  EXPECT_EQ(read_model(folder.path()).value().weights_bytes, 192000);
  EXPECT_EQ(read_model(folder.file("model.safetensors")).value().weights_bytes, 192000);
  EXPECT_FALSE(read_model(folder.file("config.json")).value().weights_are_counted);
  std::ofstream(folder.file("model.safetensors"), std::ios::binary) << file_of(kHeader).substr(0, 50);
  EXPECT_THAT(read_model(folder.path()).error().message,
              HasSubstr("model.safetensors: offset 50: the file ends within its header"));
}

}  // namespace
}  // namespace vramtrack::sizing
