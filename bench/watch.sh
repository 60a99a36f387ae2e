#!/bin/sh
# What watching costs: CPU as a share of one core, and resident memory, with 8 GPUs and 64 real processes at 1 Hz, on the
# fake NVML library, recording into a store.
#
#   bench/watch.sh [SECONDS]            (default 120, after 5 s to start)
#   bench/watch.sh --soak SECONDS       fails unless memory and files stay bounded
set -eu
cd "$(dirname "$0")/.."
soak=
if [ "${1:-}" = --soak ]; then
  soak=1
  shift
fi
seconds=${1:-120}
build=build/bench
work=$(mktemp -d)
pids=
watch=
finish() {
  [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The processes are real, so that reading their /proc entries is paid for.
for _ in $(seq 64); do
  sleep 100000 &
  pids="$pids $!"
done

gpu=0
while [ $gpu -lt 8 ]; do
  echo "gpu $gpu uuid=GPU-bench-$gpu name=\"Bench GPU\" pci=00000000:0$gpu:00.0 total=80G used=500M util=90"
  gpu=$((gpu + 1))
done >"$work/scenario"
number=0
for pid in $pids; do
  # Of the 8 processes of a GPU one leaks, one is a sawtooth, the others hold what they have.
  case $((number / 8)) in
    0) used="2G+1M<9G" ;;
    1) used="1G+20M%60" ;;
    *) used="1G" ;;
  esac
  echo "process gpu=$((number % 8)) pid=$pid list=C used=$used"
  number=$((number + 1))
done >>"$work/scenario"

XDG_STATE_HOME=$work XDG_CONFIG_HOME=$work VRAMTRACK_FAKE_NVML=$work/scenario \
  $build/vramtrack watch --interval 1 --duration $((seconds + 30)) \
  --set "sources.nvml-library=$PWD/$build/fake_nvml/current/libnvidia-ml.so.1" >"$work/out" 2>&1 &
watch=$!

# User and system time in clock ticks; the second field of /proc/PID/stat may hold blanks, so count behind its ")".
ticks() { sed 's/.*) //' "/proc/$watch/stat" | awk '{ print $12 + $13 }'; }
kib() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$watch/status"; }
running() {
  kill -0 "$watch" 2>/dev/null && return
  cat "$work/out" >&2
  echo "watch: vramtrack ended early" >&2
  exit 1
}

sleep 5
running
begun_ticks=$(ticks)
begun_ns=$(date +%s%N)
begun_kib=$(kib VmRSS)
sleep "$seconds"
running
used_ticks=$(($(ticks) - begun_ticks))
took_ns=$(($(date +%s%N) - begun_ns))
share=$(awk -v t="$used_ticks" -v hz="$(getconf CLK_TCK)" -v ns="$took_ns" 'BEGIN { printf "%.3f", t / hz / (ns / 1e9) * 100 }')
echo "$(grep -c . "$work/scenario") series for $((took_ns / 1000000000)) s: $share % of one core," \
  "resident $(kib VmRSS) KiB, at most $(kib VmHWM) KiB; threads: $(ls "/proc/$watch/task" | wc -l)"
echo "store: $(find "$work" -name '*.db*' -printf '%f %s bytes  ')"

if [ -n "$soak" ]; then
  grown=$(($(kib VmRSS) - begun_kib))
  open=$(ls "/proc/$watch/fd" | wc -l)
  echo "soak: resident memory grew by $grown KiB, $open files open"
  [ "$grown" -le 4096 ] || { echo "soak: more than 4096 KiB: a leak in the leak finder" >&2; exit 1; }
  [ "$open" -le 64 ] || { echo "soak: files are left open" >&2; exit 1; }
fi
