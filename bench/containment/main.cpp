// Policies put to the test with real processes on fake GPUs, in time that passes faster (docs/BENCHMARKS.md):
//
//     containment chaos       [--lives N] [--seed N] [--speed X]   random lives; every act is checked against the truth
//     containment checkpoints [--lives N] [--seed N] [--speed X]   leaking jobs and their checkpoint signal
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "live/containment.hpp"
#include "stage.hpp"

namespace {

std::string policies_of(std::string_view mode) {
  const std::string user = "when.user = [\"" + vramtrack::own_user_name() + "\"]\n";
  if (mode == "checkpoints")
    return "[[policy]]\nname = \"save\"\n" + user +
           "steps = [{ do = \"checkpoint\", signal = \"SIGUSR1\", usually-takes = \"2min\" }]\n";
  return "[[policy]]\nname = \"leaks\"\n" + user +
         "steps = [{ do = \"checkpoint\", signal = \"SIGUSR1\" }, { do = \"terminate\", after = \"2min\" }, "
         "{ do = \"kill\", after = \"1min\" }]\n"
         "[[policy]]\nname = \"zombies\"\nwhen.kind = \"stalled\"\n" +
         user + "steps = [{ do = \"terminate\" }, { do = \"kill\", after = \"1min\" }]\n";
}

int life() {
  const char *board = std::getenv("BENCH_BOARD"), *lives = std::getenv("BENCH_LIVES"),
             *slot = std::getenv("BENCH_SLOT");
  if (board == nullptr || lives == nullptr || slot == nullptr) return 2;
  bench::Slot* const slots = bench::map_board(board, std::strtoul(lives, nullptr, 10));
  return slots == nullptr ? 2 : bench::live(slots[std::strtoul(slot, nullptr, 10)]);
}

int usage() {
  std::fputs("usage: containment chaos|checkpoints [--lives N] [--seed N] [--speed X]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "life") return life();
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode != "chaos" && mode != "checkpoints") return usage();
  std::size_t lives = mode == "chaos" ? 1000 : 100;
  double speed = mode == "chaos" ? 60 : 200;
  std::uint32_t seed = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--lives")
      lives = std::strtoul(argv[i + 1], nullptr, 10);
    else if (name == "--seed")
      seed = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    else if (name == "--speed")
      speed = std::strtod(argv[i + 1], nullptr);
    else
      return usage();
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // of workers whose trainer has ended
  std::string folder = (std::filesystem::temp_directory_path() / "containment.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 2;
  int status = 2;
  try {
    bench::StageOptions options;
    options.folder = folder;
    options.nvml_library = BENCH_NVML;
    options.policies = policies_of(mode);
    options.speed = speed;
    options.interval_s = mode == "chaos" ? 5 : 10;
    options.device_mib = mode == "chaos" ? 81920 : 24576;
    options.lives = mode == "chaos" ? lives : 24 + 2 * lives;
    bench::Stage stage(options);
    status = mode == "chaos" ? bench::run_chaos(stage, lives, 48, seed, speed)
                             : bench::run_checkpoints(stage, lives, seed, speed, options.device_mib);
    for (const std::string& warning : stage.warnings())
      if (!warning.starts_with("policy ")) std::printf("  said: %s\n", warning.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "containment: %s\n", error.what());
  }
  std::filesystem::remove_all(folder);
  return status;
}
