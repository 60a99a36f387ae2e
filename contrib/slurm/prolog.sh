#!/bin/sh
# Slurm's Prolog: a job does not start on GPUs whose memory is in use. Exit status 1 drains the node and requeues the job.
# Settings, in /etc/default/vramtrack-slurm:
#   LEFT_OVER_MIB=1024   what an idle GPU may have in use
#   SMI=nvidia-smi       the program that is asked
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin}
export PATH
LEFT_OVER_MIB=1024 SMI=nvidia-smi
# shellcheck source=/dev/null
[ -r "${VRAMTRACK_SLURM_SETTINGS:=/etc/default/vramtrack-slurm}" ] && . "$VRAMTRACK_SLURM_SETTINGS"

[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
found=$("$SMI" -i "$SLURM_JOB_GPUS" --query-gpu=index,memory.used --format=csv,noheader,nounits 2>/dev/null |
  awk -F', *' -v limit="$LEFT_OVER_MIB" '$2 + 0 > limit { print $1, $2; exit }')
[ -n "$found" ] || exit 0
echo "vramtrack prolog: ${found#* } MiB in use on GPU ${found% *} before job ${SLURM_JOB_ID:-?}" >&2
exit 1
