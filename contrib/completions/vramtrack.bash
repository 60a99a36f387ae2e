# Completion for bash: copy to /usr/share/bash-completion/completions/vramtrack, or source it.
_vramtrack() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options=
  local common="--config --set --help" detect="--detector"
  local logs="--input-format --timezone --capacity --start --interval --unit"
  case $prev in
    --config | --csv | --junit | --output | --process-csv | --replay) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --detector) mapfile -t COMPREPLY < <(compgen -W "judge linear_trend spike composite" -- "$cur"); return ;;
    --theme) mapfile -t COMPREPLY < <(compgen -W "dark light colour-blind monochrome" -- "$cur"); return ;;
    --format) mapfile -t COMPREPLY < <(compgen -W "text md json html pprof speedscope folded chrome csv" -- "$cur"); return ;;
    --source) mapfile -t COMPREPLY < <(compgen -W "nvml drm nvml,drm" -- "$cur"); return ;;
    --unit) mapfile -t COMPREPLY < <(compgen -W "B KiB MiB GiB MB GB" -- "$cur"); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "watch agent top replay analyze report simulate test snapshot doctor config --help --version" -- "$cur")
    return
  fi
  case $command in
    watch) options="--json --once --interval --duration --every --no-record --source --or-simulate $detect" ;;
    agent) options="--listen --interval --no-record --source --or-simulate --scenario --speed --seed $detect" ;;
    top) options="--interval --no-record --source --replay --from --to --scenario --or-simulate --speed --timezone --capacity --theme --read-only --no-agent $detect" ;;
    replay) options="--from --to --speed --every --json --explain $logs $detect" ;;
    analyze) options="--format --explain $detect $logs" ;;
    report) options="--since --until --gpu --format --output --checkpoint-every --last-checkpoint $detect $logs" ;;
    simulate) options="--notify --list --speed --within --seed --csv --process-csv --json --explain $detect" ;;
    test) options="--limit --error-rate --mark --interval --junit" ;;
    snapshot)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "summary leaks timeline oom flamegraph export --help" -- "$cur")
        return
      fi
      common="--help"
      options="--device --output"
      case ${COMP_WORDS[2]} in
        summary | timeline) options="$options --json --top" ;;
        leaks) options="$options --json --top --used" ;;
        oom) options="$options --json --top --capacity" ;;
        flamegraph) options="$options --peak" ;;
        export) options="$options --peak --format" ;;
      esac
      ;;
    doctor) ;;
    config)
      if [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "show path init --help" -- "$cur")
        return
      fi
      [ "${COMP_WORDS[2]}" = init ] && options="--force"
      ;;
    *) return ;;
  esac
  case $cur in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options $common" -- "$cur") ;;
    *)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      [ "$command" = simulate ] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY \
        < <(compgen -W "$(vramtrack simulate --list 2>/dev/null | cut -d' ' -f1)" -- "$cur")
      ;;
  esac
}
complete -o filenames -F _vramtrack vramtrack
