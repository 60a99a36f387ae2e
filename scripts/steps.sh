#!/bin/sh
# Runs the steps of a check, one after the other. A step that fails does not hide what the others have to say.
#
#   scripts/steps.sh gate      what must pass before a change is merged: the tests, the unit tests under sanitizers and the format
#   scripts/steps.sh check     what is longer: packages, clang-tidy, sanitizers, fuzzing, a fleet of 8,000 GPUs
#
# Prints what each step took. Exits non-zero when a step failed, and names it. The totals of the test runner come last.
set -u
cd "$(dirname "$0")/.."
which=$1
# One locale: its variables are part of what a compiler cache goes by, so LC_ALL would make it miss what `make test` has compiled.
unset LC_ALL
export LANG=C.UTF-8
failed=
rm -f build/*/tests.xml
logs=build/$which
rm -rf "$logs"
mkdir -p "$logs"

# step NAME COMMAND...: runs COMMAND and shows the end of what it printed: a little where it passed.
step() {
  name=$1
  shift
  echo "=== $name"
  begun=$(date +%s)
  if "$@" >"$logs/$name.log" 2>&1; then
    outcome=ok
    tail -n 5 "$logs/$name.log"
  else
    outcome=FAILED
    failed="$failed $name"
    tail -n 60 "$logs/$name.log"
  fi
  echo "=== $name: $outcome in $(($(date +%s) - begun)) s"
}

case $which in
  gate)
    scripts/setup.sh build test format fuzz ci || exit 1
    step format make format-check
    step test make test
    step sanitized make sanitized
    ;;
  check)
    scripts/setup.sh build test lint fuzz bench package ci || exit 1
    # Properties on other numbers than those of the gate.
    SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    export SEED
    echo "check: SEED=$SEED repeats what is drawn at random, for example: make dev SEED=$SEED"
    step deb make deb
    step damaged-snapshots make damage-snapshots
    step lint make lint
    step dev make dev
    step fuzz make fuzz FUZZ_SECONDS=5
    step tsan make tsan
    step rules tests/prometheus/rules.py --broken
    step fleet make check-fleet
    step mutants make mutants MUTANTS_ARGS=--changed
    ;;
  *)
    echo "steps: expected gate or check, not '$which'" >&2
    exit 2
    ;;
esac

# What failed and why, so that the last lines of the output tell it: the compiler's errors, and the tests.
for name in $failed; do grep -hE 'error:|Error [0-9]+$|^tests: |^lint: ' "$logs/$name.log" | head -n 10; done
for results in build/*/tests.xml; do [ ! -f "$results" ] || scripts/failed_tests.py "$results"; done
if [ -n "$failed" ]; then echo "$which: failed:$failed"; else echo "$which: all passed"; fi
grep -hE '^[0-9]+% tests passed|^Total Test time|tests failed out of' "$logs"/*.log
[ -z "$failed" ]
