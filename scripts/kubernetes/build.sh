#!/bin/sh
# Builds kube-apiserver and kube-controller-manager from Debian's source package `kubernetes`, and unpacks Debian's etcd and
# kubectl, all below build/kubernetes: nothing is installed, no daemon is started, and apt's own sources are not changed.
#
#   scripts/kubernetes/build.sh [FOLDER]       (default: build/kubernetes; 0.8 GB, 5 minutes on two cores)
#
# It needs Debian 12, the network once, and Go. Debian's Go 1.19 is preferred: Kubernetes 1.20 was written for Go 1.15, and
# Debian builds its kubectl of the same sources with 1.19. What is already built is kept.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "${1:-build/kubernetes}"
folder=$(cd "${1:-build/kubernetes}" && pwd)
bin=$folder/bin
programs="kube-apiserver kube-controller-manager"

[ -x "$bin/kube-apiserver" ] && [ -x "$bin/kube-controller-manager" ] && [ -x "$bin/etcd" ] && [ -x "$bin/kubectl" ] && exit 0

say() { echo "kubernetes: $*"; }
fail() {
  echo "kubernetes: $*" >&2
  exit 1
}

for tool in apt-get dpkg-deb dpkg-source make; do
  command -v $tool >/dev/null || fail "$tool is missing; this needs Debian 12 with the packages dpkg-dev and make"
done
if [ -x /usr/lib/go-1.19/bin/go ]; then
  PATH=/usr/lib/go-1.19/bin:$PATH
elif ! command -v go >/dev/null; then
  fail "Go is missing; install Debian's package golang-1.19-go"
fi
export PATH
unset GOROOT
export GOTOOLCHAIN=local GOFLAGS=

# The package sources of this machine serve, with their deb lines read as deb-src lines, too.
rm -rf "$folder/apt"
mkdir -p "$folder/apt/parts" "$folder/apt/lists/partial" "$folder/packages" "$bin"
for file in /etc/apt/sources.list.d/*.sources; do
  if [ -r "$file" ]; then sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$folder/apt/parts/$(basename "$file")"; fi
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  if [ -r "$file" ]; then sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' "$file" >>"$folder/apt/parts/binary.list"; fi
done
apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/apt/parts" -o Dir::State::Lists="$folder/apt/lists" \
    -o APT::Sandbox::User="$(id -un)" "$@" </dev/null >>"$folder/apt/log" 2>&1
}

cd "$folder/packages"
if [ ! -d "$folder/source" ] || [ ! -x "$bin/etcd" ] || [ ! -x "$bin/kubectl" ]; then
  say "getting Debian's packages"
  apt update || true # one source that has no packages in source form does not stop the others
fi
if [ ! -x "$bin/etcd" ] || [ ! -x "$bin/kubectl" ]; then
  apt download etcd-server kubernetes-client || fail "apt has no etcd-server or kubernetes-client; see $folder/apt/log"
  for package in etcd-server_*.deb kubernetes-client_*.deb; do dpkg-deb -x "$package" "$folder/unpacked"; done
  cp "$folder/unpacked/usr/bin/etcd" "$folder/unpacked/usr/bin/kubectl" "$bin/"
fi
if [ ! -d "$folder/source" ]; then
  apt source --download-only kubernetes || fail "apt has no source package kubernetes; see $folder/apt/log"
  rm -rf "$folder/source.new"
  dpkg-source --no-copy -x kubernetes_*.dsc "$folder/source.new" >"$folder/unpack.log" 2>&1 || fail "see $folder/unpack.log"
  mv "$folder/source.new" "$folder/source"
fi

# The version is that of the archive. Without the file, Kubernetes' scripts would take the commit of this repository.
cd "$folder/source"
version=$(sed -n '1s/.*really\([0-9.]*\)-.*/\1/p' debian/changelog)
[ -n "$version" ] || fail "apt's source package is $(dpkg-parsechangelog -S Version); expected 1.20 of Debian 12"
cat >version.sh <<EOF
KUBE_GIT_COMMIT=$(sed -n "s/^ *KUBE_GIT_COMMIT='\([0-9a-f]*\)'/\1/p" hack/lib/version.sh)
KUBE_GIT_TREE_STATE=archive
KUBE_GIT_VERSION=v$version
KUBE_GIT_MAJOR=${version%%.*}
KUBE_GIT_MINOR=$(echo "$version" | cut -d. -f2)
EOF
sed -i 's/rsync -pc {}/cp -p {}/' hack/lib/golang.sh # so that rsync need not be installed to copy one file
say "building $programs $version with $(go version | cut -d' ' -f3); the log is $folder/build.log"
export KUBE_GIT_VERSION_FILE="$PWD/version.sh" CGO_ENABLED=0 GOMAXPROCS="${JOBS:-$(nproc)}" HOME="$folder"
rm -rf _output/bin _output/local/bin # what a build that failed has left; compiled packages are kept
# The OpenAPI definitions are the only generated files that the archive lacks.
if ! { nice -n 10 make gen_openapi && nice -n 10 hack/make-rules/build.sh $(printf 'cmd/%s ' $programs); } >"$folder/build.log" 2>&1; then
  tail -n 20 "$folder/build.log" >&2
  fail "the build has failed; see $folder/build.log"
fi
for program in $programs; do cp "_output/bin/$program" "$bin/"; done
rm -rf _output
"$bin/kube-apiserver" --version
