"""Goldens: what every command prints, to standard output and standard error, and how it exits.

    python3 tests/cli/golden.py build/release/vramtrack            compare with tests/golden/cli/*.txt
    python3 tests/cli/golden.py build/release/vramtrack --update   rewrite them; then read the difference

Times of day, folders and versions of this machine are replaced before comparing.
"""
import difflib
import re
import sys

from sandbox import FIXTURES, TESTS, Sandbox, drm_machine, leak_log, no_gpu, smi_log, steady_log

GOLDEN = TESTS / "golden" / "cli"

BROKEN_LOG = leak_log(minutes=20).replace("2026/01/02 03:05:05.000, 0", "garbage").replace("4200 MiB", "[Unknown Error]")
NO_TOTAL = "\n".join(line.rsplit(",", 1)[0] for line in leak_log().splitlines()) + "\n"

FILES = {
    "crash.log": "step 2380 loss 0.66\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of "
                 "23.99 GiB of which 871.00 MiB is free. Including non-PyTorch memory, this process has 23.13 GiB memory in use. Of the "
                 "allocated memory 22.41 GiB is allocated by PyTorch, and 212.50 MiB is reserved by PyTorch but unallocated.\n",
    "mentioned.log": "loading\nTips: if you see CUDA out of memory, lower the batch size.\n",
    "killed.log": "step 2380 loss 0.66\njob 4711: time limit reached\nKilled\n",
    "story.log": "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB. GPU 2 has a total capacity of 79.15 GiB of which "
                 "141.25 MiB is free. Process 2109115 has 78.99 GiB memory in use. Of the allocated memory 77.21 GiB is allocated by PyTorch, and "
                 "283.51 MiB is reserved by PyTorch but unallocated.\n"
                 "[rank5]:[E ProcessGroupNCCL.cpp:563] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15734)\n"
                 "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n",
    "notice.log": "W bfc_allocator.cc:245] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.10GiB with freed_by_count=0. The caller "
                  "indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.\n",
    "summary.log": "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
                   "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
                   "| Allocated memory      |   14520 MiB|   15012 MiB|     812 GiB|     798 GiB|\n"
                   "| GPU reserved memory   |   22108 MiB|   22108 MiB|   22108 MiB|       0 B  |\n",
    "ollama.log": "NAME          ID            SIZE      PROCESSOR          UNTIL\n"
                  "llama3:70b    786f3184aec0  42 GB     48%/52% CPU/GPU    4 minutes from now\n",
    "leak.csv": leak_log(),
    "steady.csv": steady_log(),
    "spike.csv": smi_log(lambda t: None if t > 1200 else 4000 if t < 600 else 9000),
    "broken.csv": BROKEN_LOG,
    "no_total.csv": NO_TOTAL,
    "short.csv": steady_log(minutes=1),
    "kernel.log": """[    3.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build
[ 4564.303884] NVRM: Xid (PCI:0000:65:00): 79, pid=4242, name=python3, GPU has fallen off the bus.
[ 4564.303890] NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)
[ 4600.000000] NVRM: Xid (PCI:0000:1d:00): 31, pid=77, name=train, MMU Fault
""",
    "not_a_log.txt": "lorem ipsum\ndolor sit amet\n",
    "empty.csv": "",
    "no_processes.csv": "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n",
    "none_running.csv": "No running processes found\n",
    "page.html": "<!DOCTYPE html><table></table>",
    "host_ram.log": "".join(f"23:{minute}:00 RAM used {4000 + 50 * minute} MiB\n" for minute in range(10, 40)),
    "unnamed.log": "".join(f"2026-03-01 12:{minute}:00 foo {4000 + 50 * minute} MiB bar 9000 MiB\n" for minute in range(10, 40)),
    "kv_cache.log": "".join(f"INFO 03-01 12:{minute}:00 metrics.py:455] Running: 1 reqs, GPU KV cache usage: {minute / 10}%, CPU KV cache usage: 0.0%.\n"
                            for minute in range(10, 40)),
    "phases.log": "".join(f"step {step} {when} inference: GPU memory {4000 + 50 * step + more} MB\n" for step in range(60)
                          for when, more in (("before", 0), ("after", 500))),
    "rounds.log": "".join(f"gpu mem used {(8000, 3000, 9000, 1000, 5000, 7000)[i % 6]} MiB\n" for i in range(240)),
    "many.log": "".join(f"2026-03-01 12:{minute}:00 gpu memory MiB: {[4000 + minute + k for k in range(40)]}\n" for minute in range(10, 40)),
    "two_words.log": "".join(f"2026-03-01 12:{minute}:00 " + (f"gpu_mem=8000MiB loss 0.{minute}\n" if minute < 30 else f"memory used: {8000 + minute} MiB\n")
                             for minute in range(10, 60)),
    "dots.log": "".join(f"step {i} used {4 + i / 1000:.3f} MB\n" for i in range(60)),
    "percent.csv": "timestamp,index,mem_used_pct\n" + "".join(f"2026-03-01 12:{minute}:00,0,{minute}\n" for minute in range(10, 40)),
    "apps.csv": "timestamp,gpu_index,pid,process_name,used_gpu_memory [MiB]\n"
                + "".join(f"2026-03-01 12:{minute}:00,0,4242,python,{3000 + minute}\n" for minute in range(10, 40)),
    "host_ram.csv": "time,ram_used_mb,loss\n" + "".join(f"2026-03-01 12:{minute}:00,{16000 + minute},0.5\n" for minute in range(10, 40)),
    "host_cpu.csv": "time,mem_used_mb,cpu_percent\n" + "".join(f"2026-03-01 12:{minute}:00,{16000 + minute},0.5\n" for minute in range(10, 40)),
    "cells.csv": "time,host,gpu_mem_mb\n" + "".join(f"2026-03-01 12:{minute}:00,node{minute % 2},{4000 + minute};9000\n" for minute in range(10, 40)),
    "lists.jsonl": "".join(f'{{"time":"2026-03-01 12:{minute}:00","gpu_mem_mb":[{4000 + 50 * minute},9000]}}\n' for minute in range(10, 40)),
    "again.csv": "step,gpu_mem_mb\n" + "".join(f"{i},{4000 + 10 * i}\n" for _ in range(2) for i in range(100)),
    "not_available.csv": "timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB]\n"
                         + "".join(f"2026/01/05 08:{minute}:00.000, 0, GPU-1, NVIDIA GB10, [N/A], [N/A]\n" for minute in range(10, 40)),
    "lost.csv": steady_log() + "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n",
    "room.log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 38.09 GiB "
                "is free. Including non-PyTorch memory, this process has 41.06 GiB memory in use. Of the allocated memory 39.10 GiB is allocated by "
                "PyTorch, and 427.46 MiB is reserved by PyTorch but unallocated.\n",
    "good.toml": "[detection]\nmin-r-squared = 0.8\n\n[severity]\nwarning-hours = 48\n",
    "bad_key.toml": "[detection]\n# a comment\nmin-rsquared = 0.8\n",
    "bad_value.toml": "[detection]\nmin-r-squared = 1.8\n",
    "bad_regex.toml": "[detection]\nignore-patterns = [\"python\", \"(\"]\n",
    "policy.toml": """[act]
enabled = true

[[policy]]
name = "a GPU that leaks"
when.severity = "warning"
when.ends-within = "2h"
steps = [{ do = "notify", text = "have a look" }, { do = "terminate", after = "1min" }, { do = "run", program = ["drain", "{gpu}"] }]
""",
    "bad_policy.toml": """[[policy]]
name = "a"
steps = [
  { do = "terminat" },
]
""",
    "tiny.toml": """name = "tiny"
help = "one process leaks"
seed = 3
period_s = 5
duration_s = "1h"
[[device]]
name = "Test GPU"
capacity_bytes = "8GiB"
baseline_bytes = "300MiB"
[[process]]
name = "leaker"
pid = 4242
command = "python leak.py"
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "300MiB/min"
[truth]
leak = true
pattern = "gradual_leak"
onset_s = 0
suspect_pid = 4242
""",
}

