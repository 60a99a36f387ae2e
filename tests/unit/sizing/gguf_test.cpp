// GGUF headers: their contents, and the errors for damaged ones.
#include "sizing/gguf.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "../temp_folder.hpp"
#include "gguf_file.hpp"
#include "sizing/model_file.hpp"

namespace vramtrack::sizing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

ModelFacts facts(const GgufFile& file) {
  return facts_of(parse_gguf(file.bytes()).value().header, 0).value();
}

TEST(Gguf, TheHeaderHasWhatMemoryIsNeededFor) {
  const ModelFacts model = facts(small_gguf());
  EXPECT_EQ(model.name, "Small");
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.parameters, 64 * 1000 * 2 + 64 * 128);
  EXPECT_EQ(model.input_embedding_bytes, 64 * 1000 / 32 * 34);
  EXPECT_EQ(model.weights_bytes, 64 * 1000 / 32 * 34 + 64 * 1000 * 2 + 64 * 128 / 256 * 144);
  EXPECT_EQ(model.bytes_by_type.at("F16"), 128000);
  EXPECT_TRUE(model.has_output_matrix);
  EXPECT_EQ(model.vocabulary, 1000);
  ASSERT_THAT(model.cache, SizeIs(2));
  EXPECT_EQ(model.cache.front().elements_per_token, 2 * 1 * 32) << "keys and values of one head of 64 / 2";
}

TEST(Gguf, LayersMayDiffer) {
  GgufFile file = small_gguf();
  file.numbers("llama.attention.head_count_kv", {2, 0});
  const ModelFacts model = facts(file);
  ASSERT_THAT(model.cache, SizeIs(1)) << "a layer without heads caches nothing";
  EXPECT_EQ(model.cache.front().elements_per_token, 2 * 2 * 32);
}

TEST(Gguf, AWindowIsKeptInSteps) {
  GgufFile file = small_gguf("gemma2");
  file.number("gemma2.attention.sliding_window", 1000);
  const ModelFacts model = facts(file);
  EXPECT_EQ(model.cache[0].window_tokens, 1536) << "1000 and 512 computed at a time, in steps of 256";
  EXPECT_EQ(model.cache[1].window_tokens, 0) << "every second layer sees all";
  EXPECT_EQ(cache_bytes(model, 8192, 1, 2, 1), (1536 + 8192) * 64 * 2);
}

TEST(Gguf, LatentAttentionKeepsOneVector) {
  GgufFile file = small_gguf("deepseek2");
  file.number("deepseek2.attention.kv_lora_rank", 512).number("deepseek2.rope.dimension_count", 64);
  const ModelFacts model = facts(file);
  EXPECT_EQ(model.cache.front().elements_per_token, 576);
  EXPECT_EQ(cache_bytes_per_token(model, 2, 8), 2 * 576 * 2) << "each shard keeps it";
}

TEST(Gguf, ATypeThatIsNotKnownIsCountedByTheData) {
  GgufFile file = small_gguf();
  file.tensor("blk.1.ffn_up.weight", {64, 128}, 250);
  const auto header = parse_gguf(file.bytes()).value().header;
  EXPECT_EQ(facts_of(header, 1e6).value().weights_bytes, 1e6);
  EXPECT_THAT(facts_of(header, 0).value().left_out, ::testing::Contains(HasSubstr("of an unknown type")));
}

TEST(Gguf, EveryCutIsSeenAndNothingIsReadBeyondIt) {
  const std::string whole = small_gguf().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto read = parse_gguf(std::string_view(whole).substr(0, length));
    ASSERT_TRUE(read) << length;
    EXPECT_TRUE(read->is_cut) << length;
  }
  EXPECT_FALSE(parse_gguf(whole)->is_cut);
  EXPECT_EQ(parse_gguf(whole)->header.end, whole.size());
}

std::string error_of(std::string bytes, std::size_t at, const std::string& with) {
  bytes.replace(at, with.size(), with);
  const auto read = parse_gguf(bytes);
  return read ? "none" : read.error().message;
}

TEST(Gguf, ErrorsNameTheOffset) {
  const std::string good = small_gguf().bytes();
  EXPECT_THAT(error_of(good, 0, "ZIP!"), HasSubstr("offset 0: a GGUF file begins with 'GGUF'"));
  EXPECT_THAT(error_of(good, 4, std::string("\x01\0\0\0", 4)), HasSubstr("offset 4: version 1"));
  EXPECT_THAT(error_of(good, 8, std::string(8, '\xff')), HasSubstr("offset 24: 18446744073709551615 tensors"));
  EXPECT_THAT(error_of(good, 24, std::string(8, '\xff')), HasSubstr("offset 32: a key of 18446744073709551615 bytes"));
  EXPECT_THAT(error_of(good, 32 + 20, std::string("\x63\0\0\0", 4)),
              HasSubstr("offset 56: a value of the unknown type 99"));
  EXPECT_THAT(facts_of(GgufHeader(), 0).error().message, HasSubstr("general.architecture"));
}

TEST(Gguf, FilesAreReadAsFarAsTheirHeader) {
  const TempFolder folder;
  const std::string path = folder.file("small.gguf");
  std::ofstream(path, std::ios::binary) << small_gguf().bytes() << std::string(1000, 'x');
  EXPECT_EQ(read_model(path).value().layers, 2U);
  std::ofstream(path, std::ios::binary) << small_gguf().bytes().substr(0, 100);
  EXPECT_THAT(read_model(path).error().message, HasSubstr("small.gguf: offset 100: the file ends within its header"));
  EXPECT_THAT(read_model(folder.file("none.gguf")).error().message, HasSubstr("there is no such file"));
}

TEST(Gguf, PartsAreAddedUp) {
  const TempFolder folder;
  const auto write = [&](const std::string& name, const GgufFile& file) {
    std::ofstream(folder.file(name), std::ios::binary) << file.bytes();
  };
  GgufFile first = small_gguf();
  first.number("split.count", 2);
  GgufFile second;
  second.tensor("blk.1.ffn_up.weight", {64, 128}, 0);
  write("m-00001-of-00002.gguf", first);
  EXPECT_THAT(read_model(folder.file("m-00001-of-00002.gguf")).error().message,
              HasSubstr("m-00002-of-00002.gguf: there is no such file"));
  write("m-00002-of-00002.gguf", second);
  EXPECT_EQ(read_model(folder.file("m-00001-of-00002.gguf")).value().parameters, 64 * 1000 * 2 + 2 * 64 * 128);
  write("other.gguf", first);
  EXPECT_THAT(read_model(folder.file("other.gguf")).error().message, HasSubstr("split into 2 files"));
}

}  // namespace
}  // namespace vramtrack::sizing
