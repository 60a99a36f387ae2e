#!/bin/sh
# Installs the packages that a build needs and this machine lacks, with apt, on Debian 12 or newer and Ubuntu 24.04 or newer.
#
#   scripts/setup.sh [build] [test] [format] [lint] [fuzz] [bench] [package] [chroot] [ci] [wheel] [wheels] [web] [browser] [python] [anywhere]
#                    [devices] [slurm] [kubernetes] [python314]                                                  (default: build)
#
# web (for building the dashboard), browser (for testing it), python (for building and testing the Python package, in the
# virtual environment build/python), devices (OpenCL and Vulkan on the processor, for testing the probe), slurm (for testing
# the actions for Slurm), kubernetes (for scripts/kubernetes/build.sh) and python314 (for scripts/python314.sh) are optional:
# the script continues without them. wheel has the system packages for `pip install .`, and wheels has what scripts/wheels.sh
# needs in addition.
#
# If there is nothing to install, prints nothing and takes some hundredths of a second. Never asks a question. Set
# VRAMTRACK_SETUP=0 to skip it if the libraries do not come from Debian packages.
set -eu

build="g++ cmake ninja-build pkg-config libfmt-dev libsqlite3-dev zlib1g-dev libzstd-dev libdw-dev libbz2-dev nlohmann-json3-dev
       libcli11-dev libncurses-dev libexpected-dev libtomlplusplus-dev libboost-dev tzdata
       libre2-dev libbpf-dev clang libcpp-httplib-dev libssl-dev libsnappy-dev prometheus-cpp-dev opencl-c-headers libvulkan-dev"
test="ccache libgtest-dev libgmock-dev librapidcheck-dev python3 python3-yaml tmux gdb prometheus prometheus-alertmanager victoria-metrics"
format="clang-format"
lint="clang clang-format clang-tidy"
fuzz="clang libclang-rt-dev"
bench="libbenchmark-dev python3"
package="dpkg-dev file binutils python3 python3-six unicode-data perl"
chroot="mmdebstrap util-linux"
ci="git make"
anywhere="locales"
python="python3-venv python3-dev"
wheel="$build python3-dev"
wheels="$package python3-venv ccache"
web="nodejs npm"
browser="chromium"
devices="pocl-opencl-icd ocl-icd-opencl-dev mesa-vulkan-drivers"
slurm="slurm-wlm munge"
kubernetes="golang-go dpkg-dev make openssl python3"
python314="dpkg patchelf"

[ "${VRAMTRACK_SETUP:-1}" = 0 ] && exit 0

# Node from a source other than the distribution is accepted from version 18 on.
if node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null; then
  web=
fi
# Ubuntu has Chromium only as a snap, which needs a running snapd: the browser tests report that they are skipped.
if command -v chromium >/dev/null || command -v google-chrome >/dev/null || grep -qs '^ID=ubuntu' /etc/os-release; then
  browser=
fi

wanted=
optional= # packages that a build and its tests can do without
for group in "${@:-build}"; do
  case $group in
    web | browser | python | devices | slurm | kubernetes | python314) eval "optional=\"\$optional \$$group\"" ;;
    build | test | format | lint | fuzz | bench | package | chroot | ci | wheel | wheels | anywhere) eval "wanted=\"\$wanted \$$group\"" ;;
    *)
      echo "setup: unknown group '$group'; expected build, test, format, lint, fuzz, bench, package, chroot, ci, wheel, wheels, web, browser,
python, anywhere, devices, slurm, kubernetes or python314" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this machine has no apt. Install the equivalents of these Debian packages, then build with
VRAMTRACK_SETUP=0:" $wanted >&2
  exit 1
fi

# Prints those of the named packages that are not installed. Virtual names (pkg-config is provided by pkgconf on newer
# releases) count as installed if a provider is.
missing_of() {
  installed=" $(dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Provides}\n' 2>/dev/null |
    sed -n 's/^ii *//p' | sed 's/([^)]*)//g' | tr ',\n' '  ') "
  missing=
  for package in "$@"; do
    case "$installed$missing " in
      *" $package "*) ;;
      *) missing="$missing $package" ;;
    esac
  done
  echo $missing
}

require() {
  missing=$(missing_of "$@")
  [ -z "$missing" ] && return
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null; then
    as_root=sudo
  else
    echo "setup: these packages are missing, and installing them needs root or sudo:
  $missing
Ask the administrator of this machine to run 'apt-get install $missing',
or set VRAMTRACK_SETUP=0 if you installed them in another way." >&2
    exit 1
  fi

  echo "setup: installing $missing"
  # The lock timeout waits for the unattended upgrades that many machines run after their first boot.
  apt="env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0"
  $as_root $apt update || echo "setup: 'apt-get update' failed; continuing with the existing package lists" >&2
  log=$(mktemp)
  if ! $as_root $apt install -y --no-install-recommends $missing >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get could not install all of: $missing
The full log is $log. vramtrack builds on Debian 12, Ubuntu 24.04 and newer; on Ubuntu the
component 'universe' must be enabled (sudo add-apt-repository universe)." >&2
    exit 1
  fi
  rm -f "$log"
}

require $wanted
if [ -n "$optional" ] && [ -n "$(missing_of $optional)" ] && ! (require $optional); then
  echo "setup: continuing without:$optional. Without nodejs and npm, the agent has no dashboard. Without chromium, its tests
are skipped. Without python3-venv, the Python package is neither built nor tested. Without pocl-opencl-icd and
mesa-vulkan-drivers, the probe's tests of OpenCL and Vulkan are skipped where there is no GPU. Without slurm-wlm and munge,
the tests on Slurm are skipped. Without golang-go, kube-apiserver cannot be built." >&2
fi

# The virtual environment for the Python package: the distribution's interpreter, with pinned packages installed by pip.
case " $* " in
  *" python "*)
    cd "$(dirname "$0")/.."
    system_python=/usr/bin/python3
    [ -x $system_python ] || system_python=$(command -v python3) || exit 0
    state="$($system_python --version; cat python/requirements-test.txt)"
    if [ "$(cat build/python/complete 2>/dev/null)" != "$state" ]; then
      echo "setup: creating build/python, the virtual environment of the Python package"
      rm -rf build/python
      mkdir -p build
      log=$(mktemp)
      if $system_python -m venv build/python >"$log" 2>&1 &&
        build/python/bin/pip install -q --disable-pip-version-check --require-hashes -r python/requirements-test.txt >"$log" 2>&1; then
        echo "$state" >build/python/complete
      else
        tail -n 5 "$log" >&2
        rm -rf build/python
        echo "setup: continuing without build/python: the Python package is neither built nor tested" >&2
      fi
      rm -f "$log"
    fi
    ;;
esac
