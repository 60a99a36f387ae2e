#!/bin/sh
# Unpacks the portable archive in a bare Debian 12, analyses a simulated log there, runs a program that leaks under the probe, and
# queries the agent that it starts.
#
#   scripts/try_portable.sh ARCHIVE [SUITE]
#
# Needs root and mmdebstrap; an archive for aarch64 is tested on x86-64 after `make aarch64`. The bare Debian is kept in build/roots for
# the next run. All mounts are in a namespace of this script.
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
  echo "try_portable: needs root, for a chroot: run sudo $0 $*" >&2
  exit 1
fi
if [ "${TRY_PORTABLE_BASE:-}" = "" ]; then
  case $1 in
    *-aarch64.tar.gz) arch=arm64 ;;
    *) arch=amd64 ;;
  esac
  TRY_PORTABLE_BASE=$(scripts/bare.sh make bare $arch "${2:-bookworm}")
  export TRY_PORTABLE_BASE
  exec unshare --mount --pid --net --fork --kill-child "$0" "$@"
fi
root=$PWD/build/roots/try-portable
scripts/bare.sh unpack "$TRY_PORTABLE_BASE" "$root" opt/named_line
tar -xzf "$1" -C "$root/opt"
ip link set lo up 2>/dev/null || python3 - <<'END'
import fcntl, socket, struct
with socket.socket() as s:  # SIOCSIFFLAGS: lo is up and running
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
END

# bash's /dev/tcp, because a bare Debian has no curl.
chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 bash -eu <<'END'
vramtrack=$(echo /opt/vramtrack-*/bin/vramtrack)
echo "  ok      $($vramtrack --version | head -n 1)"
cd /root
$vramtrack simulate --csv gpu.csv --process-csv apps.csv >/dev/null
status=0
$vramtrack analyze gpu.csv apps.csv >analysis || status=$?
[ $status = 1 ] && grep -q LEAK analysis
echo "  ok      analyze finds the simulated leak"
echo "  ok      $(/opt/named_line/named_line.sh run /opt/named_line $vramtrack)"

$vramtrack agent --scenario leaking_training --listen 127.0.0.1:9474 >agent.log 2>&1 &
agent=$!
ask() {
  exec 3<>/dev/tcp/127.0.0.1/9474 || return 1
  printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$1" >&3
  cat <&3 >answer
  exec 3>&- 
  head -n 1 answer | grep -q ' 200 '
}
for _ in $(seq 300); do
  if ask /healthz 2>/dev/null; then break; fi
  if ! kill -0 $agent 2>/dev/null; then break; fi
  sleep 0.2
done
ask /healthz || { cat agent.log; exit 1; }
echo "  ok      the agent answers /healthz"
ask /metrics && grep -q '^vramtrack_' answer
echo "  ok      it serves /metrics: $(grep -c '^vramtrack_' answer) values"
ask /api/v1/status
echo "  ok      it serves /api/v1/status"
ask / && grep -q -i '<!doctype html>' answer
if grep -q 'has no dashboard in it' answer; then echo "  note    it has no dashboard: npm was missing"; fi
echo "  ok      it serves its page: $(wc -c <answer) bytes"
kill -TERM $agent
wait $agent
echo "  ok      it ends at SIGTERM"
END
echo "try_portable: all passed"
