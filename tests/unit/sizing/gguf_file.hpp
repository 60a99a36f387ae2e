// GgufFile: writes small GGUF headers for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace vramtrack::sizing {

class GgufFile {
 public:
  GgufFile& text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put_text(values_, value);
    return *this;
  }
  GgufFile& number(const std::string& key, std::uint32_t value) {
    begin(key, 4);
    put(values_, value);
    return *this;
  }
  GgufFile& numbers(const std::string& key, const std::vector<std::uint32_t>& numbers) {
    begin(key, 9);
    put(values_, std::uint32_t{4});
    put(values_, static_cast<std::uint64_t>(numbers.size()));
    for (const std::uint32_t n : numbers) put(values_, n);
    return *this;
  }
  GgufFile& texts(const std::string& key, const std::vector<std::string>& texts) {
    begin(key, 9);
    put(values_, std::uint32_t{8});
    put(values_, static_cast<std::uint64_t>(texts.size()));
    for (const std::string& each : texts) put_text(values_, each);
    return *this;
  }
  GgufFile& tensor(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type) {
    put_text(tensors_, name);
    put(tensors_, static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t n : shape) put(tensors_, n);
    put(tensors_, type);
    put(tensors_, std::uint64_t{0});
    ++tensor_count_;
    return *this;
  }
  [[nodiscard]] std::string bytes(std::uint32_t version = 3) const {
    std::string out = "GGUF";
    put(out, version);
    put(out, tensor_count_);
    put(out, value_count_);
    return out + values_ + tensors_;
  }

 private:
  template <class T>
  static void put(std::string& out, T number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    out.append(bytes, sizeof number);
  }
  static void put_text(std::string& out, const std::string& text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  void begin(const std::string& key, std::uint32_t type) {
    put_text(values_, key);
    put(values_, type);
    ++value_count_;
  }

  std::string values_;
  std::string tensors_;
  std::uint64_t value_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

/// Two layers of width 64 with two heads, one of them for keys and values, and a vocabulary of 1000.
inline GgufFile small_gguf(const std::string& architecture = "llama") {
  GgufFile file;
  file.text("general.architecture", architecture).text("general.name", "Small");
  file.number(architecture + ".block_count", 2).number(architecture + ".embedding_length", 64);
  file.number(architecture + ".context_length", 4096).number(architecture + ".feed_forward_length", 128);
  file.number(architecture + ".attention.head_count", 2).number(architecture + ".attention.head_count_kv", 1);
  file.texts("tokenizer.ggml.tokens", {"a", "b"});
  file.tensor("token_embd.weight", {64, 1000}, 8).tensor("output.weight", {64, 1000}, 1);
  file.tensor("blk.0.ffn_up.weight", {64, 128}, 12);
  return file;
}

}  // namespace vramtrack::sizing
