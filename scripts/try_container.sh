#!/bin/sh
# Starts an image's program as a person would: prints its version, analyses a log from standard input, and starts an agent that answers.
#
#   scripts/try_container.sh ENGINE IMAGE        ENGINE: podman or docker
set -eu
cd "$(dirname "$0")/.."
engine=$1
image=$2
"$engine" run --rm "$image" --version
work=$(mktemp -d)
name=vramtrack-try-$$
trap 'rm -rf "$work"; "$engine" rm -f "$name" >/dev/null 2>&1 || true' EXIT
awk 'BEGIN { print "timestamp, memory.used [MiB]"
  for (i = 0; i < 240; i++) printf "2026/01/05 %02d:%02d:%02d, %d\n", 8 + i / 360, i / 6 % 60, i % 6 * 10, 2000 + 60 * i }' >"$work/gpu.csv"
status=0
"$engine" run --rm -i "$image" analyze --capacity 24GiB - <"$work/gpu.csv" >"$work/analysis" || status=$?
[ "$status" = 1 ] && grep -q LEAK "$work/analysis" || { cat "$work/analysis"; exit 1; }
echo "  ok      analyze finds the leak of a log on standard input"
"$engine" run -d --name "$name" "$image" agent --scenario leaking_training >/dev/null
# It prints its address once it answers.
for _ in $(seq 150); do
  if "$engine" logs "$name" 2>&1 | grep -q 'http://'; then break; fi
  sleep 0.2
done
"$engine" logs "$name" 2>&1 | grep -q 'http://'
echo "  ok      an agent starts inside"
[ "$("$engine" exec "$name" id -un)" = vramtrack ]
echo "  ok      it runs as the user vramtrack"
