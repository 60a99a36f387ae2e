# Completion for bash: copy to /usr/share/bash-completion/completions/vramtrack, or source it.
# Generated from what the commands declare (src/cli); do not edit.
_vramtrack() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "watch agent top replay analyze report fleet actuate simulate snapshot check run control attach trace oom explain test mark silence holders wait reclaim policy fit programs doctor config --help --version" -- "$cur")
    return
  fi
  case $command in
    fleet)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "scan watch exporters --help" -- "$cur")
        return
      fi
      command="fleet ${COMP_WORDS[2]}"
      ;;
    snapshot)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "summary leaks timeline oom flamegraph page export --help" -- "$cur")
        return
      fi
      command="snapshot ${COMP_WORDS[2]}"
      ;;
    trace)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "live report top diff flamegraph page export --help" -- "$cur")
        return
      fi
      command="trace ${COMP_WORDS[2]}"
      ;;
    oom)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "show --help" -- "$cur")
        return
      fi
      command="oom ${COMP_WORDS[2]}"
      ;;
    silence)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "add list end --help" -- "$cur")
        return
      fi
      command="silence ${COMP_WORDS[2]}"
      ;;
    policy)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "check explain test --help" -- "$cur")
        return
      fi
      command="policy ${COMP_WORDS[2]}"
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
    *' --agents' | *' --batch' | *' --by' | *' --cache' | *' --capacity' | *' --checkpoint-every' | *' --command' | *' --comment' | *' --container' | *' --context' | *' --device' | *' --duration' | *' --error-rate' | *' --every' | *' --for' | *' --forget' | *' --free' | *' --gpu' | *' --header' | 'fleet watch --history' | *' --in' | *' --interval' | *' --job' | *' --junit-inconclusive' | *' --kubernetes' | *' --last-checkpoint' | *' --lead-time' | *' --library' | *' --limit' | *' --line-pattern' | *' --listen' | *' --mark' | *' --memory' | *' --node' | *' --only' | *' --own' | *' --pid' | *' --port' | *' --reason' | *' --seed' | *' --service-account' | *' --set' | *' --shard' | *' --shards' | *' --since' | *' --soft-limit' | *' --speed' | *' --start' | *' --state' | *' --step' | *' --tenant' | *' --threads' | *' --timeout' | *' --timezone' | *' --top' | *' --train' | *' --until' | *' --url' | *' --used' | *' --user' | *' --utilization' | *' --watch' | *' --weights' | *' --within' | *' -n') return ;;
    *' --unit') mapfile -t COMPREPLY < <(compgen -W "B KiB MiB GiB MB GB megabytes gigabytes" -- "$cur"); return ;;
    *' --fail-on') mapfile -t COMPREPLY < <(compgen -W "critical warning" -- "$cur"); return ;;
    *' --theme') mapfile -t COMPREPLY < <(compgen -W "dark light colour-blind monochrome" -- "$cur"); return ;;
    *' --detector') mapfile -t COMPREPLY < <(compgen -W "judge linear_trend spike composite" -- "$cur"); return ;;
    *' --source') mapfile -t COMPREPLY < <(compgen -W "nvml drm nvml,drm" -- "$cur"); return ;;
    'snapshot export --format' | 'trace export --format') mapfile -t COMPREPLY < <(compgen -W "pprof speedscope folded chrome csv" -- "$cur"); return ;;
    *' --read-by') mapfile -t COMPREPLY < <(compgen -W "remote-read export query-range" -- "$cur"); return ;;
    *' --input-format') mapfile -t COMPREPLY < <(compgen -W "table smi-q pmon dmon tegrastats gpustat compute-apps query-gpu csv rocm-smi amd-smi npu-smi nvtop dcgmi-dmon prometheus prometheus-range scalars mlflow gpustat-text text spaced influx smi-xml long-csv" -- "$cur"); return ;;
    'doctor --format') mapfile -t COMPREPLY < <(compgen -W "text json npd" -- "$cur"); return ;;
    'watch --format' | 'replay --format' | 'analyze --format' | 'fleet scan --format' | 'actuate --format' | 'simulate --format' | 'snapshot summary --format' | 'snapshot leaks --format' | 'snapshot timeline --format' | 'snapshot oom --format' | 'check --format' | 'trace report --format' | 'trace diff --format' | 'oom show --format' | 'explain --format' | 'silence add --format' | 'silence list --format' | 'holders --format' | 'wait --format' | 'policy test --format' | 'fit --format' | 'programs --format') mapfile -t COMPREPLY < <(compgen -W "text json" -- "$cur"); return ;;
    'report --format') mapfile -t COMPREPLY < <(compgen -W "text md json html" -- "$cur"); return ;;
    *' --basic-auth-file' | *' --bearer-token-file' | *' --beside' | *' --ca-file' | *' --config' | *' --csv' | *' --exporters' | 'analyze --history' | *' --junit' | *' --kernel-log' | *' --output' | *' --policy' | *' --probe' | *' --process-csv' | *' --replay' | *' --store' | *' --suppressions' | *' --tls-certificate' | *' --tls-key' | *' --token-file' | *' --trace' | *' -o') mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    *' --scenario') mapfile -t COMPREPLY < <(compgen -f -W "leaking_training healthy_training staircase cyclic_leak warm_up serving_burst churn gpu_lost unseen_leak" -- "$cur"); return ;;
  esac
  case "$command $cur" in
    'watch -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json --once --interval -n --duration --every --no-record --no-experience --telemetry --source --or-simulate --detector --lead-time --config --set --help" -- "$cur") ;;
    'agent -'*) mapfile -t COMPREPLY < <(compgen -W "--listen --port --interval -n --no-record --no-experience --telemetry --source --or-simulate --scenario --speed --seed --detector --lead-time --config --set --help" -- "$cur") ;;
    'top -'*) mapfile -t COMPREPLY < <(compgen -W "--once --interval -n --no-record --source --replay --since --until --scenario --or-simulate --speed --input-format --timezone --capacity --start --unit --line-pattern --theme --no-agent --read-only --user --pid --gpu --no-mouse --detector --lead-time --config --set --help" -- "$cur") ;;
    'replay -'*) mapfile -t COMPREPLY < <(compgen -W "--since --until --speed --every --format --json --explain --input-format --timezone --capacity --start --unit --line-pattern --interval --detector --lead-time --config --set -o --output --help" -- "$cur") ;;
    'replay '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'analyze -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json --explain --history --gpu --since --until --detector --lead-time --input-format --timezone --capacity --start --unit --line-pattern --interval --config --set -o --output --help" -- "$cur") ;;
    'analyze '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'report -'*) mapfile -t COMPREPLY < <(compgen -W "--since --until --gpu --format --json -o --output --checkpoint-every --last-checkpoint --input-format --timezone --capacity --start --unit --line-pattern --interval --detector --lead-time --config --set --help" -- "$cur") ;;
    'report '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'fleet scan -'*) mapfile -t COMPREPLY < <(compgen -W "--since --until --format --json --limit --url --tenant --only --shard --exporters --read-by --step --header --bearer-token-file --basic-auth-file --ca-file --threads --detector --config --set --help" -- "$cur") ;;
    'fleet watch -'*) mapfile -t COMPREPLY < <(compgen -W "--every --history --listen --token-file --tls-certificate --tls-key --url --tenant --only --shard --exporters --read-by --step --header --bearer-token-file --basic-auth-file --ca-file --threads --detector --config --set --help" -- "$cur") ;;
    'fleet exporters -'*) mapfile -t COMPREPLY < <(compgen -W "--help" -- "$cur") ;;
    'actuate -'*) mapfile -t COMPREPLY < <(compgen -W "--policy --listen --agents --node --state --kubernetes --service-account --url --exporters --header --bearer-token-file --ca-file --enforce --by --reason --format --json --set --help" -- "$cur") ;;
    'actuate '*) mapfile -t COMPREPLY < <(compgen -W "status reset" -- "$cur") ;;
    'simulate -'*) mapfile -t COMPREPLY < <(compgen -W "--list --speed --within --seed --csv --process-csv --notify --format --json --explain --detector --lead-time --config --set --help" -- "$cur") ;;
    'simulate '*) mapfile -t COMPREPLY < <(compgen -f -W "leaking_training healthy_training staircase cyclic_leak warm_up serving_burst churn gpu_lost unseen_leak" -- "$cur") ;;
    'snapshot summary -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --format --json --top --help" -- "$cur") ;;
    'snapshot summary '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot leaks -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --format --json --top --used --help" -- "$cur") ;;
    'snapshot leaks '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot timeline -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --format --json --top --help" -- "$cur") ;;
    'snapshot timeline '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot oom -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --format --json --top --capacity --help" -- "$cur") ;;
    'snapshot oom '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot flamegraph -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --peak --help" -- "$cur") ;;
    'snapshot flamegraph '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot page -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --help" -- "$cur") ;;
    'snapshot page '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'snapshot export -'*) mapfile -t COMPREPLY < <(compgen -W "--host --device -o --output --format --peak --help" -- "$cur") ;;
    'snapshot export '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'check -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json -o --output --help" -- "$cur") ;;
    'check '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'run -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --watch --limit --soft-limit --fail-on-leak --exact --no-kept --quiet --probe --source --config --set --help" -- "$cur") ;;
    'run '*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
    'control -'*) mapfile -t COMPREPLY < <(compgen -W "--limit --soft-limit --mark --kept --help" -- "$cur") ;;
    'control '*)  ;;
    'attach -'*) mapfile -t COMPREPLY < <(compgen -W "--duration -o --output --kept --inject --help" -- "$cur") ;;
    'attach '*)  ;;
    'trace live -'*) mapfile -t COMPREPLY < <(compgen -W "--pid --container --job --user --all --nvidia-ioctls --duration -o --output --top --library --own --help" -- "$cur") ;;
    'trace report -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --format --json --top --suppressions --help" -- "$cur") ;;
    'trace report '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'trace top -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --top --suppressions --help" -- "$cur") ;;
    'trace top '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'trace diff -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --format --json --top --host --since --until --help" -- "$cur") ;;
    'trace diff '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'trace flamegraph -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --host --since --until --beside --help" -- "$cur") ;;
    'trace flamegraph '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'trace page -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --host --help" -- "$cur") ;;
    'trace page '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'trace export -'*) mapfile -t COMPREPLY < <(compgen -W "-o --output --library --own --host --since --until --format --help" -- "$cur") ;;
    'trace export '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'oom show -'*) mapfile -t COMPREPLY < <(compgen -W "--top --format --json -o --output --help" -- "$cur") ;;
    'oom show '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'explain -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json -o --output --help" -- "$cur") ;;
    'explain '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'test -'*) mapfile -t COMPREPLY < <(compgen -W "--limit --error-rate --mark --interval --junit --junit-inconclusive --config --set --help" -- "$cur") ;;
    'test '*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
    'mark -'*) mapfile -t COMPREPLY < <(compgen -W "--pid --config --set --help" -- "$cur") ;;
    'mark '*)  ;;
    'silence add -'*) mapfile -t COMPREPLY < <(compgen -W "--gpu --command --user --pid --all --for --in --comment --by --format --json --config --set --help" -- "$cur") ;;
    'silence list -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json --config --set --help" -- "$cur") ;;
    'silence end -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'silence end '*)  ;;
    'holders -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json --gpu --source --config --set -o --output --help" -- "$cur") ;;
    'wait -'*) mapfile -t COMPREPLY < <(compgen -W "--gpu --free --empty --pid --gone --user --container --timeout --interval -n --format --json --source --config --set --help" -- "$cur") ;;
    'reclaim -'*) mapfile -t COMPREPLY < <(compgen -W "--yes --dry-run --watch --user --source --config --set --help" -- "$cur") ;;
    'policy check -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'policy explain -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'policy explain '*)  ;;
    'policy test -'*) mapfile -t COMPREPLY < <(compgen -W "--since --until --format --json --input-format --timezone --capacity --start --unit --line-pattern --interval --detector --lead-time --config --set --help" -- "$cur") ;;
    'policy test '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'fit -'*) mapfile -t COMPREPLY < <(compgen -W "--gpu --memory --context --batch --shards --cache --weights --train --utilization --trace --store --format --json --source --config --set --help" -- "$cur") ;;
    'fit '*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    'programs -'*) mapfile -t COMPREPLY < <(compgen -W "--format --json --trace --store --forget --source --config --set --help" -- "$cur") ;;
    'programs '*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
    'doctor -'*) mapfile -t COMPREPLY < <(compgen -W "--health --format --json --fail-on --kernel-log --no-kernel-log --since --until --expect-empty --gpu --config --set --help" -- "$cur") ;;
    'config show -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'config path -'*) mapfile -t COMPREPLY < <(compgen -W "--config --set --help" -- "$cur") ;;
    'config init -'*) mapfile -t COMPREPLY < <(compgen -W "--force --config --set --help" -- "$cur") ;;
  esac
}
complete -o filenames -F _vramtrack vramtrack
