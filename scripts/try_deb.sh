#!/bin/sh
# Tests the .deb in a bare Debian: installation, an upgrade from a lower version, removal and purge. After each step it compares the
# users, files, owners, permissions and leftovers with the expected ones, and it starts the agent as the service does.
#
#   scripts/try_deb.sh DEB [SUITE]      SUITE: bookworm
#
# Needs root, mmdebstrap and a mirror; a package for aarch64 is tested on x86-64 after `make aarch64`. The bare Debian is kept in build/roots for
# the next run. All mounts are in a namespace of this script and end with it. systemd does not run inside, so starts and stops of the services are
# tested with a systemctl that records what it is asked to do.
set -eu
cd "$(dirname "$0")/.."
deb=$1
suite=${2:-bookworm}
roots=$PWD/build/roots
root=$roots/try-deb

if [ "${TRY_DEB_NAMESPACE:-}" = "" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "try_deb: needs root, for a chroot: run sudo $0 $*" >&2
    exit 1
  fi
  TRY_DEB_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi

failures=0
pass() { printf '  ok      %s\n' "$1"; }
check() { # check WHAT COMMAND...: the command's status is the result
  what=$1
  shift
  if "$@" >/dev/null 2>&1; then pass "$what"; else
    printf '  FAILED  %s\n' "$what"
    failures=$((failures + 1))
  fi
}
equal() { # equal WHAT GOT WANTED
  if [ "$2" = "$3" ]; then pass "$1: $2"; else
    printf '  FAILED  %s: %s, not %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
  HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
owner() { inside stat -c '%U:%G %a' "$1"; }
dpkg_log=$roots/try-deb.log
run() { inside "$@" >>"$dpkg_log" 2>&1; }

# The packages: the one that is built, and copies of it with a lower and a higher version.
mkdir -p "$roots"
packages=$roots/packages
rm -rf "$packages"
mkdir -p "$packages"
version=$(dpkg-deb -f "$deb" Version)
dpkg-deb -R "$deb" "$packages/content"
for of in 0.0.9 "$version" 99.0.0; do
  sed -i "s/^Version: .*/Version: $of/" "$packages/content/DEBIAN/control"
  dpkg-deb -b "$packages/content" "$packages/vramtrack-$of.deb" >/dev/null
done
rm -rf "$packages/content"

# The bare Debian, with the packages that the package depends on.
depends=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//' | tr -d ' ' | sort | paste -sd,)
base=$(scripts/bare.sh make deb "$(dpkg-deb -f "$deb" Architecture)" "$suite" "$depends,init-system-helpers")
scripts/bare.sh unpack "$base" "$root" named_line
: >"$dpkg_log"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/run/systemd/system"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages/"
# As if systemd were running: the maintainer scripts ask for a restart and a stop, which are recorded.
cat >"$root/usr/local/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/packages/asked
END
chmod 755 "$root/usr/local/bin/systemctl"
for name in /usr/bin/systemctl /bin/systemctl; do
  if [ -e "$root$name" ]; then cp "$root/usr/local/bin/systemctl" "$root$name"; fi
done
asked() { grep -c -e "$1" "$root/packages/asked" 2>/dev/null || true; }

# The agent, as started by its unit: its user, its capabilities, its folders.
start_agent() {
  mkdir -p "$root/run/vramtrack"
  inside chown vramtrack:vramtrack /run/vramtrack
  inside install -d -o vramtrack -g vramtrack -m 0750 /var/lib/vramtrack
  rm -f "$root/packages/agent.log"
  inside setpriv --reuid vramtrack --regid vramtrack --init-groups --inh-caps=-all,+sys_ptrace,+dac_read_search \
    --ambient-caps=-all,+sys_ptrace,+dac_read_search --bounding-set=-all,+sys_ptrace,+dac_read_search --no-new-privs \
    env XDG_STATE_HOME=/var/lib XDG_CONFIG_HOME=/etc XDG_RUNTIME_DIR=/run vramtrack agent --scenario leaking_training \
    --set store.path=/var/lib/vramtrack/vramtrack.db --listen 127.0.0.1:0 >"$root/packages/agent.log" 2>&1 &
  agent=$!
  # It prints its address once it listens.
  for _ in $(seq 600); do
    if [ -S "$root/run/vramtrack/agent.sock" ] && [ -s "$root/var/lib/vramtrack/vramtrack.db" ]; then return 0; fi
    if ! kill -0 "$agent" 2>/dev/null; then break; fi
    sleep 0.1
  done
  cat "$root/packages/agent.log" >&2
  return 1
}
stop_agent() {
  kill -TERM "$pid" # the agent's pid; $agent is the shell that started it, and has its status
  wait "$agent"
}

before=$(inside sh -c 'find / -xdev \( -path /proc -o -path /sys -o -path /packages -o -path /run -o -path /tmp \) -prune -o -print | sort')
leftovers() {
  after=$(inside sh -c 'find / -xdev \( -path /proc -o -path /sys -o -path /packages -o -path /run -o -path /tmp \) -prune -o -print | sort')
  printf '%s\n' "$after" >"$roots/after"
  printf '%s\n' "$before" | comm -13 - "$roots/after" | grep -v -E '^/(etc/(passwd-|group-|shadow-|gshadow-|\.pwd\.lock)|var/lib/dpkg/|var/cache/debconf|var/log)' || true
}

echo "installation of 0.0.9"
check "dpkg -i" run dpkg -i /packages/vramtrack-0.0.9.deb
check "its program runs" run vramtrack --version
check "the probe names what a program leaks" run /named_line/named_line.sh run /named_line vramtrack
check "there is a user vramtrack" inside getent passwd vramtrack
check "it has a number of the system's" inside sh -c '[ $(id -u vramtrack) -lt 1000 ]'
check "it cannot log in" inside sh -c 'getent passwd vramtrack | grep -q nologin$'
equal "its groups" "$(inside id -nG vramtrack)" "vramtrack video"
equal "/etc/vramtrack" "$(owner /etc/vramtrack)" "root:root 755"
equal "/etc/vramtrack/config.toml" "$(owner /etc/vramtrack/config.toml)" "root:vramtrack 640"
check "dpkg calls it a configuration file" inside sh -c "dpkg-query -W -f '\${Conffiles}' vramtrack | grep -q /etc/vramtrack/config.toml"
check "the configuration is valid" run vramtrack config show --config /etc/vramtrack/config.toml
check "no service is enabled" inside sh -c '! ls /etc/systemd/system/*.wants/vramtrack* 2>/dev/null | grep .'
equal "services asked to start" "$(asked '^start\|restart')" 0
if command -v systemd-analyze >/dev/null; then
  for unit in vramtrack-agent vramtrack vramtrack-fleet vramtrack-actuate; do
    check "systemd-analyze verify $unit.service" systemd-analyze verify --man=no --root="$root" "/lib/systemd/system/$unit.service"
  done
fi

echo "the agent, as its unit starts it"
if start_agent; then
  pass "it starts"
  equal "its socket's folder" "$(owner /run/vramtrack)" "vramtrack:vramtrack 755"
  equal "its recording's folder" "$(owner /var/lib/vramtrack)" "vramtrack:vramtrack 750"
  equal "its recording" "$(owner /var/lib/vramtrack/vramtrack.db)" "vramtrack:vramtrack 600"
  pid=$(inside sh -c 'for p in /proc/[0-9]*; do [ "$(cat $p/comm 2>/dev/null)" = vramtrack ] && basename $p; done' | head -n 1)
  equal "its user" "$(inside stat -c %U "/proc/$pid")" vramtrack
  equal "its capabilities" "$(inside sed -n 's/^CapEff:\t//p' "/proc/$pid/status")" 0000000000080004
  equal "what a program it starts would get" "$(inside sed -n 's/^CapAmb:\t//p' "/proc/$pid/status")" 0000000000000000
  # The first sample is written some time after the agent starts to listen.
  for _ in $(seq 30); do
    if run vramtrack replay /var/lib/vramtrack/vramtrack.db >/dev/null 2>&1; then break; fi
    sleep 1
  done
  check "root can read its recording" run vramtrack replay /var/lib/vramtrack/vramtrack.db
  check "it ends at SIGTERM" stop_agent
else
  check "it starts" false
fi

echo "upgrade to $version, the configuration changed"
echo '# an administrator was here' >>"$root/etc/vramtrack/config.toml"
inside chmod 0600 /etc/vramtrack/config.toml
chown -R 0:0 "$root/var/lib/vramtrack" # as left by the services that ran as root
sum=$(sha256sum <"$root/var/lib/vramtrack/vramtrack.db")
mkdir -p "$root/etc/systemd/system/multi-user.target.wants" # like systemctl enable
ln -s /lib/systemd/system/vramtrack-agent.service "$root/etc/systemd/system/multi-user.target.wants/"
: >"$root/packages/asked"
check "dpkg -i" run dpkg -i "/packages/vramtrack-$version.deb"
equal "version" "$(inside dpkg-query -W -f '${Version}' vramtrack)" "$version"
check "the configuration is kept" grep -q 'administrator was here' "$root/etc/vramtrack/config.toml"
equal "its permissions too" "$(owner /etc/vramtrack/config.toml)" "root:vramtrack 600"
equal "the recording" "$(sha256sum <"$root/var/lib/vramtrack/vramtrack.db")" "$sum"
equal "it is the service's now" "$(owner /var/lib/vramtrack/vramtrack.db)" "vramtrack:vramtrack 600"
check "a running service is restarted" [ "$(asked 'try-restart.*vramtrack-agent')" -ge 1 ]
check "the service stays enabled" inside test -e /etc/systemd/system/multi-user.target.wants/vramtrack-agent.service
check "an upgrade once more" run dpkg -i /packages/vramtrack-99.0.0.deb

echo "removal"
: >"$root/packages/asked"
check "dpkg --remove" run dpkg --remove vramtrack
check "the services are stopped" [ "$(asked 'stop.*vramtrack-agent')" -ge 1 ]
check "the program is gone" inside sh -c '! test -e /usr/bin/vramtrack'
check "the configuration is kept" inside test -e /etc/vramtrack/config.toml
check "the recording is kept" inside test -e /var/lib/vramtrack/vramtrack.db
check "the user is kept" inside getent passwd vramtrack

echo "purge"
echo token >"$root/etc/vramtrack/token"
check "dpkg --purge" run dpkg --purge vramtrack
check "the configuration is gone" inside sh -c '! test -e /etc/vramtrack'
check "the recording is gone" inside sh -c '! test -e /var/lib/vramtrack'
equal "files left over" "$(leftovers)" ""
check "the user stays, and nothing else" inside getent passwd vramtrack
check "installation after a purge" run dpkg -i "/packages/vramtrack-$version.deb"
check "purge at once" run dpkg --purge vramtrack

if [ $failures != 0 ]; then
  echo "try_deb: $failures checks failed; dpkg's output is $dpkg_log" >&2
  exit 1
fi
echo "try_deb: all passed"
