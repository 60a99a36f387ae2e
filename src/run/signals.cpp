#include "run/signals.hpp"

#include <array>
#include <atomic>
#include <csignal>

namespace vramtrack::run {
namespace {

constexpr std::array kPassed = {SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGWINCH};
std::array<std::atomic<int>, kPassed.size()> waiting;
std::atomic<int> marks_asked;
constexpr std::array kOwn = {SIGXFSZ, SIGCHLD};  ///< signals that need a handler and that nothing else uses
std::array<struct sigaction, kPassed.size() + 1 + kOwn.size()> before;

void handle(int number, const struct sigaction& action, struct sigaction& earlier) {
  ::sigaction(number, nullptr, &earlier);
  if (earlier.sa_handler != SIG_IGN || number == SIGCHLD) ::sigaction(number, &action, nullptr);
}

void on_signal(int number, siginfo_t* info, void* /*context*/) {
  if (number == SIGRTMIN) marks_asked.fetch_add(1);
  // A terminal signals the whole foreground group, so the program already has it.
  if (info->si_code == SI_KERNEL && number != SIGHUP) return;
  for (std::size_t i = 0; i < kPassed.size(); ++i)
    if (kPassed[i] == number) waiting[i].store(1);
}

}  // namespace

LauncherSignals::LauncherSignals() {
  // Unlike an ignored signal, a handler is reset to the default in a started program.
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kPassed.size(); ++i) handle(kPassed[i], action, before[i]);
  handle(SIGRTMIN, action, before[kPassed.size()]);
  action.sa_flags = SA_SIGINFO | SA_NOCLDSTOP;
  for (std::size_t i = 0; i < kOwn.size(); ++i) handle(kOwn[i], action, before[kPassed.size() + 1 + i]);
}

LauncherSignals::~LauncherSignals() {
  for (std::size_t i = 0; i < kPassed.size(); ++i) ::sigaction(kPassed[i], &before[i], nullptr);
  ::sigaction(SIGRTMIN, &before[kPassed.size()], nullptr);
  for (std::size_t i = 0; i < kOwn.size(); ++i) ::sigaction(kOwn[i], &before[kPassed.size() + 1 + i], nullptr);
}

void LauncherSignals::pass_on(pid_t program) {
  for (std::size_t i = 0; i < kPassed.size(); ++i)
    if (waiting[i].exchange(0) != 0) ::kill(program, kPassed[i]);
}

int LauncherSignals::marks() {
  return marks_asked.exchange(0);
}

}  // namespace vramtrack::run
