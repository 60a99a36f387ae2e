#!/bin/sh
# Runs every fuzz target: first its committed corpus and the same files grown to the limits of fuzz/limits.txt (each file must
# pass), then SECONDS of new input up to those limits.
#
#   scripts/fuzz.sh BUILD_DIR [SECONDS]      0 seconds: the corpus only
#
# A target is an executable fuzz_NAME in BUILD_DIR; its corpus is fuzz/corpus/NAME. New inputs go to
# BUILD_DIR/corpus/NAME, never into the repository; a crash leaves BUILD_DIR/crash-NAME-... and is an error.
set -eu
cd "$(dirname "$0")/.."
build=$1
seconds=${2:-20}
status=0
targets=0
for target in "$build"/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  targets=$((targets + 1))
  name=$(basename "$target" | sed 's/^fuzz_//')
  committed=fuzz/corpus/$name
  if [ ! -d "$committed" ]; then
    echo "fuzz: $name has no corpus: put some inputs into $committed" >&2
    status=1
    continue
  fi
  limit=$(sed -n "s/^$name \([0-9]*\) .*/\1/p" fuzz/limits.txt)
  mkdir -p "$build/corpus/$name"
  log=$build/fuzz-$name.log
  if ! scripts/fuzz_limits.py "$build" "$name" --sanitized >"$build/fuzz-limits-$name.log" 2>&1; then
    cat "$build/fuzz-limits-$name.log" >&2
    status=1
    continue
  fi
  if ! "$target" -runs=0 -rss_limit_mb=1024 -timeout=10 -artifact_prefix="$build/crash-$name-" "$committed" >"$log" 2>&1 ||
    { [ "$seconds" -gt 0 ] && ! "$target" -max_total_time="$seconds" -max_len="$limit" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="$build/crash-$name-" "$build/corpus/$name" "$committed" >>"$log" 2>&1; }; then
    tail -n 40 "$log" >&2
    echo "fuzz: $name failed; the input is $build/crash-$name-*, the log $log" >&2
    status=1
    continue
  fi
  echo "fuzz: $name ok, $(ls "$committed" | wc -l) committed inputs," \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1) runs in $seconds s"
done
if [ "$targets" = 0 ]; then
  echo "fuzz: no fuzz_* executables in $build; run 'make fuzz'" >&2
  exit 1
fi
exit $status
