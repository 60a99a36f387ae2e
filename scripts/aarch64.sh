#!/bin/sh
# Cross-builds vramtrack for aarch64 (Jetson, Grace) on an x86-64 machine, runs its unit tests under qemu-user, and packs the .deb, the
# portable archive and wheels into dist/.
#
#   scripts/aarch64.sh [tests] [packages] [wheels]      default: tests packages
#
# wheels: the one for CPython 3.11, and, built by a Python 3.13 or newer in the folder VRAMTRACK_PYTHONS (default: ~/.pyenv/versions), the
# one for the stable ABI. The headers are those of Debian 12 and 13. scripts/try_*.sh test the packages under qemu.
#
# Everything happens in a separate Debian 12 in build/roots/aarch64: the compiler runs on x86-64, and the libraries are Debian's arm64
# packages, installed beside it (multiarch). Needs root, for a chroot; mounts are in a namespace of this script and end with it.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
root=$source/build/roots/aarch64
[ $# -gt 0 ] || set -- tests packages

# The program of each module, and the tests that qemu-user cannot run:
# * It emulates vfork by fork, so the parent does not learn of a failed exec: a program that cannot be started looks like one that
#   ended with status 127 (RunProgram, GatedProgram).
# * A death test executes its own program again, which the kernel can do for another processor only where qemu is registered with it
#   (LogDeathTest).
modules="core host source act store detect trace gate report engine agent recorded period live gate_run top cli accuracy"
excluded="RunProgram.FailuresAreTriedAgainAndSayWhy:GatedProgram.EndIsAnExitCodeOrASignal:LogDeathTest.*"

inside() { # runs in the chroot, in /src
  for part in "$@"; do
    case $part in
      tests)
        cmake -S . -B build/aarch64/test -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
          -DVRAMTRACK_PYTHON=OFF >build/aarch64/configure.log || { cat build/aarch64/configure.log; exit 1; }
        scripts/compile.sh build/aarch64/test
        run_tests
        ;;
      packages)
        if [ ! -e build/aarch64/test/build.ninja ]; then
          cmake -S . -B build/aarch64/test -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
            -DVRAMTRACK_PYTHON=OFF >build/aarch64/configure.log || { cat build/aarch64/configure.log; exit 1; }
        fi
        scripts/compile.sh build/aarch64/test --target product
        (cd build/aarch64/test && dpkg-architecture -a arm64 -c cpack -G DEB -D CPACK_DEBIAN_PACKAGE_ARCHITECTURE=arm64 >cpack.log) ||
          { cat build/aarch64/test/cpack.log; exit 1; }
        mkdir -p dist
        cp build/aarch64/test/vramtrack_*_arm64.deb dist/
        cmake -S . -B build/aarch64/portable -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
          -DVRAMTRACK_TESTS=OFF -DVRAMTRACK_PORTABLE=ON >build/aarch64/configure.log ||
          { cat build/aarch64/configure.log; exit 1; }
        scripts/compile.sh build/aarch64/portable --target product
        CC=aarch64-linux-gnu-gcc OBJDUMP=aarch64-linux-gnu-objdump scripts/portable.sh build/aarch64/portable aarch64
        ;;
      wheels) VRAMTRACK_CROSS=aarch64 scripts/wheels.sh ;;
    esac
  done
}

# One process per program: under qemu, starting a process per test would take longer than the test.
run_tests() {
  failed=0
  total=0
  for module in $modules; do
    log=build/aarch64/$module.log
    result=passed
    timeout 3600 qemu-aarch64-static "build/aarch64/test/${module}_test" --gtest_brief=1 --gtest_filter="-$excluded" >"$log" 2>&1 ||
      result="FAILED ($?)"
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
    skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
    printf '  %-9s %5s passed, %s skipped%s\n' "$module" "${passed:-0}" "${skipped:-0}" "$([ "$result" = passed ] || echo ": $result")"
    total=$((total + ${passed:-0}))
    if [ "$result" != passed ]; then
      failed=$((failed + 1))
      grep -E '^\[  FAILED|Failure$' "$log" | head -n 20
    fi
  done
  echo "aarch64: $total tests passed under qemu-user, $failed programs failed; not run: $excluded"
  [ $failed = 0 ]
}

