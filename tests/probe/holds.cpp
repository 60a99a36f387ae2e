// A function as those of PyTorch that let other threads of Python continue meanwhile, again and again: what is thrown
// through it ends the program, and so does what ends the thread within it.
#include <dlfcn.h>
#include <time.h>

extern "C" void holds(int milliseconds) noexcept {
  const auto save = reinterpret_cast<void* (*)()>(::dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
  const auto restore = reinterpret_cast<void (*)(void*)>(::dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"));
  for (; milliseconds > 0; --milliseconds) {
    void* const thread = save();
    const timespec time{0, 1'000'000};
    ::nanosleep(&time, nullptr);
    restore(thread);
  }
}
