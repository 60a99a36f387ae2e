#!/bin/sh
# Runs the tests of a build in a temporary folder, with a home and a runtime folder of their own, and fails if a test fails
# or leaves anything behind: a file there, or a process.
#
#   scripts/run_tests.sh BUILD_DIR [ARGUMENT...]      the arguments of ctest
#
# BUILD_DIR/tests.xml has the results (JUnit); scripts/test_results.py prints the failures and the longest tests.
set -u
cd "$(dirname "$0")/.."
build=$1
shift
# A short path, because the path of a Unix socket has at most 107 bytes.
folder=$(mktemp -d "${TMPDIR:-/tmp}/vt.XXXXXX") || exit 1
# Some tests act as another user, who must be able to reach their files.
chmod 755 "$folder" && mkdir -m 1777 "$folder/t" && mkdir -m 755 "$folder/h" "$folder/c" && mkdir -m 700 "$folder/r" || exit 1
# In memory if there is such a place: see tests/unit/temp_folder.hpp.
if shm=$(mktemp -d /dev/shm/vt.XXXXXX 2>/dev/null); then
  chmod 1777 "$shm"
else
  shm=$folder/t
fi
trap 'rm -rf "$folder" "$shm"' EXIT
trap 'exit 130' INT TERM

env TMPDIR="$folder/t" HOME="$folder/h" XDG_RUNTIME_DIR="$folder/r" VRAMTRACK_TEST_RUN="$folder" VRAMTRACK_TEST_MEMORY="$shm" \
  XDG_CACHE_HOME="$folder/c" XDG_CONFIG_HOME="$folder/c/config" POCL_CACHE_DIR="$folder/c/pocl" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
  ctest --test-dir "$build" --output-on-failure --output-junit "$PWD/$build/tests.xml" "$@"
status=$?

# Others may leave files: pocl and Chromium their caches, settings and dconf's file, a Python program killed by a test its socket.
left=$(find "$folder/t" "$folder/h" "$folder/r" "$shm" -mindepth 1 -maxdepth 3 ! -path "$folder/r/vramtrack-attach*" ! -path "$folder/r/dconf*" |
  head -n 20)
if [ -n "$left" ]; then
  echo "tests: left behind in the temporary folder, the home or the runtime folder:"
  printf '%s\n' "$left" | sed "s|^$folder/|  |"
  status=1
fi
for environment in $(grep -lxz "VRAMTRACK_TEST_RUN=$folder" /proc/[0-9]*/environ 2>/dev/null); do
  pid=${environment#/proc/}
  pid=${pid%/environ}
  echo "tests: left running: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-150)"
  kill "$pid" 2>/dev/null
  status=1
done
exit $status
