// The fuzz targets without libFuzzer: runs a target on each file of a folder, or on a file. So every build compiles the
// targets and tries their committed inputs, with any compiler and any sanitizer.
//
//   fuzz_NAME CORPUS|FILE...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

// What a target's own mutator calls; nothing is mutated here.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t size, std::size_t) {
  return size;
}

int main(int count, char** arguments) {
  std::size_t inputs = 0;
  const auto run = [&inputs](const std::filesystem::path& file) {
    std::fprintf(stderr, "%s\n", file.c_str());  // the last one named is the one that failed
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++inputs;
  };
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::is_directory(arguments[i])) {
      run(arguments[i]);
      continue;
    }
    for (const auto& file : std::filesystem::directory_iterator(arguments[i])) run(file.path());
  }
  if (inputs == 0) {
    std::fprintf(stderr, "no input in the folders named\n");
    return 1;
  }
  std::printf("%zu inputs\n", inputs);
}
