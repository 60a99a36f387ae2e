#!/bin/sh
# Runs clang-format over every source file and clang-tidy over src/ and python/native/ (or over the given files). Files that
# are not built, such as the extension without a virtual environment for it, are not checked.
#
#   scripts/lint.sh BUILD_DIR [--changed | FILE...]      BUILD_DIR has compile_commands.json
#   scripts/lint.sh --format                             clang-format only
#
# --changed: clang-tidy over the files changed since the branch left origin/main, or in the last 20 commits if there is no such branch.
#
# Exits non-zero if either has findings.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift

sources=$(git ls-files '*.cpp' '*.hpp' '*.h' '*.c')
status=0
unformatted=$(echo "$sources" | xargs -P "$(nproc)" -n 48 clang-format --dry-run -Werror 2>&1 |
  sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u)
if [ -n "$unformatted" ]; then
  echo "lint: not as clang-format ($(clang-format --version | grep -o 'version [0-9.]*')) writes them:"
  printf '  %s\n' $unformatted
  echo "lint: 'make format' rewrites them"
  status=1
fi
if [ "$build" = --format ]; then
  [ $status = 0 ] && echo "lint: $(echo "$sources" | wc -l) files formatted"
  exit $status
fi

# Compiler flags that clang does not know (GCC's own warnings) do not count as findings.
if [ "${1:-}" = --changed ]; then
  changed=$(scripts/changed.sh --or-recent src python/native) || exit 1
  # A header is checked through the file with the same name, or, without one, through a file that includes it.
  set -- $(echo "$changed" | while read -r file; do
    [ -f "$file" ] || continue
    case $file in
      *.cpp) echo "$file" ;;
      *.hpp)
        if [ -f "${file%.hpp}.cpp" ]; then
          echo "${file%.hpp}.cpp"
        else
          grep -rl --include='*.cpp' -F "\"${file#src/}\"" src python/native | head -n 1
        fi
        ;;
    esac
  done | sort -u)
  if [ $# = 0 ]; then
    [ $status = 0 ] && echo "lint: $(echo "$sources" | wc -l) files formatted, none changed"
    exit $status
  fi
fi
[ $# -gt 0 ] || set -- $(find src python/native -name '*.cpp' | sort)
# clang refuses GCC's precompiled header if it lies next to the header's text, so it reads a copy of the text.
commands=$build/lint
mkdir -p "$commands"
sed 's/cmake_pch\.hxx/lint_pch.hxx/g' "$build/compile_commands.json" >"$commands/compile_commands.json"
find "$build" -name cmake_pch.hxx | while read -r header; do cp "$header" "${header%cmake_pch.hxx}lint_pch.hxx"; done
known=
for file in "$@"; do
  if grep -q "\"$PWD/$file\"" "$build/compile_commands.json"; then known="$known $file"; fi
done
printf '%s\n' $known | BUILD=$commands xargs -P "$(nproc)" -n 1 sh -c '
  said=$(clang-tidy --quiet -p "$BUILD" --extra-arg=-Wno-unknown-warning-option "$1" 2>&1)
  status=$?
  printf "%s\n" "$said" | grep -v -e " warnings\{0,1\} generated" -e "^$"
  exit $status' tidy || status=1
[ $status = 0 ] && echo "lint: $(echo "$sources" | wc -l) files formatted, $(echo $known | wc -w) files tidy"
exit $status
