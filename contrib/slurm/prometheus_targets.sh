#!/bin/sh
# Writes the nodes that Slurm knows as a file for Prometheus' file_sd_configs. Run it by a timer, for example each minute:
#
#   prometheus_targets.sh [--all-nodes] [--port PORT] [--cluster NAME] FILE
#
# A node is a target when it has GPUs (a GRES named gpu), with --all-nodes always. Each target has the labels Hostname (the name of
# its machine, which the agent writes into its metrics), slurm_node and, with --cluster, cluster. The state of a node is no
# label: it changes, and each change would make new series. FILE stays as it is when Slurm does not answer, so that no target is
# lost, and is replaced at once when something has changed. Exit: 0 FILE is right, 1 it could not be written, 2 wrong usage.
set -eu

usage() {
  echo "usage: prometheus_targets.sh [--all-nodes] [--port PORT] [--cluster NAME] FILE" >&2
  exit 2
}

all=0 port=9474 cluster= file=
while [ $# -gt 0 ]; do
  case $1 in
    --all-nodes) all=1 ;;
    --port) port=${2:?--port needs a number} && shift ;;
    --cluster) cluster=${2:?--cluster needs a name} && shift ;;
    -*) usage ;;
    *) [ -z "$file" ] && file=$1 || usage ;;
  esac
  shift
done
[ -n "$file" ] || usage
case $port in *[!0-9]* | '') echo "prometheus_targets: --port $port is not a number" >&2 && exit 2 ;; esac
case $cluster in *[!A-Za-z0-9_.-]*) echo "prometheus_targets: --cluster may have letters, digits, '_', '.' and '-' only" >&2 && exit 2 ;; esac

# One line per node and partition: name, address, name of its machine, GRES. Nodes that the cloud has not started have no agent.
if ! nodes=$(sinfo -h -N -o '%N|%o|%n|%G|%T'); then
  echo "prometheus_targets: sinfo failed; $file stays as it is. Check SLURM_CONF and 'scontrol ping'" >&2
  exit 1
fi

new=$(mktemp "$file.XXXXXX")
trap 'rm -f "$new"' EXIT
printf '%s\n' "$nodes" | sort -u | awk -F'|' -v all="$all" -v port="$port" -v cluster="$cluster" '
  BEGIN { printf "[" }
  # Names go into JSON without escapes.
  $1 !~ /^[A-Za-z0-9_.-]+$/ || $2 !~ /^[A-Za-z0-9_.:-]+$/ || $3 !~ /^[A-Za-z0-9_.-]+$/ { next }
  !all && $4 !~ /(^|,)gpu(:|$)/ { next }
  $5 ~ /^(power(ed|ing)_down|future)/ || $5 ~ /~$/ { next }
  seen[$1]++ { next }
  {
    address = $2 ~ /:/ ? "[" $2 "]" : $2
    printf "%s\n  {\"targets\": [\"%s:%s\"], \"labels\": {\"Hostname\": \"%s\", \"slurm_node\": \"%s\"", count++ ? "," : "", address, port, $3, $1
    if (cluster != "") printf ", \"cluster\": \"%s\"", cluster
    printf "}}"
  }
  END { print count ? "\n]" : "]" }' >"$new"
chmod 0644 "$new"
cmp -s "$new" "$file" || mv "$new" "$file"
