#!/bin/sh
# Builds kube-apiserver and kube-controller-manager of a later release than Debian's from its Go modules, into
# build/kubernetes-VERSION/bin beside the etcd and kubectl that build.sh has unpacked.
#
#   scripts/kubernetes/build_release.sh VERSION      such as 1.37.2; 8 minutes on two cores, 4.4 GB meanwhile
#
# It needs the Go module proxy once, and a Go as new as the release asks for: 1.37 wants Go 1.26.
set -eu
cd "$(dirname "$0")/../.."
version=${1:?"which release? For example: scripts/kubernetes/build_release.sh 1.37.2"}
case $version in *[!0-9.]* | '') echo "kubernetes: '$version' is no release; expected one like 1.37.2" >&2; exit 2 ;; esac
mkdir -p "build/kubernetes-$version/bin"
folder=$(cd "build/kubernetes-$version" && pwd)
bin=$folder/bin

fail() {
  echo "kubernetes: $*" >&2
  exit 1
}
[ -x build/kubernetes/bin/etcd ] || fail "build/kubernetes/bin/etcd is missing; run scripts/kubernetes/build.sh first"
cp build/kubernetes/bin/etcd build/kubernetes/bin/kubectl "$bin/"
[ -x "$bin/kube-apiserver" ] && [ -x "$bin/kube-controller-manager" ] && exit 0
command -v go >/dev/null || fail "Go is missing"

export GOTOOLCHAIN=local GOFLAGS="-mod=mod -modcacherw" GOMODCACHE="$folder/modules" GOCACHE="$folder/cache" CGO_ENABLED=0
unset GOROOT
mkdir -p "$folder/build"
cd "$folder/build"
printf 'module vramtrack/kubernetes\n' >go.mod
go mod download -json "k8s.io/kubernetes@v$version" >download.json || fail "the module k8s.io/kubernetes@v$version cannot be had"
theirs=$(sed -n 's/^.*"GoMod": "\(.*\)".*/\1/p' download.json)
# The parts of Kubernetes that its repository holds side by side: v0.0.0 there, modules of their own here.
{
  printf 'module vramtrack/kubernetes\n\n'
  sed -n 's/^go /go /p' "$theirs"
  printf '\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
  sed -n 's/^[[:space:]]*\(k8s\.io\/[a-z-]*\) v0\.0\.0\( .*\)*$/\1/p' "$theirs" | sort -u |
    while read -r part; do printf '\t%s => %s v0.%s\n' "$part" "$part" "${version#*.}"; done
  printf ')\n'
} >go.mod
package=k8s.io/component-base/version
say="-X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=$(echo "$version" | cut -d. -f2)"
echo "kubernetes: building $version with $(go version | cut -d' ' -f3); the log is $folder/build.log"
nice -n 10 go build -trimpath -ldflags "-s -w $say" -o "$bin/" k8s.io/kubernetes/cmd/kube-apiserver \
  k8s.io/kubernetes/cmd/kube-controller-manager >"$folder/build.log" 2>&1 || {
  tail -n 20 "$folder/build.log" >&2
  fail "the build has failed; see $folder/build.log"
}
rm -rf "$folder/modules" "$folder/cache"
"$bin/kube-apiserver" --version
