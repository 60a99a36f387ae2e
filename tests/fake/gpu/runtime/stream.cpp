// Streams, events and graphs: everything goes to the driver.
#include "runtime.hpp"

using namespace fake_runtime;

EXPORT cudaError cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return in_context([&] { return driver.cuStreamCreateWithPriority(stream, flags, priority); });
}
EXPORT cudaError cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return in_context([&] { return driver.cuStreamCreateWithPriority(stream, flags, 0); });
}
EXPORT cudaError cudaStreamCreate(void** stream) {
  return in_context([&] { return driver.cuStreamCreateWithPriority(stream, 0, 0); });
}
EXPORT cudaError cudaStreamDestroy(void* stream) {
  return in_context([&] { return driver.cuStreamDestroy(stream); });
}
EXPORT cudaError cudaStreamSynchronize(void* stream) {
  return in_context([&] { return driver.cuStreamSynchronize(stream); });
}
EXPORT cudaError cudaStreamQuery(void* stream) {
  return in_context([&] { return driver.cuStreamQuery(stream); });
}
EXPORT cudaError cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return in_context([&] { return driver.cuStreamWaitEvent(stream, event, flags); });
}
EXPORT cudaError cudaStreamGetPriority(void* stream, int* priority) {
  return in_context([&] { return driver.cuStreamGetPriority(stream, priority); });
}
EXPORT cudaError cudaStreamGetFlags(void* stream, unsigned* flags) {
  return in_context([&] { return driver.cuStreamGetFlags(stream, flags); });
}
EXPORT cudaError cudaStreamAddCallback(void* stream, void* callback, void* data, unsigned flags) {
  return in_context([&] { return driver.cuStreamAddCallback(stream, callback, data, flags); });
}
EXPORT cudaError cudaLaunchHostFunc(void* stream, void* function, void* data) {
  return in_context([&] { return driver.cuLaunchHostFunc(stream, function, data); });
}
EXPORT cudaError cudaThreadExchangeStreamCaptureMode(int* mode) {
  return without_context([&] { return driver.cuThreadExchangeStreamCaptureMode(mode); });
}
EXPORT cudaError cudaStreamBeginCapture(void* stream, int mode) {
  return in_context([&] { return driver.cuStreamBeginCapture(stream, mode); });
}
EXPORT cudaError cudaStreamEndCapture(void* stream, void** graph) {
  return in_context([&] { return driver.cuStreamEndCapture(stream, graph); });
}
EXPORT cudaError cudaStreamIsCapturing(void* stream, int* status) {
  return in_context([&] { return driver.cuStreamIsCapturing(stream, status); });
}
EXPORT cudaError cudaGraphInstantiateWithFlags(void** executable, void* graph, std::uint64_t flags) {
  return in_context([&] { return driver.cuGraphInstantiateWithFlags(executable, graph, flags); });
}
EXPORT cudaError cudaGraphInstantiate(void** executable, void* graph, std::uint64_t flags) {
  return in_context([&] { return driver.cuGraphInstantiateWithFlags(executable, graph, flags); });
}
EXPORT cudaError cudaGraphCreate(void** graph, unsigned flags) {
  return in_context([&] { return driver.cuGraphCreate(graph, flags); });
}
EXPORT cudaError cudaGraphDestroy(void* graph) {
  return in_context([&] { return driver.cuGraphDestroy(graph); });
}
EXPORT cudaError cudaGraphLaunch(void* executable, void* stream) {
  return in_context([&] { return driver.cuGraphLaunch(executable, stream); });
}
EXPORT cudaError cudaGraphExecDestroy(void* executable) {
  return in_context([&] { return driver.cuGraphExecDestroy(executable); });
}
EXPORT cudaError cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  return in_context([&] { return driver.cuGraphGetNodes(graph, nodes, count); });
}
EXPORT cudaError cudaEventCreateWithFlags(void** event, unsigned flags) {
  return in_context([&] { return driver.cuEventCreate(event, flags); });
}
EXPORT cudaError cudaEventCreate(void** event) {
  return in_context([&] { return driver.cuEventCreate(event, 0); });
}
EXPORT cudaError cudaEventDestroy(void* event) {
  return in_context([&] { return driver.cuEventDestroy(event); });
}
EXPORT cudaError cudaEventQuery(void* event) {
  return in_context([&] { return driver.cuEventQuery(event); });
}
EXPORT cudaError cudaEventRecord(void* event, void* stream) {
  return in_context([&] { return driver.cuEventRecord(event, stream); });
}
EXPORT cudaError cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return in_context([&] { return driver.cuEventRecordWithFlags(event, stream, flags); });
}
EXPORT cudaError cudaEventSynchronize(void* event) {
  return in_context([&] { return driver.cuEventSynchronize(event); });
}
EXPORT cudaError cudaEventElapsedTime(float* ms, void* begin, void* end) {
  return in_context([&] { return driver.cuEventElapsedTime(ms, begin, end); });
}
#if CUDART_MAJOR == 12
EXPORT cudaError cudaStreamGetCaptureInfo_v2(void* stream, int* status, std::uint64_t* id, void** graph,
                                             const void*** nodes, std::size_t* count) {
  return in_context([&] { return driver.cuStreamGetCaptureInfo(stream, status, id, graph, nodes, nullptr, count); });
}
EXPORT cudaError cudaStreamGetCaptureInfo(void* stream, int* status, std::uint64_t* id) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}
#else
EXPORT cudaError cudaStreamGetCaptureInfo(void* stream, int* status, std::uint64_t* id, void** graph,
                                          const void*** nodes, const void** edges, std::size_t* count) {
  return in_context([&] { return driver.cuStreamGetCaptureInfo(stream, status, id, graph, nodes, edges, count); });
}
#endif
EXPORT cudaError cudaGraphNodeGetDependencies(void* node, void** nodes, std::size_t* count) {
  if (count != nullptr) *count = 0;
  return kOk;
}
EXPORT cudaError cudaStreamUpdateCaptureDependencies(void* stream, void* nodes, std::size_t count, unsigned flags) {
  return kOk;
}
EXPORT cudaError cudaUserObjectCreate(void** object, void* pointer, void* destroy, unsigned references,
                                      unsigned flags) {
  *object = pointer;
  return kOk;
}
EXPORT cudaError cudaUserObjectRelease(void* object, unsigned count) {
  return kOk;
}
EXPORT cudaError cudaGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
  return kOk;
}
