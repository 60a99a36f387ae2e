# Completion for bash: copy to /usr/share/bash-completion/completions/vramtrack, or source it.
# Written from what the commands declare (src/cli); do not edit.
_vramtrack() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "watch agent top replay analyze report simulate snapshot test doctor config --help --version" -- "$cur")
    return
  fi
  case $command in
    snapshot)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "summary leaks timeline oom flamegraph export --help" -- "$cur")
        return
      fi
      command="snapshot ${COMP_WORDS[2]}"
      ;;
    config)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "show path init --help" -- "$cur")
        return
      fi
      command="config ${COMP_WORDS[2]}"
      ;;
  esac
  case "$command $prev" in
    *' --capacity' | *' --checkpoint-every' | *' --device' | *' --duration' | *' --error-rate' | *' --every' | *' --from' | *' --gpu' | *' --interval' | *' --last-checkpoint' | *' --limit' | *' --line-pattern' | *' --listen' | *' --mark' | *' --seed' | *' --set' | *' --since' | *' --speed' | *' --start' | *' --timezone' | *' --to' | *' --top' | *' --until' | *' --used' | *' --within') return ;;
    *' --unit') mapfile -t COMPREPLY < <(compgen -W "B KiB MiB GiB MB GB" -- "$cur"); return ;;
    *' --theme') mapfile -t COMPREPLY < <(compgen -W "dark light colour-blind monochrome" -- "$cur"); return ;;
    *' --detector') mapfile -t COMPREPLY < <(compgen -W "judge linear_trend spike composite" -- "$cur"); return ;;
    *' --source') mapfile -t COMPREPLY < <(compgen -W "nvml drm nvml,drm" -- "$cur"); return ;;
    'snapshot export --format') mapfile -t COMPREPLY < <(compgen -W "pprof speedscope folded chrome csv" -- "$cur"); return ;;
    *' --input-format') mapfile -t COMPREPLY < <(compgen -W "table pmon dmon tegrastats gpustat compute-apps query-gpu csv rocm-smi amd-smi npu-smi dcgmi-dmon prometheus prometheus-range scalars mlflow gpustat-text text spaced" -- "$cur"); return ;;
    'analyze --format') mapfile -t COMPREPLY < <(compgen -W "text json" -- "$cur"); return ;;
    'report --format') mapfile -t COMPREPLY < <(compgen -W "text md json html" -- "$cur"); return ;;
    *' --config' | *' --csv' | *' --junit' | *' --output' | *' --process-csv' | *' --replay') mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    *' --scenario') mapfile -t COMPREPLY < <(compgen -f -W "leaking_training healthy_training staircase cyclic_leak warm_up serving_burst churn gpu_lost unseen_leak" -- "$cur"); return ;;
  esac
  case "$command $cur" in
    'watch -'*) mapfile -t COMPREPLY < <(compgen -W "--json --once --interval --duration --every --no-record --source --or-simulate --detector --config --set --help" -- "$cur") ;;
    'agent -'*) mapfile -t COMPREPLY < <(compgen -W "--listen --interval --no-record --source --or-simulate --scenario --speed --seed --detector --config --set --help" -- "$cur") ;;
    'top -'*) mapfile -t COMPREPLY < <(compgen -W "--interval --no-record --source --replay --from --to --scenario --or-simulate --speed --timezone --capacity --theme --no-agent --read-only --detector --config --set --help" -- "$cur") ;;
    'replay -'*) mapfile -t COMPREPLY < <(compgen -W "--from --to --speed --every --json --explain --input-format --timezone --capacity --start --interval --unit --line-pattern --detector --config --set --help" -- "$cur") ;;
    'replay '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'analyze -'*) mapfile -t COMPREPLY < <(compgen -W "--format --explain --detector --input-format --timezone --capacity --start --interval --unit --line-pattern --config --set --help" -- "$cur") ;;
    'analyze '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'report -'*) mapfile -t COMPREPLY < <(compgen -W "--since --until --gpu --format --output --checkpoint-every --last-checkpoint --input-format --timezone --capacity --start --interval --unit --line-pattern --detector --config --set --help" -- "$cur") ;;
    'report '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'simulate -'*) mapfile -t COMPREPLY < <(compgen -W "--list --speed --within --seed --csv --process-csv --notify --json --explain --detector --config --set --help" -- "$cur") ;;
    'simulate '*) mapfile -t COMPREPLY < <(compgen -f -W "leaking_training healthy_training staircase cyclic_leak warm_up serving_burst churn gpu_lost unseen_leak" -- "$cur") ;;
    'snapshot summary -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --json --top --help" -- "$cur") ;;
    'snapshot summary '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot leaks -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --json --top --used --help" -- "$cur") ;;
    'snapshot leaks '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot timeline -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --json --top --help" -- "$cur") ;;
    'snapshot timeline '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot oom -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --json --top --capacity --help" -- "$cur") ;;
    'snapshot oom '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot flamegraph -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --peak --help" -- "$cur") ;;
    'snapshot flamegraph '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot export -'*) mapfile -t COMPREPLY < <(compgen -W "--device --output --format --peak --help" -- "$cur") ;;
    'snapshot export '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'test -'*) mapfile -t COMPREPLY < <(compgen -W "--limit --error-rate --mark --interval --junit --config --set --help" -- "$cur") ;;
    'test '*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
    'doctor -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'config show -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'config path -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'config init -'*) mapfile -t COMPREPLY < <(compgen -W "--force --config --set --help" -- "$cur") ;;
  esac
}
complete -o filenames -F _vramtrack vramtrack
