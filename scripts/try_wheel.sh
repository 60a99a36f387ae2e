#!/bin/sh
# Installs the wheel and the portable archive from a folder, without sources, compiler or network, and tests what they contain.
#
#   scripts/try_wheel.sh DIST [NAMED_LINE]              here; NAMED_LINE: a folder that tests/packages/named_line.sh has made
#   scripts/try_wheel.sh --bare DIST [[ARCH:]SUITE...]  in bare systems with Python: Debian 12, and Ubuntu 22.04 and 24.04 where the keys of its
#                                                       archive are in /usr/share/keyrings (root and mmdebstrap; the systems are kept in
#                                                       build/roots). arm64:bookworm: aarch64's on x86-64, after `make aarch64`
set -eu
if [ "$1" = --bare ]; then
  cd "$(dirname "$0")/.."
  if [ "$(id -u)" != 0 ]; then
    echo "try_wheel: needs root, for a chroot: run sudo $0 $*" >&2
    exit 1
  fi
  if [ "${TRY_WHEEL_BASE:-}" = "" ]; then
    dist=$2
    shift 2
    if [ $# = 0 ]; then
      set -- bookworm
      if [ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]; then
        set -- bookworm jammy noble
      else
        echo "try_wheel: not tried on Ubuntu: the keys of its archive are not here (/usr/share/keyrings/ubuntu-archive-keyring.gpg)"
      fi
    fi
    for system in "$@"; do
      case $system in
        *:*) arch=${system%%:*} ;;
        *) arch=$(dpkg --print-architecture) ;;
      esac
      base=$(scripts/bare.sh make python "$arch" "${system##*:}" python3-venv)
      TRY_WHEEL_BASE=$base unshare --mount --pid --net --fork --kill-child "$0" --bare "$dist"
    done
    exit 0
  fi
  root=$PWD/build/roots/try-wheel
  scripts/bare.sh unpack "$TRY_WHEEL_BASE" "$root" opt/named_line
  cp -R "$2" "$root/opt/dist"
  cp "$0" "$root/opt/try_wheel.sh"
  exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 /opt/try_wheel.sh /opt/dist /opt/named_line
fi

dist=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
pass() { printf '  ok      %s\n' "$*"; }

# The program $1 finds a leak in a log, and the probe next to it names a line.
try_program() {
  "$1" simulate --csv gpu.csv --process-csv apps.csv >/dev/null
  status=0
  "$1" analyze gpu.csv apps.csv >analysis || status=$?
  [ $status = 1 ] && grep -q LEAK analysis
  pass "$2: analyze finds the simulated leak"
  if [ -n "$named_line" ]; then
    line=$("$named_line/named_line.sh" run "$named_line" "$1") # not within pass, because a failure must end the test
    pass "$2: $line"
  fi
}
named_line=${2:-}

python3 -m venv env
begun=$(date +%s)
env/bin/pip install -q --disable-pip-version-check --no-index --find-links "$dist" vramtrack
pass "$(. /etc/os-release && echo "$PRETTY_NAME"), $(python3 --version): the wheel is installed in $(($(date +%s) - begun)) s: $(env/bin/vramtrack --version | head -n 1)"
try_program "$work/env/bin/vramtrack" wheel
env/bin/python -c 'import vramtrack; print(vramtrack.detect([0, 1], [1, 2]).state)' | grep -q too_short
pass "import vramtrack"
env/bin/python -m vramtrack analyze gpu.csv apps.csv | grep -q LEAK
pass "python -m vramtrack analyze"
if command -v uvx >/dev/null; then
  tried=
  for wheel in "$dist"/*.whl; do
    if uvx --offline --from "$wheel" vramtrack analyze gpu.csv apps.csv 2>/dev/null | grep -q LEAK; then
      tried=$(basename "$wheel")
      break
    fi
  done
  [ -n "$tried" ]
  pass "uvx --from $tried vramtrack analyze"
fi
if [ -x "$dist/install.sh" ]; then
  "$dist/install.sh" --from "$dist" --prefix "$work/prefix" >installed
  try_program "$work/prefix/bin/vramtrack" install.sh
fi
echo "try_wheel: all passed"
