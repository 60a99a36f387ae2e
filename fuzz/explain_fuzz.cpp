// Any bytes as a text with out-of-memory messages: they are read without fault, in pieces as in one, and what is said
// about them is text that is safe to print.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "explain/explanation.hpp"
#include "explain/render.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack::explain;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto messages = read_messages(text);
  Reader reader;
  const std::size_t piece = data[0] + 1U;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  const auto again = reader.finish();
  if (again.size() != messages.size()) std::abort();
  std::uint64_t line = 1;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (again[i].line != messages[i].line || again[i].wording != messages[i].wording) std::abort();
    if (messages[i].line < line || messages[i].text.size() > 300) std::abort();
    line = messages[i].line;
  }
  const auto explanation = explain(messages);
  if (!explanation) return 0;
  if (explanation->because.empty() || explanation->decisive >= explanation->failures.size()) std::abort();
  for (const char c : explanation_text(*explanation, "fuzz") + explanation_json(*explanation, "fuzz"))
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  return 0;
}
