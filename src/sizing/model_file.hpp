// Reading a model's headers from the file system.
#pragma once

#include <string>

#include "core/result.hpp"
#include "sizing/model.hpp"

namespace vramtrack::sizing {

/// `path`: a GGUF file (the first of several parts), a safetensors file, a config.json, or a folder with config.json
/// and safetensors files. Only headers are read. Errors name the file, and the offset in it if known.
Result<ModelFacts> read_model(const std::string& path);

}  // namespace vramtrack::sizing
