#!/bin/sh
# Slurm's Epilog: are the job's GPUs empty again, and fit for work? If not, the node is drained with the reason.
#
# Runs as root on every node of the job, after its processes have ended. Never fails: a failing Epilog drains the node
# with a reason that says nothing. What could not be checked drains nothing. A node that is already drained keeps its
# reason. Settings, in /etc/default/vramtrack-slurm:
#   HEALTH="vramtrack doctor --health"   what is asked, as in health.sh
#   WAIT_S=30                            this long the driver may take to free the memory
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin}
export PATH
HEALTH="vramtrack doctor --health" WAIT_S=30
# shellcheck source=/dev/null
[ -r "${VRAMTRACK_SLURM_SETTINGS:=/etc/default/vramtrack-slurm}" ] && . "$VRAMTRACK_SLURM_SETTINGS"

gpus=${SLURM_JOB_GPUS:-}
[ -n "$gpus" ] || exit 0 # the job had none, or shares them with others
node=${SLURMD_NODENAME:-$(hostname -s)}

# shellcheck disable=SC2086  # words of a command
check() { $HEALTH --expect-empty --gpu "$gpus" --format npd 2>/dev/null; }

end=$(($(date +%s) + WAIT_S))
said=$(check)
while [ "$said" != "${said#unhealthy: }" ] && [ "$(date +%s)" -lt "$end" ]; do
  sleep 1
  said=$(check)
done
[ "$said" != "${said#unhealthy: }" ] || exit 0
state=$(scontrol show node "$node" --oneliner 2>/dev/null)
state=${state#* State=}
case ${state%% *} in *DRAIN*) exit 0 ;; esac
scontrol update NodeName="$node" State=DRAIN \
  Reason="vramtrack epilog: after job ${SLURM_JOB_ID:-?}: ${said#unhealthy: }" ||
  logger -t vramtrack "epilog: node $node could not be drained: $said"
exit 0