TREND = ["--detector", "linear_trend"]

# name -> arguments, or (arguments, environment)
CASES = {
    "version": ["--version"],
    "no_command": [],
    "unknown_command": ["analyse", "leak.csv"],
    "unknown_command_help": ["foo", "--help"],
    "unknown_verb_help": ["snapshot", "sumary", "--help"],
    "unknown_option": ["watch", "--jsn"],
    "unknown_short_option": ["watch", "-x"],
    "option_twice": ["watch", "--interval", "1s", "--interval", "2s"],
    "option_without_value": ["analyze", "--capacity"],
    "flag_with_value": ["watch", "--json=maybe"],
    "unexpected_argument": ["watch", "gpu.csv"],
    "bad_number": ["simulate", "--seed", "many"],
    "bad_ratio": ["test", "--error-rate", "1", "--", "true"],
    "analyze_no_file": ["analyze"],
    "analyze_leak": ["analyze", *TREND, "leak.csv"],
    "analyze_leak_explain": ["analyze", *TREND, "--explain", "leak.csv"],
    "analyze_leak_json": ["analyze", *TREND, "--format", "json", "leak.csv"],
    "analyze_steady": ["analyze", *TREND, "steady.csv"],
    "analyze_spike": ["analyze", "--detector", "spike", "spike.csv"],
    "analyze_composite": ["analyze", "--detector", "composite", "leak.csv"],
    "analyze_two_files": ["analyze", *TREND, "leak.csv", "steady.csv"],
    "analyze_no_processes": ["analyze", *TREND, "steady.csv", "no_processes.csv"],
    "analyze_no_processes_alone": ["analyze", "no_processes.csv"],
    "analyze_empty_processes": ["analyze", *TREND, "steady.csv", "empty.csv"],
    "report_none_running": ["report", "steady.csv", "none_running.csv"],
    "analyze_lost": ["analyze", "lost.csv"],
    "analyze_broken_lines": ["analyze", *TREND, "broken.csv"],
    "analyze_no_capacity": ["analyze", *TREND, "no_total.csv"],
    "analyze_capacity": ["analyze", *TREND, "--capacity", "24GiB", "no_total.csv"],
    "analyze_short": ["analyze", "short.csv"],
    "analyze_missing_file": ["analyze", "missing.csv"],
    "analyze_not_a_log": ["analyze", "not_a_log.txt"],
    "analyze_empty": ["analyze", "empty.csv"],
    "analyze_one_unreadable": ["analyze", *TREND, "missing.csv", "steady.csv"],
    "analyze_bad_detector": ["analyze", "--detector", "linear", "leak.csv"],
    "analyze_bad_set": ["analyze", "--set", "min-rsquared=0.8", "leak.csv"],
    "analyze_bad_capacity": ["analyze", "--capacity", "many", "leak.csv"],
    "analyze_capacity_without_unit": ["analyze", "--capacity", "24", "leak.csv"],
    "analyze_bad_format": ["analyze", "--format", "xml", "leak.csv"],
    "judge_analyze_leak": ["analyze", "leak.csv"],
    "judge_analyze_leak_explain": ["analyze", "--explain", "leak.csv"],
    "judge_analyze_leak_json": ["analyze", "--format", "json", "leak.csv"],
    "judge_analyze_steady": ["analyze", "steady.csv"],
    "judge_analyze_spike": ["analyze", "spike.csv"],
    "replay_no_store": ["replay"],
    "replay_log": ["replay", *TREND, "leak.csv"],
    "replay_log_range": ["replay", *TREND, "--since", "2026-01-02T03:10", "--until", "2026-01-02T03:12", "leak.csv"],
    "replay_empty_range": ["replay", "--since", "2027-01-02", "--until", "2027-01-03", "leak.csv"],
    "replay_bad_time": ["replay", "--since", "someday"],
    "replay_not_a_log": ["replay", "not_a_log.txt"],
    "replay_json": ["replay", *TREND, "--json", "leak.csv"],
    "simulate_list": ["simulate", "--list"],
    "simulate_unknown": ["simulate", "leaking_trainning"],
    "simulate_unlike_any": ["simulate", "nosuch"],
    "simulate_file": ["simulate", *TREND, "tiny.toml"],
    "simulate_json": ["simulate", *TREND, "--json", "tiny.toml"],
    "judge_simulate": ["simulate", "leaking_training"],
    "judge_simulate_healthy": ["simulate", "healthy_training"],
    "simulate_speed_twice": ["simulate", "--speed", "3", "--within", "3s"],
    "watch_no_gpu": ["watch", *no_gpu()],
    "watch_or_simulate": ["watch", "--or-simulate", *no_gpu(), *TREND],
    "watch_once": ["watch", "--once", "--no-record", *drm_machine()],
    "watch_once_json": ["watch", "--once", "--no-record", "--json", *drm_machine()],
    "watch_record": ["watch", "--interval", "1s", "--duration", "0.5s", *drm_machine()],
    "watch_no_store": ["watch", "--once", "--set", "store.path=/proc/no/store.db", *drm_machine()],
    "watch_bad_interval": ["watch", "--interval", "0s"],
    "watch_unknown_source": ["watch", "--source", "nvm"],
    "programs_no_store": ["programs"],
    "config_show": ["config", "show"],
    "config_show_layers": (["config", "show", "--config", "good.toml", "--set", "spike-percent=30"],
                           {"VRAMTRACK_DETECTION_LEAK_PRIOR": "0.2", "VRAMTRACK_TRACES": "/elsewhere"}),
    "config_path": ["config", "path"],
    "config_init": ["config", "init"],
    "config_bad_key": ["config", "show", "--config", "bad_key.toml"],
    "config_bad_value": ["analyze", "--config", "bad_value.toml", "leak.csv"],
    "config_bad_regex": ["watch", "--config", "bad_regex.toml"],
    "config_missing_file": ["config", "show", "--config", "missing.toml"],
    "config_bad_variable": (["config", "show"], {"VRAMTRACK_DETECTION_SPIKE_PERCENTAGE": "3"}),
    "policy_check": ["policy", "check", "--config", "policy.toml"],
    "policy_check_bad": ["policy", "check", "--config", "bad_policy.toml"],
    "policy_check_none": ["policy", "check"],
    "policy_explain": ["policy", "explain", "--config", "policy.toml"],
    "policy_explain_unknown": ["policy", "explain", "leaks", "--config", "policy.toml"],
    "policy_test": ["policy", "test", "--config", "policy.toml", "leak.csv"],
    "policy_test_json": ["policy", "test", "--json", "--config", "policy.toml", "leak.csv"],
    "policy_test_steady": ["policy", "test", "--config", "policy.toml", "steady.csv"],
    "holders_no_gpu": ["holders", *no_gpu()],
    "wait_nothing": ["wait", *no_gpu()],
    "reclaim_no_terminal": ["reclaim", *no_gpu()],
    "reclaim_no_gpu": ["reclaim", "--dry-run", *no_gpu()],
    "doctor_no_gpu": ["doctor", "--set", "sources.enabled=drm", "--set", "sources.sys-root=no-sys"],
    "doctor_health_no_gpu": ["doctor", "--health", "--set", "sources.enabled=drm", "--set", "sources.sys-root=no-sys"],
    "doctor_health_xids": ["doctor", "--health", "--kernel-log", "kernel.log", "--set", "sources.enabled=drm", "--set",
                           f"sources.sys-root={FIXTURES}/sys"],
    "doctor_health_line": ["doctor", "--health", "--format", "npd", "--kernel-log", "kernel.log", "--set", "sources.enabled=drm",
                           "--set", f"sources.sys-root={FIXTURES}/sys"],
    "doctor_format_alone": ["doctor", "--format", "json"],
    "explain": ["explain", "crash.log"],
    "explain_json": ["explain", "--format", "json", "crash.log"],
    "explain_room": ["explain", "room.log"],
    "explain_unknown": ["explain", "killed.log"],
    "explain_story": ["explain", "story.log"],
    "explain_notice": ["explain", "notice.log"],
    "explain_pasted": ["explain", "summary.log", "ollama.log"],
    "analyze_pasted": ["analyze", "ollama.log"],
    "explain_mentioned": ["explain", "mentioned.log"],
    "explain_nothing": ["explain", "leak.csv", "no-such-file"],
    "check": ["check", f"{FIXTURES}/check/leaks/losses_list.py", f"{FIXTURES}/check/healthy/losses_item.py"],
    "check_json": ["check", "--json", f"{FIXTURES}/check/leaks/hook_each_step.py"],
    "check_unread": ["check", f"{FIXTURES}/check/healthy", "no-such-file.py"],
    "report_bad_output": ["report", "--output", "r.pdf", "leak.csv"],
    "report_no_such_gpu": ["report", "--gpu", "7", "leak.csv"],
    "report_since_then": ["report", *TREND, "--timezone", "UTC", "--since", "1h", "leak.csv"],
    "top_bad_theme": ["top", "--theme", "pink"],
    "top_no_such_user": ["top", "--no-agent", "--user", "nobody-of-that-name", *no_gpu()],
    "gate_bad_option": ["test", "--junitt", "leak.xml", "--", "true"],
    "gate_no_program": ["test", "--set", "sources.sys-root=no-sys", "--", "no-such-program"],
    **{f"analyze_{name.partition('.')[0]}": ["analyze", "--timezone", "UTC", name]
       for name in ("page.html", "host_ram.log", "unnamed.log", "kv_cache.log", "phases.log", "rounds.log", "many.log", "two_words.log", "dots.log",
                    "host_cpu.csv", "cells.csv", "lists.jsonl", "again.csv", "not_available.csv")},
    "analyze_host_column": ["analyze", "--timezone", "UTC", "host_ram.csv"],
    "analyze_percent_and_bytes": ["analyze", "--timezone", "UTC", "percent.csv", "apps.csv"],
    "doctor_drm": ["doctor", "--set", "sources.enabled=drm", "--set", f"sources.sys-root={FIXTURES}/sys"],
}

