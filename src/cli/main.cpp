// vramtrack: parse the command line, run the command.
#include "cli/command_line.hpp"

#ifdef VRAMTRACK_WITHOUT_ERROR_TEXTS
#include <openssl/crypto.h>

namespace {

/// cpp-httplib starts OpenSSL when it is loaded, for every command. A third of that is a table of the texts of its
/// errors, which we never show, and which OpenSSL leaves out if it was told before. Nothing but .preinit_array comes
/// before the libraries.
void leave_out_error_texts(int, char**, char**) {
  static_cast<void>(OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, nullptr));
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const g_before_libraries)(int, char**,
                                                                               char**) = leave_out_error_texts;

}  // namespace
#endif

int main(int argc, char** argv) {
  using namespace vramtrack::cli;
  Console console;
  const Parsed parsed = parse_command_line(commands(), argc, argv);
  console.write(parsed.out);
  if (!parsed.error.empty()) console.error(parsed.error);
  if (!parsed.run) return parsed.exit_code;
  for (const std::string& ignored : ignored_variables()) console.warn(ignored);
  const int exit_code = parsed.run(console);
  return console.failed() ? 2 : exit_code;
}
