#!/bin/sh
# Builds and reports one line per module: when it was finished, and how many files it has. Shows all of the compiler's output.
#
#   scripts/compile.sh BUILD_DIR [ARGUMENT...]      the arguments of `cmake --build`
#
# VERBOSE=1 shows every command instead.
set -u
build=$1
shift
if [ -n "${VERBOSE:-}" ]; then exec cmake --build "$build" "$@" --verbose; fi
unset VERBOSE # CMake takes an empty value for yes

begun=$(date +%s)
compiled=
built=
result=$build/.compile-result
{
  cmake --build "$build" "$@" 2>&1
  echo $? >"$result"
} | while IFS= read -r line; do
  case $line in
    "["[0-9]*"] Building C"*" object "*)
      target=${line##*CMakeFiles/}
      target=${target%%.dir/*}
      target=${target%_objects}
      target=${target%_main_job}
      compiled="$compiled ${target%_per_sample}"
      ;;
    "["[0-9]*"] Linking "*)
      name=$(basename "${line##* }")
      name=${name%.a}
      name=${name#lib}
      name=${name%_main_job}
      files=0
      for target in $compiled; do [ "$target" != "$name" ] || files=$((files + 1)); done
      case $files in
        0) files= ;;
        1) files="1 file" ;;
        *) files="$files files" ;;
      esac
      printf '%5d s  %-16s %s\n' $(($(date +%s) - begun)) "${name#vramtrack_}" "$files"
      built=1
      ;;
    "["[0-9]*"] Building the "*) printf '%5d s  %s\n' $(($(date +%s) - begun)) "${line#*] Building }" ;;
    "["[0-9]*"] Generating "* | "["[0-9]*"] Re-"* | "["[0-9]*"] Creating "* | "["[0-9]*"] Automatic "* | "-- "* | \
      "ninja: no work to do."*) ;;
    *) printf '%s\n' "$line" ;;
  esac
done
status=$(cat "$result")
rm -f "$result"
exit "$status"
