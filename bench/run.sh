#!/bin/sh
# Prints the figures of docs/BENCHMARKS.md, each with the command that gives it and the target it is compared with.
#
#   bench/run.sh [replay] [many] [detect] [watch] [agent] [load] [page] [disk] [snapshot] [python] [traces] [probe]      (default: all; about 9 minutes)
#
# `make bench` builds what it needs. Run it on an otherwise idle machine.
set -eu
cd "$(dirname "$0")/.."
build=build/bench
[ -x $build/vramtrack ] || { echo "bench: build first: make bench" >&2; exit 1; }
[ $# -gt 0 ] || set -- replay many detect watch agent load page disk snapshot python traces probe

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
  for _ in 1 2 3 4 5; do
    # 1 is a verdict: this log has leaks in it.
    /usr/bin/env TIMEFORMAT='%R %U %S' bash -c 'time taskset -c 0 "$@" >/dev/null' replay \
      $build/vramtrack analyze --timezone UTC --format json $log 2>&1 || [ $? = 1 ]
  done | sort -n | awk -v bytes="$(wc -c <$log)" -v rows=2000000 'NR == 1 {
    cpu = $2 + $3
    printf "fastest of 5: %.2f s by the clock, %.2f s of CPU for %d rows, %d bytes: ", $1, cpu, rows, bytes
    printf "%.2f million samples/s and %.0f MB/s by the clock, %.2f and %.0f by CPU time\n",
      rows / $1 / 1e6, bytes / $1 / 1e6, rows / cpu / 1e6, bytes / cpu / 1e6 }'
}

many() {
  heading "6,400 series with 156 readings each (target: 32 KB a series)"
  log=$build/many-6400.csv
  [ -s $log ] || { python3 bench/many_series.py uuid 6400 156 >$log.part && mv $log.part $log; }
  show "$build/vramtrack analyze --timezone UTC --format json $log"
  python3 bench/many_series.py measure $build/vramtrack analyze --timezone UTC --format json $log
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

agent() {
  heading "the agent with page, /metrics and store, 8 GPUs with 64 processes at 1 Hz (targets: 0.5 % of one core, 24 MiB resident)"
  show "bench/agent.py cost"
  bench/agent.py cost
}

load() {
  heading "the agent at 10 Hz with 50 live streams and 200 requests a second (it must keep its period)"
  show "bench/agent_load.py $build/vramtrack $build/fake_nvml/current/libnvidia-ml.so.1"
  bench/agent_load.py $build/vramtrack $build/fake_nvml/current/libnvidia-ml.so.1
}

page() {
  heading "the page: a day of 8 GPUs, and of one GPU with 8 processes (target: 200 ms of the main thread each)"
  if [ ! -d $build/dashboard ]; then
    echo "skipped: the build has no dashboard"
    return 0
  fi
  show "node bench/page_speed.mjs $build/dashboard"
  node bench/page_speed.mjs $build/dashboard || [ $? = 77 ]
}

disk() {
  heading "30 days of 8 GPUs and 64 processes at 1 Hz on disk (target: 500 MB)"
  # The default: 64 processes in all. `--per-gpu 64` is the same for 64 on each GPU.
  show "$build/store_bench --gpus 8 --processes 64 --days 30"
  folder=$(mktemp -d)
  $build/store_bench --gpus 8 --processes 64 --days 30 --dir "$folder"
  rm -rf "$folder"
}

snapshot() {
  heading "a PyTorch snapshot of 1 GB with 10 million events (targets: 3 s, half the file resident, 10 times _memory_viz.py)"
  # pickle.load takes 6 GB of memory; VRAMTRACK_MEMORY_VIZ names PyTorch's torch/cuda/_memory_viz.py.
  set -- $build/vramtrack ${VRAMTRACK_MEMORY_VIZ:+--viz "$VRAMTRACK_MEMORY_VIZ"}
  [ "$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 8 ] || set -- "$@" --only vramtrack
  show "bench/snapshot.py $*"
  bench/snapshot.py "$@"
}

python() {
  heading "the Python package (targets: profile_function 5 us a call, detect 0.3 s a million samples)"
  if [ ! -e build/python/complete ] || [ ! -d $build/python ]; then
    echo "skipped: no Python environment for it; scripts/setup.sh python says why"
    return 0
  fi
  # VRAMTRACK_PEER: a folder into which stormlog or gpu-memory-profiler was installed.
  show "PYTHONPATH=$build/python build/python/bin/python bench/python_bench.py"
  PYTHONPATH=$build/python build/python/bin/python bench/python_bench.py ${VRAMTRACK_PEER:+--peer "$VRAMTRACK_PEER"}
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

probe() {
  heading "the probe's stacks, beside libunwind and glibc"
  depth=$(find $build -name libprobe_depth.so | head -n 1)
  if [ -z "$depth" ]; then
    echo "skipped: libunwind is not installed"
    return 0
  fi
  show "python3 bench/probe_stacks.py $build/probe/libprobe_call.so $depth"
  python3 bench/probe_stacks.py "$PWD/$build/probe/libprobe_call.so" "$PWD/$depth"
}

machine
for part in "$@"; do
  case $part in
    replay | detect | watch | agent | load | page | disk | snapshot | python | traces | probe) $part ;;
    *)
      echo "bench: unknown part '$part'; expected replay, detect, watch, agent, load, page, disk, snapshot, python, traces or probe" >&2
      exit 2
      ;;
  esac
done
