// The parts of vramtrack._core: one function per file that adds its names to the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <string>

#include "core/result.hpp"

namespace vramtrack::python {

namespace nb = nanobind;

/// A column of numbers as NumPy holds it, borrowed: it must outlive the call, and does, being an argument of it.
using Column = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Other Python threads run while it lives. A thread that comes back when the interpreter has begun to end stays here
/// until the process is gone: Python before 3.14 ends it by unwinding (pthread_exit), which no C++ caller survives.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) ::pause();
    }
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

void add_detect(nb::module_& module);
void add_statistics(nb::module_& module);
void add_gate(nb::module_& module);
void add_driver(nb::module_& module);
void add_snapshots(nb::module_& module);
void add_chart(nb::module_& module);
void add_explain(nb::module_& module);

/// The value, or a Python ValueError with the Error's text.
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) throw nb::value_error(result.error().message.c_str());
  return std::move(*result);
}

/// Raises the Error, if it is one, likewise.
inline void check_or_raise(const Status& status) {
  if (!status) throw nb::value_error(status.error().message.c_str());
}

}  // namespace vramtrack::python
