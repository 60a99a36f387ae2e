// dlopen: a program that opens the driver by a name other than libcuda.so.1 (this library's) gets this library, too.
#pragma once

namespace vramtrack::probe::cuda {

/// The real dlopen of a path, for this library's own use. nullptr if it cannot be opened.
void* open_library(const char* path);

}  // namespace vramtrack::probe::cuda