HELPS = [[], ["watch"], ["agent"], ["top"], ["replay"], ["analyze"], ["report"], ["simulate"], ["snapshot"],
         ["snapshot", "summary"], ["snapshot", "leaks"], ["snapshot", "timeline"], ["snapshot", "oom"],
         ["snapshot", "flamegraph"], ["snapshot", "page"], ["snapshot", "export"], ["trace"], ["trace", "report"],
         ["trace", "top"], ["trace", "diff"], ["trace", "flamegraph"], ["trace", "page"], ["trace", "export"], ["test"], ["mark"], ["silence"], ["silence", "add"],
         ["silence", "list"], ["silence", "end"], ["holders"], ["reclaim"], ["wait"], ["fit"], ["policy"], ["policy", "check"], ["policy", "explain"], ["policy", "test"], ["explain"], ["check"], ["programs"], ["doctor"], ["config"], ["config", "show"],
         ["config", "path"], ["config", "init"]]
CASES |= {"_".join(["help", *command]): [*command, "--help"] for command in HELPS}

# Lines that depend on the machine on which the test runs.
DOCTOR_MACHINE = re.compile(r"^(note|ok) +(processes|tracing) .*\n( +do: .*\n)?", re.MULTILINE)


def normalise(text, sandbox):
    text = text.replace(str(sandbox.path), "SANDBOX").replace(str(FIXTURES), "FIXTURES")
    text = re.sub(r"^vramtrack \S+ on Linux .*$", "vramtrack VERSION on SYSTEM", text, flags=re.MULTILINE)
    text = re.sub(r"^vramtrack \d+\.\d+\.\d+$", "vramtrack VERSION", text, flags=re.MULTILINE)
    # Live times; those in the logs and scenarios (January 2026) stay.
    text = re.sub(r"20(?!26-01-0)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r"\((uid \d+|root|[a-z_][a-z0-9_-]*)\)(?= +\d+ MiB)", "(USER)", text)
    text = re.sub(r"(watched|over) [\d.]+m?s", r"\1 A MOMENT", text)
    return DOCTOR_MACHINE.sub("", text)


def transcript(name, case, sandbox):
    args, env = case if isinstance(case, tuple) else (case, None)
    result = sandbox.run(*args, env=env)
    shown = " ".join(a if a and not set(a) & set(" '\"") else repr(a) for a in args)
    text = f"$ vramtrack {shown}\n{result.stdout.decode()}"
    if result.stderr:
        text += f"--- stderr\n{result.stderr.decode()}"
    return normalise(text + f"--- exit {result.returncode}\n", sandbox)


def main():
    binary, update = sys.argv[1], "--update" in sys.argv[2:]
    only = [a for a in sys.argv[2:] if not a.startswith("-")]
    failed = []
    for name, case in CASES.items():
        if only and name not in only:
            continue
        with Sandbox(binary, alerts_wait=True) as sandbox:
            for file, text in FILES.items():
                sandbox.write(file, text)
            actual = transcript(name, case, sandbox)
        path = GOLDEN / f"{name}.txt"
        expected = path.read_text() if path.exists() else ""
        if update:
            if actual != expected:
                path.write_text(actual)
                print("wrote", path.name)
        elif actual != expected:
            failed.append(name)
            print("".join(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), path.name, "now")))
    stray = {p.stem for p in GOLDEN.glob("*.txt")} - set(CASES)
    if stray and not only:
        print("goldens of no case:", ", ".join(sorted(stray)))
    print(f"{len(CASES)} cases, {len(failed)} differ {' '.join(failed)}")
    return 1 if failed or (stray and not only) else 0


if __name__ == "__main__":
    sys.exit(main())
