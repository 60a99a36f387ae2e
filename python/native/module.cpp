// vramtrack._core: what the Python package takes from C++. Nothing here is public; the package wraps all of it.
#include "bindings.hpp"
#include "core/option.hpp"

// The module's entry point is a C function whose name the interpreter looks up.
NB_MODULE(_core, module) {
  module.doc() = "C++ core of vramtrack; use the package's own names";
  // A watch that runs to the interpreter's end keeps its streams: the process frees them, and no one need be warned.
  nanobind::set_leak_warnings(false);
  vramtrack::set_surface(vramtrack::Surface::python);  // sentences name arguments, not options
  module.attr("version") = VRAMTRACK_VERSION;
  vramtrack::python::add_detect(module);
  vramtrack::python::add_statistics(module);
  vramtrack::python::add_gate(module);
  vramtrack::python::add_driver(module);
  vramtrack::python::add_snapshots(module);
  vramtrack::python::add_chart(module);
  vramtrack::python::add_explain(module);
}
