// Streams, events and graphs: all work is done at once, so an event has always happened.
#include "driver.hpp"

using namespace fake_gpu;

namespace {

struct Stream {
  int priority = 0;
  int capturing = 0;
  unsigned flags = 0;
  std::uint64_t id = 0;
};

/// The default streams are small numbers instead of addresses.
Stream& stream_of(void* handle) {
  static Stream default_stream;
  constexpr std::uintptr_t kSmallestAddress = 16;
  return reinterpret_cast<std::uintptr_t>(handle) < kSmallestAddress ? default_stream : *static_cast<Stream*>(handle);
}

}  // namespace

EXPORT CUresult cuStreamCreateWithPriority(void** out, unsigned flags, int priority) {
  *out = new Stream{priority, 0, flags, next_handle()};  // never freed: PyTorch keeps its streams for ever
  return kOk;
}
EXPORT CUresult cuStreamCreate(void** out, unsigned flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}
EXPORT CUresult cuStreamDestroy_v2(void* stream) {
  return kOk;
}
EXPORT CUresult cuStreamSynchronize(void* stream) {
  return kOk;
}
EXPORT CUresult cuStreamQuery(void* stream) {
  return kOk;
}
EXPORT CUresult cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return kOk;
}
EXPORT CUresult cuStreamGetPriority(void* stream, int* priority) {
  *priority = stream_of(stream).priority;
  return kOk;
}
EXPORT CUresult cuStreamGetFlags(void* stream, unsigned* flags) {
  *flags = stream_of(stream).flags;
  return kOk;
}
EXPORT CUresult cuStreamGetId(void* stream, std::uint64_t* id) {
  *id = stream_of(stream).id;
  return kOk;
}
EXPORT CUresult cuStreamGetCtx(void* stream, Context** context) {
  *context = current_context();
  return kOk;
}
EXPORT CUresult cuStreamAddCallback(void* stream, void (*callback)(void*, CUresult, void*), void* data,
                                    unsigned flags) {
  callback(stream, kOk, data);
  return kOk;
}
EXPORT CUresult cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  function(data);
  return kOk;
}
EXPORT CUresult cuStreamWriteValue32_v2(void* stream, CUdeviceptr address, unsigned value, unsigned flags) {
  *reinterpret_cast<unsigned*>(address) = value;
  return kOk;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int mine = 0;
  std::swap(mine, *mode);
  return kOk;
}
EXPORT CUresult cuStreamBeginCapture_v2(void* stream, int mode) {
  stream_of(stream).capturing = 1;
  stream_of(stream).id = next_handle();
  return kOk;
}
EXPORT CUresult cuStreamIsCapturing(void* stream, int* status) {
  *status = stream_of(stream).capturing;
  return kOk;
}
EXPORT CUresult cuStreamIsCapturing_ptsz(void* stream, int* status) {
  return cuStreamIsCapturing(stream, status);
}
EXPORT CUresult cuStreamGetCaptureInfo_v2(void* handle, int* status, std::uint64_t* id, std::uint64_t* graph,
                                          const void*** nodes, std::size_t* count) {
  const Stream& stream = stream_of(handle);
  *status = stream.capturing;
  if (stream.capturing == 0) return kOk;
  if (id != nullptr) *id = stream.id;
  if (graph != nullptr) *graph = stream.id;
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return kOk;
}
EXPORT CUresult cuStreamGetCaptureInfo_v3(void* stream, int* status, std::uint64_t* id, std::uint64_t* graph,
                                          const void*** nodes, const void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
EXPORT CUresult cuStreamEndCapture(void* stream, std::uint64_t* graph) {
  stream_of(stream).capturing = 0;
  *graph = stream_of(stream).id;
  return kOk;
}
EXPORT CUresult cuStreamUpdateCaptureDependencies(void* stream, void* nodes, std::size_t count, unsigned flags) {
  return kOk;
}
EXPORT CUresult cuGraphCreate(std::uint64_t* graph, unsigned flags) {
  *graph = next_handle();
  return kOk;
}
EXPORT CUresult cuGraphDestroy(std::uint64_t graph) {
  return kOk;
}
EXPORT CUresult cuGraphInstantiateWithFlags(std::uint64_t* executable, std::uint64_t graph, std::uint64_t flags) {
  return take_beside(executable, graph_bytes());
}
/// One node, so that PyTorch does not warn of an empty graph.
EXPORT CUresult cuGraphGetNodes(std::uint64_t graph, void** nodes, std::size_t* count) {
  if (count != nullptr) *count = nodes != nullptr ? 0 : 1;
  return kOk;
}

EXPORT CUresult cuEventCreate(std::uint64_t* event, unsigned flags) {
  *event = next_handle();
  return kOk;
}
EXPORT CUresult cuEventDestroy_v2(void* event) {
  return kOk;
}
EXPORT CUresult cuEventQuery(void* event) {
  return kOk;
}
EXPORT CUresult cuEventRecord(void* event, void* stream) {
  return kOk;
}
EXPORT CUresult cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return kOk;
}
EXPORT CUresult cuEventSynchronize(void* event) {
  return kOk;
}
EXPORT CUresult cuEventElapsedTime(float* ms, void* begin, void* end) {
  *ms = 1;
  return kOk;
}
