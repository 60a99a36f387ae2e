#!/bin/sh
# Runs a command against fake GPUs that hold real processes: with_processes.sh GPUS PROCESSES COMMAND...
# Starts PROCESSES sleepers, spreads them over GPUS GPUs, names the scenario in VRAMTRACK_FAKE_NVML, runs the
# command and ends the sleepers. Process 0 leaks, every third has a cycle, the others are steady.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 GPUS PROCESSES COMMAND..." >&2; exit 2; }
gpus=$1; processes=$2; shift 2
scenario=$(mktemp)
pids=""
# shellcheck disable=SC2086  # a list of pids
trap 'kill $pids 2>/dev/null || true; rm -f "$scenario"' EXIT INT TERM
i=0
while [ "$i" -lt "$gpus" ]; do
  printf 'gpu %d uuid=GPU-%08d-0000-0000-0000-000000000000 name="Fake H200" pci=00000000:%02X:00.0 total=80G used=600M reserved=500M util=80 memutil=30 temp=60 throttle=0x4 ecc=1 corrected=0 uncorrected=0 corrected_total=2 uncorrected_total=0 remapped=0\n' \
    "$i" "$i" $((i + 16)) >>"$scenario"
  i=$((i + 1))
done
i=0
while [ "$i" -lt "$processes" ]; do
  sleep 1000000 & pid=$!
  pids="$pids $pid"
  used=2G
  [ $((i % 3)) -eq 1 ] && used=1G+16M%60
  [ "$i" -eq 0 ] && used=2G+4M
  printf 'process gpu=%d pid=%d used=%s\n' $((i % gpus)) "$pid" "$used" >>"$scenario"
  i=$((i + 1))
done
status=0
VRAMTRACK_FAKE_NVML=$scenario "$@" || status=$?
exit "$status"
