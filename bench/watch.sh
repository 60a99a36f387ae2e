#!/bin/sh
# What watching costs: CPU as a share of one core, and resident memory, with 8 GPUs and 64 real processes at 1 Hz, on the
# fake NVML library, recording into a store.
#
#   bench/watch.sh [SECONDS]            (default 120, after 5 s to start)
#   bench/watch.sh --soak SECONDS       fails unless memory and files stay bounded; with 8 processes a second that come,
#                                       live 5 s and go, after 90 s to reach what is kept of the last ended
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
  # One of the 8 processes of a GPU leaks, one is a sawtooth, the others hold what they have.
  case $((number / 8)) in
    0) used="2G+1M<9G" ;;
    1) used="1G+20M%60" ;;
    *) used="1G" ;;
  esac
  echo "process gpu=$((number % 8)) pid=$pid list=C used=$used"
  number=$((number + 1))
done >>"$work/scenario"

settle=5
if [ -n "$soak" ]; then
  # Processes that come, live for 5 s and go: one a second on each GPU, at most 20 000 of them in all. Their pids are
  # none that the kernel would give.
  settle=90
  awk -v seconds=$((seconds + settle + 30)) 'BEGIN {
    every = seconds * 8 / 20000
    if (every < 1) every = 1
    for (from = 1; from < seconds; from += every)
      for (gpu = 0; gpu < 8; ++gpu)
        printf "process gpu=%d pid=%d list=C used=1G from=%d to=%d\n", gpu, 5000000 + n++, from, from + 4
  }' >>"$work/scenario"
fi

XDG_STATE_HOME=$work XDG_CONFIG_HOME=$work VRAMTRACK_FAKE_NVML=$work/scenario \
  $build/vramtrack watch --interval 1s --duration $((seconds + settle + 30))s \
  --set "sources.nvml-library=$PWD/$build/fake_nvml/current/libnvidia-ml.so.1" >"$work/out" 2>&1 &
watch=$!
started=$(date +%s)
come_and_go=$(grep -c " to=" "$work/scenario" || true)

# User and system time in clock ticks; the second field of /proc/PID/stat may hold blanks, so count behind its ")".
ticks() { sed 's/.*) //' "/proc/$watch/stat" | awk '{ print $12 + $13 }'; }
kib() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$watch/status"; }
# How many of the processes that come and go have gone by now, of the first tick's time.
dead() {
  echo $((($(date +%s) - started) * come_and_go / (seconds + settle + 30)))
}
running() {
  kill -0 "$watch" 2>/dev/null && return
  cat "$work/out" >&2
  echo "watch: vramtrack ended early" >&2
  exit 1
}

sleep $settle
running
begun_ticks=$(ticks)
begun_ns=$(date +%s%N)
begun_kib=$(kib VmRSS)
begun_dead=$(dead)
sleep "$seconds"
running
used_ticks=$(($(ticks) - begun_ticks))
took_ns=$(($(date +%s%N) - begun_ns))
share=$(awk -v t="$used_ticks" -v hz="$(getconf CLK_TCK)" -v ns="$took_ns" 'BEGIN { printf "%.3f", t / hz / (ns / 1e9) * 100 }')
echo "72 series for $((took_ns / 1000000000)) s: $share % of one core," \
  "resident $(kib VmRSS) KiB, at most $(kib VmHWM) KiB; threads: $(ls "/proc/$watch/task" | wc -l)"
echo "store: $(find "$work" -name '*.db*' -printf '%f %s bytes  ')"

if [ -n "$soak" ]; then
  grown=$(($(kib VmRSS) - begun_kib))
  open=$(ls "/proc/$watch/fd" | wc -l)
  gone=$(($(dead) - begun_dead))
  echo "soak: resident memory grew by $grown KiB while $gone processes came and went" \
    "($(awk -v k="$grown" -v n="$gone" 'BEGIN { printf "%.3f", k / (n ? n : 1) }') KiB each), $open files open"
  [ "$grown" -le 4096 ] || { echo "soak: more than 4096 KiB: a leak in the leak finder" >&2; exit 1; }
  [ "$open" -le 64 ] || { echo "soak: files are left open" >&2; exit 1; }
fi
