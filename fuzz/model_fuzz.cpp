// Headers of models, which anybody may have written: a GGUF header, a safetensors header, a config.json or an index.
// Any bytes give an error or facts, a header that is cut is never complete, and whatever is read makes an answer. The
// first byte says which of them it is.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/units.hpp"
#include "sizing/answer.hpp"
#include "sizing/gguf.hpp"
#include "sizing/hugging_face.hpp"

namespace {

using namespace vramtrack::sizing;

void use(const ModelFacts& model) {
  Request request;
  request.context_tokens = 4096;
  request.sequences = 2;
  const Room room{24 * vramtrack::kGiB, 24 * vramtrack::kGiB};
  const Answer now = answer(model, request, room);
  if (now.fits != Fits::yes)
    for (const Change& change : now.changes)
      if (!(change.need_bytes <= room.free_bytes)) std::abort();
  if (answer_text(now, model, request, room, "GPU 0").empty()) std::abort();
  if (answer_json(now, model, request, room, "GPU 0").empty()) std::abort();
  request.training = parse_training("adamw,bf16").value();
  static_cast<void>(answer(model, request, room));
}

void gguf(std::string_view bytes) {
  const auto read = parse_gguf(bytes);
  if (!read) return;
  if (read->is_cut) return;
  if (read->header.end > bytes.size()) std::abort();
  const auto shorter = parse_gguf(bytes.substr(0, read->header.end - 1));
  if (shorter && !shorter->is_cut) std::abort();
  if (const auto facts = facts_of(read->header, static_cast<double>(bytes.size()))) use(*facts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'g':
      gguf(bytes);
      break;
    case 's': {
      static_cast<void>(safetensors_header_bytes(bytes));
      ModelFacts out;
      static_cast<void>(add_safetensors(bytes, out));
      break;
    }
    case 'c':
      if (const auto facts = facts_of_config(bytes)) use(*facts);
      break;
    default:
      static_cast<void>(indexed_files(bytes));
  }
  return 0;
}
