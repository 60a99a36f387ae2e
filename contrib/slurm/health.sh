#!/bin/sh
# Slurm's HealthCheckProgram: is every GPU of this node fit for work? If not, the node is drained with the reason.
#
# Runs as root on every node, as often as HealthCheckInterval says. Never fails: what could not be checked drains nothing.
# A node that is already drained keeps its reason. Settings, in /etc/default/vramtrack-slurm:
#   HEALTH="vramtrack doctor --health"   what is asked; add --fail-on warning to drain hot nodes, too
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin}
export PATH
HEALTH="vramtrack doctor --health"
# shellcheck source=/dev/null
[ -r "${VRAMTRACK_SLURM_SETTINGS:=/etc/default/vramtrack-slurm}" ] && . "$VRAMTRACK_SLURM_SETTINGS"
node=${SLURMD_NODENAME:-$(hostname -s)}

# shellcheck disable=SC2086  # words of a command
said=$($HEALTH --format npd 2>/dev/null)
[ "$said" != "${said#unhealthy: }" ] || exit 0
state=$(scontrol show node "$node" --oneliner 2>/dev/null)
state=${state#* State=}
case ${state%% *} in *DRAIN*) exit 0 ;; esac
scontrol update NodeName="$node" State=DRAIN Reason="vramtrack health: ${said#unhealthy: }" ||
  logger -t vramtrack "health: node $node could not be drained: $said"
exit 0
