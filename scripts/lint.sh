#!/bin/sh
# clang-format over every source, clang-tidy over src/ and python/native/ (or over the files named). What the build leaves
# out, such as the extension where there is no virtual environment for it, is not looked at.
#
#   scripts/lint.sh BUILD_DIR [FILE...]      BUILD_DIR has compile_commands.json
#
# Exits non-zero when either has something to say.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift

sources=$(find src python/native tests bench fuzz -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' | sort)
status=0
unformatted=$(for file in $sources; do clang-format --dry-run -Werror "$file" 2>/dev/null || echo "$file"; done)
if [ -n "$unformatted" ]; then
  echo "lint: not as clang-format ($(clang-format --version | grep -o 'version [0-9.]*')) writes them:"
  printf '  %s\n' $unformatted
  echo "lint: 'make format' rewrites them"
  status=1
fi

# What the compiler is told that clang does not know (GCC's own warnings) is no finding.
[ $# -gt 0 ] || set -- $(find src python/native -name '*.cpp' | sort)
known=
for file in "$@"; do
  if grep -q "\"$PWD/$file\"" "$build/compile_commands.json"; then known="$known $file"; fi
done
printf '%s\n' $known | BUILD=$build xargs -P "$(nproc)" -n 1 sh -c '
  said=$(clang-tidy --quiet -p "$BUILD" --extra-arg=-Wno-unknown-warning-option "$1" 2>&1)
  status=$?
  printf "%s\n" "$said" | grep -v -e " warnings\{0,1\} generated" -e "^$"
  exit $status' tidy || status=1
[ $status = 0 ] && echo "lint: $(echo "$sources" | wc -l) files formatted, $(echo $known | wc -w) files tidy"
exit $status
