#!/bin/sh
# Runs the steps of a check, one after another. A step that fails does not prevent the others from running.
#
#   scripts/steps.sh gate      required before a change is merged: the tests, the unit tests under sanitizers and the format
#   scripts/steps.sh check     takes longer: packages, clang-tidy, sanitizers, fuzzing, a fleet of 8,000 GPUs
#
# Prints how long each step took, and at the end the ten longest tests. Exits non-zero if a step failed, and names it. The test runner's
# totals come last.
set -u
cd "$(dirname "$0")/.."
which=$1
# One locale: its variables are part of the compiler cache's key, so LC_ALL would make it miss what `make test` has compiled.
unset LC_ALL
export LANG=C.UTF-8
failed=
rm -f build/*/tests.xml
logs=build/$which
rm -rf "$logs"
mkdir -p "$logs"

# told NAME STATUS BEGUN: shows the end of the step's output, only a little if it passed.
told() {
  if [ "$2" = 0 ]; then
    outcome=ok
    tail -n 5 "$logs/$1.log"
  else
    outcome=FAILED
    failed="$failed $1"
    tail -n 60 "$logs/$1.log"
  fi
  echo "=== $1: $outcome in $(($(date +%s) - $3)) s"
}

# step NAME COMMAND...: runs COMMAND.
step() {
  name=$1
  shift
  echo "=== $name"
  begun=$(date +%s)
  status=0
  "$@" >"$logs/$name.log" 2>&1 || status=$?
  told "$name" $status "$begun"
}

# beside NAME COMMAND...: starts COMMAND, which uses the time that the steps after it leave idle; `finish NAME` waits for it.
beside() {
  name=$1
  shift
  echo "=== $name begins beside the next step"
  beside_begun=$(date +%s)
  nice -n 19 "$@" >"$logs/$name.log" 2>&1 &
  beside=$!
}
finish() {
  status=0
  wait "$beside" || status=$?
  beside=
  told "$1" $status "$beside_begun"
}
beside=
# It must not outlive this script.
trap '[ -z "$beside" ] || kill "$beside" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# without_warnings COMMAND...: runs COMMAND, as a step with the log compile.log; also fails if g++ 12, the reference, warns.
without_warnings() {
  "$@" || return
  if [ "$(g++ -dumpversion)" != 12 ] || ! grep -q ': warning: ' "$logs/compile.log"; then return; fi
  echo "error: the compiler warns; change the code so that it does not:"
  grep ': warning: ' "$logs/compile.log" | sort -u
  return 1
}

case $which in
  gate)
    scripts/setup.sh build test format fuzz ci || exit 1
    step format make format-check
    # The tests spend half of their time waiting for servers, screens and pages: the programs for the sanitizers are compiled meanwhile.
    step compile without_warnings make compiled-tests
    beside sanitized make sanitized
    step test make test
    finish sanitized
    ;;
  check)
    scripts/setup.sh build test lint fuzz bench package ci || exit 1
    # Properties with other random numbers than in the gate.
    SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    export SEED
    echo "check: SEED=$SEED repeats what is drawn at random, for example: make dev SEED=$SEED"
    step deb make deb
    step damaged-snapshots make damage-snapshots
    step syntaxes make syntaxes
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

# The failures and their reasons, so that they are in the last lines of the output: the compiler's errors, and the tests.
for name in $failed; do grep -hE 'error:|Error [0-9]+$|^tests: |^lint: ' "$logs/$name.log" | head -n 10; done
if ls build/*/tests.xml >/dev/null 2>&1; then
  scripts/test_results.py failed build/*/tests.xml
  scripts/test_results.py longest build/*/tests.xml
fi
if [ -n "$failed" ]; then echo "$which: failed:$failed"; else echo "$which: all passed"; fi
grep -hE '^[0-9]+% tests passed|^Total Test time|tests failed out of' "$logs"/*.log
[ -z "$failed" ]
