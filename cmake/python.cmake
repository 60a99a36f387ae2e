# The Python package's extension. AUTO: where setup.sh has made its virtual environment (build/python), with the tests; never
# in a build under sanitizers, of the fuzzers or of the portable binary, whose flags an interpreter does not have.
# Included before the libraries, which then must be position independent; python/ is added after them.
set(VRAMTRACK_PYTHON AUTO CACHE STRING "Build the Python package's extension: AUTO, ON or OFF")
set_property(CACHE VRAMTRACK_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(VRAMTRACK_PYTHON_VENV ${CMAKE_SOURCE_DIR}/build/python CACHE PATH "Where setup.sh has put nanobind and the tests' packages")

set(VRAMTRACK_PYTHON_BUILD ${VRAMTRACK_PYTHON})
if(VRAMTRACK_PYTHON STREQUAL "AUTO")
  if((VRAMTRACK_TESTS OR VRAMTRACK_BENCH) AND NOT VRAMTRACK_SANITIZE AND NOT VRAMTRACK_FUZZ AND NOT VRAMTRACK_PORTABLE
     AND EXISTS ${VRAMTRACK_PYTHON_VENV}/complete)
    set(VRAMTRACK_PYTHON_BUILD ON)
  else()
    set(VRAMTRACK_PYTHON_BUILD OFF)
  endif()
endif()
# Also in a build folder that does not have the extension yet: adding the tests then compiles nothing again.
if(VRAMTRACK_PYTHON_BUILD OR (CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT VRAMTRACK_PORTABLE))
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
