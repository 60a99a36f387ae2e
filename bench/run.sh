#!/bin/sh
# Prints the figures of docs/BENCHMARKS.md, each with the command that gives it and the target it is held against.
#
#   bench/run.sh [replay] [detect] [watch] [disk] [traces]      (default: all; about 5 minutes)
#
# `make bench` builds what it needs. Run it on an otherwise idle machine.
set -eu
cd "$(dirname "$0")/.."
build=build/bench
[ -x $build/vramtrack ] || { echo "bench: build first: make bench" >&2; exit 1; }
[ $# -gt 0 ] || set -- replay detect watch disk traces

heading() { printf '\n== %s\n' "$1"; }
show() { printf '$ %s\n' "$*"; }

machine() {
  echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
    "$(c++ --version | head -n 1), $(. /etc/os-release && echo "$PRETTY_NAME"), $(date -u +%F)"
}

# 1. One core from the file to the verdict. The log is generated once: 2 million rows, 8 GPUs at 1 Hz, 69 hours.
replay() {
  heading "replay: CSV through parse and the default judge, one core (target: 2 million samples/s, 230 MB/s)"
  log=$build/log-2000000.csv
  [ -s $log ] || { $build/generate_log 2000000 8 >$log.part && mv $log.part $log; }
  show "taskset -c 0 $build/vramtrack analyze --timezone UTC --format json $log"
  best=
  for _ in 1 2 3 4 5; do
    begun=$(date +%s%N)
    # 1 is a verdict: this log has leaks in it.
    taskset -c 0 $build/vramtrack analyze --timezone UTC --format json $log >$build/replay.json || [ $? = 1 ]
    took=$(($(date +%s%N) - begun))
    if [ -z "$best" ] || [ $took -lt "$best" ]; then best=$took; fi
  done
  bytes=$(wc -c <$log)
  awk -v ns="$best" -v bytes="$bytes" -v rows=2000000 'BEGIN {
    printf "best of 5: %.2f s for %d rows, %d bytes: %.2f million samples/s, %.0f MB/s\n",
      ns / 1e9, rows, bytes, rows / ns * 1e3, bytes / ns * 1e3 }'
}

detect() {
  heading "detection alone, per sample and per series (targets of the judge: 300 ns, 20 KiB = 20480 bytes)"
  filter=${BENCH_FILTER:-^judge/}
  show "$build/detect_bench --benchmark_filter='$filter'"
  taskset -c 0 $build/detect_bench --benchmark_filter="$filter" --benchmark_counters_tabular=true 2>/dev/null
}

watch() {
  heading "watching 8 GPUs with 64 processes at 1 Hz (targets: 0.3 % of one core, 16 MiB resident)"
  show "bench/watch.sh"
  bench/watch.sh
}

disk() {
  heading "30 days of 8 GPUs and 64 processes at 1 Hz on disk (target: 500 MB)"
  show "$build/store_bench --benchmark_filter=30_days"
  $build/store_bench --benchmark_filter=30_days 2>/dev/null
}

traces() {
  heading "real recordings, every skipped line named"
  folder=${VRAMTRACK_TRACES:-../shared/traces}
  if [ ! -d "$folder/raw" ]; then
    echo "skipped: no recordings in $folder; set VRAMTRACK_TRACES to a folder with raw/ and series/"
    return 0
  fi
  show "bench/traces.py $build/vramtrack \$VRAMTRACK_TRACES/raw \$VRAMTRACK_TRACES/series"
  bench/traces.py $build/vramtrack "$folder/raw" "$folder/series"
}

machine
for part in "$@"; do
  case $part in
    replay | detect | watch | disk | traces) $part ;;
    *)
      echo "bench: unknown part '$part'; expected replay, detect, watch, disk or traces" >&2
      exit 2
      ;;
  esac
done