if [ "${AARCH64_STAGE:-}" = inside ]; then
  inside "$@"
  exit 0
fi

for part in "$@"; do
  case $part in
    tests | packages | wheels) ;;
    *)
      echo "aarch64: unknown part '$part'; expected tests, packages or wheels" >&2
      exit 2
      ;;
  esac
done
if [ "$(id -u)" != 0 ]; then
  echo "aarch64: needs root, for a chroot: run sudo make aarch64" >&2
  exit 1
fi
if [ "${AARCH64_STAGE:-}" = "" ]; then
  AARCH64_STAGE=mounts exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi

mkdir -p build/aarch64 build/roots
arm64="libfmt-dev libsqlite3-dev zlib1g-dev libzstd-dev libdw-dev libbz2-dev liblzma-dev libncurses-dev libtomlplusplus-dev libboost-dev
       libcpp-httplib-dev libssl-dev prometheus-cpp-dev libre2-dev libsnappy-dev libgtest-dev libgmock-dev librapidcheck-dev libvulkan-dev"
wanted=$(for package in g++ g++-aarch64-linux-gnu cmake ninja-build pkg-config dpkg-dev file git make python3-venv ca-certificates \
  qemu-user-static gzip nodejs npm ccache tzdata nlohmann-json3-dev libcli11-dev libexpected-dev opencl-c-headers; do echo $package; done
  for package in $arm64; do echo "$package:arm64"; done)
if [ "$(cat "$root/complete" 2>/dev/null)" != "$wanted" ]; then
  echo "aarch64: making build/roots/aarch64, a Debian 12 with the cross compiler and arm64's libraries"
  rm -rf "$root"
  mmdebstrap --quiet --variant=minbase --architectures=amd64,arm64 --include="$(echo $wanted | tr ' ' ',')" bookworm "$root"
  echo "$wanted" >"$root/complete"
fi
scripts/library_sources.sh # with this machine's apt and versions, because the chroot has the same Debian

case " $* " in
  *" wheels "*)
    for python in 3.11:bookworm 3.13:trixie; do
      headers=build/aarch64/python${python%%:*}
      [ ! -e "$headers" ] || continue
      rm -rf "$headers.system" "$headers.new"
      mmdebstrap --quiet --variant=extract --skip=check/qemu --architectures=arm64 --include="libpython${python%%:*}-dev" "${python##*:}" "$headers.system"
      cp -R "$headers.system/usr/include/python${python%%:*}" "$headers.new"
      cp "$headers.system/usr/include/aarch64-linux-gnu/python${python%%:*}/pyconfig.h" "$headers.new/" # instead of one that selects by processor
      rm -rf "$headers.system"
      mv "$headers.new" "$headers"
    done
    ;;
esac

mkdir -p "$root/src" "$root/root/.cache/ccache"
mount --bind "$source" "$root/src"
mkdir -p "${CCACHE_DIR:-$HOME/.cache/ccache}"
mount --bind "${CCACHE_DIR:-$HOME/.cache/ccache}" "$root/root/.cache/ccache"
pythons=${VRAMTRACK_PYTHONS:-$HOME/.pyenv/versions}
if [ -d "$pythons" ]; then # at the same path, because the files may contain it
  mkdir -p "$root$pythons"
  mount --bind "$pythons" "$root$pythons"
fi
mount --bind /etc/ssl/certs "$root/etc/ssl/certs" # pip trusts the certificates that this machine trusts
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 AARCH64_STAGE=inside VRAMTRACK_PYTHONS="$pythons" \
  SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-}" CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc)}" \
  sh -c 'cd /src && [ -n "$SOURCE_DATE_EPOCH" ] || unset SOURCE_DATE_EPOCH; exec scripts/aarch64.sh "$@"' aarch64 "$@"
