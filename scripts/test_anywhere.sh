#!/bin/sh
# Runs the tests under conditions that a test must not depend on.
#
#   scripts/test_anywhere.sh BUILD_DIR [--condition NAME]... [--suite all|outside] [--repeat COUNT] [--list]
#
#   --condition  midnight, spring, autumn, zone, locale or load; may be repeated (default: all of them)
#   --suite      all: the whole suite once, and the tests of the agent and the browser COUNT times (default);
#                outside: only the tests that run the binary from outside (cli_*, agent, browser)
#   --repeat     how often the tests of the agent and the browser run (default: 10)
#
# The clock is moved by a preloaded library (tests/fake/moved_clock.c). Ends with one line per condition; the log of each is
# BUILD_DIR/anywhere-NAME.log. Exits with 1 if a test failed under a condition.
set -u
cd "$(dirname "$0")/.."

conditions=
suite=all
repeat=10
build=
while [ $# -gt 0 ]; do
  case $1 in
    --condition) conditions="$conditions ${2:?}" && shift ;;
    --suite) suite=${2:?} && shift ;;
    --repeat) repeat=${2:?} && shift ;;
    --list) echo midnight spring autumn zone locale load && exit 0 ;;
    -*) echo "test_anywhere: unknown option '$1'; see the head of $0" >&2 && exit 2 ;;
    *) build=$1 ;;
  esac
  shift
done
[ -f "$build/CTestTestfile.cmake" ] || { echo "test_anywhere: '$build' is no folder of a build with tests" >&2; exit 2; }
[ -n "$conditions" ] || conditions="midnight spring autumn zone locale load"

jobs=$((2 * $(nproc) + 1))  # like `make test`
outside='^(cli|web|browser|dashboard)_'

# Runs the tests in a condition's environment. $1: a log, $2...: the command that sets it up, followed by the command to run.
under() {
  log=$1
  shift
  "$@" >>"$log" 2>&1
}

# Everything once, then the tests of the server and the browser COUNT times, each until it fails.
suites() {
  log=$1
  shift
  status=0
  : >"$log"
  if [ "$suite" = all ]; then
    under "$log" "$@" scripts/run_tests.sh "$build" -j "$jobs" || status=1
  else
    under "$log" "$@" scripts/run_tests.sh "$build" -j "$jobs" -R "$outside" || status=1
  fi
  under "$log" "$@" scripts/run_tests.sh "$build" -R '^(agent|browser)_' --repeat until-fail:"$repeat" || status=1
  return $status
}

# A date and a zone; the clock continues from there.
at() {
  log=$1
  zone=$3
  library=$PWD/$build/libmoved_clock.so
  cc -shared -fPIC -O1 -o "$library" tests/fake/moved_clock.c || return 1
  ahead_s=$(($(TZ=$zone date -d "$2" +%s) - $(date +%s)))
  suites "$log" env TZ="$zone" LD_PRELOAD="$library" CLOCK_AHEAD_S=$ahead_s
}

busy=
end_busy() {
  [ -z "$busy" ] || kill $busy 2>/dev/null
  busy=
}
trap end_busy EXIT
trap 'exit 1' INT TERM

run_condition() {
  log=$build/anywhere-$1.log
  case $1 in
    midnight) at "$log" "2026-03-10 23:50:00" UTC ;;
    # Ten minutes before the clocks in Berlin go forward, and before they go back (02:50 there is ambiguous).
    spring) at "$log" "2026-03-29 01:50:00" Europe/Berlin ;;
    autumn) at "$log" "2026-10-25 00:50:00 UTC" Europe/Berlin ;;
    zone) suites "$log" env TZ=Asia/Kolkata ;;
    locale)
      # Created in the build folder if it is missing, so no root is needed.
      locales=$PWD/$build/locales
      if ! locale -a 2>/dev/null | grep -qi '^de_DE.utf-\{0,1\}8$' && [ ! -d "$locales/de_DE.UTF-8" ]; then
        mkdir -p "$locales"
        localedef -i de_DE -f UTF-8 "$locales/de_DE.UTF-8" || return 1
      fi
      [ ! -d "$locales" ] || set -- "$1" LOCPATH="$locales"
      shift
      suites "$log" env "$@" LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de
      ;;
    load)
      for _ in 1 2 3 4; do
        sh -c 'while :; do :; done' &
        busy="$busy $!"
      done
      suites "$log" env
      result=$?
      end_busy
      return $result
      ;;
    *)
      echo "test_anywhere: unknown condition '$1'; expected one of: $($0 --list)" >&2
      return 1
      ;;
  esac
}

failed=
for condition in $conditions; do
  begun=$(date +%s)
  if run_condition "$condition"; then outcome=passed; else
    outcome=FAILED
    failed=1
    grep -E '^[[:space:]]+[0-9]+ - .*\((Failed|Timeout|SEGFAULT|Not Run)' "$build/anywhere-$condition.log"
  fi
  echo "test_anywhere: $condition: $outcome in $(($(date +%s) - begun)) s"
done
[ -z "$failed" ]
