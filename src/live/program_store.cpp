#include "live/program_store.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace vramtrack {

std::string program_key(const ProgramIdentity& identity) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(identity.text.data(), identity.text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string key;
  for (unsigned int i = 0; i < size; ++i) key += fmt::format("{:02x}", digest[i]);
  return key;
}

ProgramMemory memory_in(Store& store) {
  ProgramMemory memory;
  memory.find = [&store](const ProgramIdentity& identity) { return store.program(program_key(identity)); };
  memory.put = [&store](const ProgramIdentity& identity, Program program) {
    program.key = program_key(identity);
    static_cast<void>(store.remember(program));  // out of memory: the run is not remembered
  };
  return memory;
}

}  // namespace vramtrack
