// Any bytes as what a Prometheus-compatible server answers: streamed frames, whole messages, JSON; and as a user's file
// of exporters. The first byte says which. Whatever comes, the points lie within the query and the machines can be put
// together.
#include <snappy.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fleet/gpus.hpp"
#include "fleet/json_series.hpp"
#include "fleet/remote_read.hpp"
#include "fleet/xor_chunk.hpp"

namespace {

using namespace vramtrack::fleet;

void put_together(Gpus& gpus) {
  (void)gpus.capacity_missing_at();
  for (const auto& [host, machine] : gpus.take())
    for (const auto& [id, gpu] : machine.gpus) {
      const UsedMemory used = used_memory(gpu);
      for (std::size_t i = 1; i < used.readings.size(); ++i)
        if (used.readings[i].time_ms <= used.readings[i - 1].time_ms) std::abort();
      (void)tenancies(gpu);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Mapping mapping = Mapping::read().value();
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Query query{{}, 0, 4'000'000'000'000};
  Roster roster;
  Gpus gpus(mapping, roster);
  const SeriesSink sink = [&](const Labels& labels, const std::vector<Point>& points) {
    for (const Point& p : points)
      if (p.time_ms < query.start_ms || p.time_ms > query.end_ms) std::abort();
    gpus.add(labels, points);
    gpus.add_capacity(labels, points);
  };
  switch (data[0] % 7) {
    case 0: {
      ChunkedAnswer answer(query, sink);
      if (answer.take(bytes)) (void)answer.end();
      break;
    }
    case 1: {
      ChunkedAnswer answer(query, sink);
      (void)answer.take(framed(bytes));
      break;
    }
    case 2: {
      std::string compressed;
      snappy::Compress(bytes.data(), bytes.size(), &compressed);
      (void)read_sampled_answer(compressed, query, sink);
      (void)read_sampled_answer(bytes, query, sink);
      break;
    }
    case 3: {
      std::vector<Point> points;
      (void)decode_xor_chunk(bytes, points);
      break;
    }
    case 4: {
      ExportAnswer answer(query, sink);
      if (answer.take(bytes.substr(0, bytes.size() / 2)) && answer.take(bytes.substr(bytes.size() / 2)))
        (void)answer.end();
      break;
    }
    case 5: {
      std::string lacks;
      (void)read_matrix(bytes, query, sink, lacks);
      (void)read_names(bytes, lacks);
      (void)read_series(bytes, lacks);
      break;
    }
    default:
      (void)Mapping::read(bytes, "fuzzed");
  }
  put_together(gpus);
  return 0;
}
