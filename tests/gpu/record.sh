#!/bin/sh
# Records programs that leak on purpose, on this machine's first GPU: record.sh OUTPUT_FOLDER [VRAMTRACK]
# For each program, into OUTPUT_FOLDER: NAME.jsonl (what vramtrack said), NAME.db (its recording), NAME.csv and
# NAME-apps.csv (nvidia-smi's own view, for the log parsers), NAME.truth (what the program held, by its own count).
# machine.txt says where. Takes about 20 minutes; PYTHON names a Python with PyTorch (else that part is skipped).
set -eu
[ $# -ge 1 ] || { echo "usage: $0 OUTPUT_FOLDER [VRAMTRACK]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
out=$1
vramtrack=${2:-"$here/../../build/release/vramtrack"}
python=${PYTHON:-python3}
command -v nvidia-smi >/dev/null || { echo "record.sh: no nvidia-smi: there is no NVIDIA driver here" >&2; exit 77; }
[ -x "$vramtrack" ] || { echo "record.sh: no $vramtrack: run make build first, or name the binary" >&2; exit 2; }
mkdir -p "$out"
{
  "$vramtrack" --version
  uname -srm
  nvidia-smi --query-gpu=name,driver_version,memory.total,mig.mode.current --format=csv
} >"$out/machine.txt"

helpers=""
# shellcheck disable=SC2086  # a list of pids
trap 'kill $helpers 2>/dev/null || true' EXIT INT TERM

# record NAME PROGRAM...: watches from 20 s before the program to 20 s after it.
record() {
  name=$1; shift
  echo "recording $name"
  nvidia-smi --query-gpu=timestamp,index,uuid,memory.used,memory.total --format=csv -l 1 >"$out/$name.csv" &
  gpu_log=$!
  nvidia-smi --query-compute-apps=timestamp,gpu_uuid,pid,process_name,used_memory --format=csv -l 1 \
    >"$out/$name-apps.csv" &
  apps_log=$!
  "$vramtrack" watch --json --set "store.path=$out/$name.db" >"$out/$name.jsonl" 2>"$out/$name.log" &
  watch=$!
  helpers="$gpu_log $apps_log $watch"
  sleep 20
  status=0
  "$@" >"$out/$name.truth" 2>&1 || status=$?
  sleep 20
  kill -INT "$watch" && wait "$watch" || true
  kill "$gpu_log" "$apps_log"
  helpers=""
  [ "$status" -eq 0 ] || echo "record.sh: $name ended with $status: $(tail -n 1 "$out/$name.truth")" >&2
  if [ "$status" -eq 77 ]; then rm -f "$out/$name".* "$out/$name-apps.csv"; fi
}

cc -O2 -Wall -Wextra -o "$out/leak_cuda" "$here/leak_cuda.c" -ldl
record cuda_leak_64mib_s "$out/leak_cuda" 64 1000 16384 30
record cuda_leak_1mib_s "$out/leak_cuda" 1 1000 300 30
record cuda_steps "$out/leak_cuda" 512 30000 4096 30
record pytorch_graph "$python" "$here/leak_pytorch.py" --shape graph --step-mib 8 --hold-s 30
record pytorch_healthy "$python" "$here/leak_pytorch.py" --shape none --hold-s 30
record pytorch_cache "$python" "$here/leak_pytorch.py" --shape cache --hold-s 30
rm -f "$out/leak_cuda"
ls -l "$out"
