#!/usr/bin/env python3
"""The figures of `vramtrack fleet` in docs/BENCHMARKS.md, on real servers of this machine.

    bench/fleet/fleet.py speed BUILD      8,000 GPUs and a day, 80,000 GPUs and an hour, and the steady pass
    bench/fleet/fleet.py accuracy BUILD   how often the scan is right, beside predict_linear and deriv rules
    bench/fleet/fleet.py cluster BUILD    what is told of 2,240 GPUs whose machines have many names, beside what is true (tests/fleet/cluster.py)
    bench/fleet/fleet.py day BUILD [--no-busy] [--seed=N]   the same cluster with jobs, loads, caches, days, restarts and outages, and the pages of a
                                          `fleet watch`; --no-busy: without how busy the GPUs are; --seed: another one of its kind. Writes what is true
                                          into truth.csv first
    bench/fleet/fleet.py check BUILD      fails unless each way of reading finds every leak of 8,000 GPUs, and alarms at no other GPU

BUILD is a build with VRAMTRACK_BENCH (build/bench)."""
import collections
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "fleet"))
import cluster as made_cluster  # noqa: E402
import loads  # noqa: E402
from scan_data import END  # noqa: E402
from servers import Prometheus, VictoriaMetrics, free_port  # noqa: E402

BUILD = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build/bench").resolve()
ROUNDS = 3


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_rss_mib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def load(server, **options):
    words = [str(w) for name, value in options.items() for w in (f"--{name.replace('_', '-')}", value)]
    subprocess.run([BUILD / "load_fleet", "--port", str(server.port), *words], check=True)
    server.flush()


def scan(server, *options):
    """Wall seconds, CPU seconds of the scan and of the server, peak MiB, and what it printed."""
    before, begun = cpu_s(server.process.pid), time.monotonic()
    process = subprocess.Popen([BUILD / "vramtrack", "fleet", "scan", "--url", server.url, *options], stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), process.returncode
    return {"wall_s": time.monotonic() - begun, "cpu_s": usage.ru_utime + usage.ru_stime, "server_cpu_s": cpu_s(server.process.pid) - before,
            "peak_mib": usage.ru_maxrss / 1024, "out": out}


def say(what, runs):
    medians = {key: statistics.median(r[key] for r in runs) for key in ("wall_s", "cpu_s", "server_cpu_s", "peak_mib")}
    print(f"{what}: " + ", ".join(f"{key} {value:.1f}" for key, value in medians.items()), flush=True)
    print("   " + runs[0]["out"].decode().splitlines()[0], flush=True)


def speed():
    for kind in (Prometheus, VictoriaMetrics):
        server = kind()
        try:
            load(server, gpus=8000, hours=24, truth="/dev/null")
            paths = ("remote-read", "query-range") if kind is Prometheus else ("export",)
            for path in paths:
                say(f"8,000 GPUs x 24 h, {path}", [scan(server, "--since", "24h", "--limit", "1", "--read-by", path) for _ in range(ROUNDS)])
        finally:
            server.close()
        server = kind()
        try:
            load(server, gpus=80000, hours=1, truth="/dev/null")
            path = paths[0]
            say(f"80,000 GPUs x 1 h, {path}", [scan(server, "--since", "1h", "--limit", "1", "--read-by", path) for _ in range(ROUNDS)])
        finally:
            server.close()
    steady()


def steady():
    server = Prometheus()
    try:
        # What will be there in the next minutes is already there: each pass finds its last minute.
        load(server, gpus=80000, hours=1, truth="/dev/null", end_s=int(time.time()) + 900)
        port = free_port()
        watch = subprocess.Popen([BUILD / "vramtrack", "fleet", "watch", "--url", server.url, "--listen", f"127.0.0.1:{port}", "--every", "20s",
                                  "--history", "20min"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        took, seen = [], 0
        while len(took) < 6:
            time.sleep(1)
            try:
                fleet = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/fleet", timeout=30).read())
            except OSError:
                continue
            if fleet["passes"] > seen:
                seen = fleet["passes"]
                took.append(fleet["took_s"])
        print(f"80,000 GPUs, the steady pass: median {statistics.median(took[1:]):.2f} s of {took[1:]}; the first {took[0]:.1f} s; "
              f"peak {peak_rss_mib(watch.pid):.0f} MiB", flush=True)
        watch.terminate()
        watch.wait()
    finally:
        server.close()


def uuid_of(gpu):
    """As load_fleet numbers its GPUs."""
    return f"GPU-{int(gpu[4:]):08x}-1111-2222-3333-444455556666"


def truth_of(path):
    """By UUID: the row of each GPU."""
    with open(path) as file:
        return {uuid_of(row["gpu"]): row for row in csv.DictReader(file)}


def leaks_in(rows):
    """The GPUs of which a leak alert was raised and not withdrawn."""
    return {r["series"]["device"] for r in rows
            if r["schema"] == "vramtrack.analysis.v1" and any(a["leak"] and a["ended"] != "withdrawn" for a in r["alerts"])}


#: horizon-days: growth that leaves more time than this is told of, and is not a leak.
HORIZON_S = 7 * 86400


def check():
    gpus, hours, wrong = 8000, 24, []
    for kind, paths in ((Prometheus, ("remote-read", "query-range")), (VictoriaMetrics, ("export",))):
        server = kind()
        try:
            end, truth_file = int(time.time()), server.folder / "truth.csv"
            load(server, gpus=gpus, hours=hours, end_s=end, truth=truth_file)
            truth = truth_of(truth_file)
            growing = {uuid for uuid, row in truth.items() if row["leaks"] == "1"}
            leaking = {uuid for uuid in growing if float(truth[uuid]["lasts_s"]) <= HORIZON_S}
            for path in paths:
                run = scan(server, "--since", f"{hours}h", "--until", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end)), "--read-by", path,
                           "--format", "json")
                rows = [json.loads(line) for line in run["out"].splitlines()]
                whole, found = rows[-1], leaks_in(rows)
                told = {r["series"]["device"] for r in rows if r["schema"] == "vramtrack.analysis.v1"
                        and r["verdict"]["state"] in ("growing", "slow_growth", "leaking")}
                missed, slow, false = leaking - found, growing - leaking, found - leaking
                print(f"{gpus:,} GPUs, {hours} h, {path}: {len(leaking & found)} of {len(leaking)} leaks found, {len(slow & told)} of {len(slow)} that "
                      f"leave more than 7 days told as growth, {len(false)} false alarms at {len(truth) - len(growing):,} healthy GPUs; "
                      f"{run['wall_s']:.1f} s, {run['peak_mib']:.0f} MiB", flush=True)
                if not whole["is_complete"] or whole["gpus"] != gpus:
                    wrong.append(f"{path}: {whole['gpus']} GPUs were judged, complete: {whole['is_complete']}")
                for words, which in (("missed", missed), ("not told as growth", slow - told), ("falsely alarmed at", false)):
                    wrong += [f"{path}: {words} {uuid} ({truth[uuid]['family']})" for uuid in sorted(which)]
        finally:
            server.close()
    for line in wrong:
        print(f"fleet: {line}")
    sys.exit(1 if wrong else 0)


def series(server, query, start, end, step_s):
    body = urllib.parse.urlencode({"query": query, "start": start, "end": end, "step": step_s}).encode()
    with urllib.request.urlopen(urllib.request.Request(server.url + "/api/v1/query_range", body), timeout=600) as answer:
        return json.loads(answer.read())["data"]["result"]


def sustained(values, step_s, for_s):
    """The highest level that `values` stayed at or above for this long: a rule with `for` fires below it."""
    n = int(for_s // step_s) + 1
    return max((min(values[i:i + n]) for i in range(len(values) - n + 1)), default=float("-inf"))


def rules(server, gpus, hours, end):
    """For each GPU: the highest deriv() threshold and the shortest predict_linear() horizon that would have fired, for 10 minutes."""
    step_s, for_s = 60, 600
    slopes, horizons = {}, {}
    used, free = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
    before = cpu_s(server.process.pid)
    capacity = {r["metric"]["UUID"]: float(r["values"][-1][1]) for r in series(server, f"{used} + on (UUID) group_left () {free}", end - 240, end, 60)}
    hosts = sorted({f"node{g // 8:05d}" for g in range(gpus)})
    for at in range(0, len(hosts), 50):
        where = '{Hostname=~"' + "|".join(hosts[at:at + 50]) + '"}[1h]'
        start = end - hours * 3600
        slope = {r["metric"]["UUID"]: dict(r["values"]) for r in series(server, f"deriv({used}{where})", start, end, step_s)}
        level = {r["metric"]["UUID"]: dict(r["values"]) for r in series(server, f"predict_linear({used}{where}, 0)", start, end, step_s)}
        for uuid, points in slope.items():
            values = [float(v) for _, v in sorted(points.items())]
            slopes[uuid] = sustained(values, step_s, for_s)
            ends = []
            for t, v in sorted(points.items()):
                s = float(v)
                ends.append(-(capacity[uuid] - float(level[uuid][t])) / s if s > 0 and uuid in capacity else float("-inf"))
            horizons[uuid] = -sustained(ends, step_s, for_s)
    return slopes, horizons, cpu_s(server.process.pid) - before


def rates(fired, leaking, healthy):
    hit = sum(u in fired for u in leaking)
    false = sum(u in fired for u in healthy)
    return hit, false


def line(name, hit, false, leaking, healthy):
    recall, share = hit / leaking, false / healthy
    precision = hit / (hit + false) if hit + false else 0
    return f"| {name} | {hit} of {leaking} ({recall:.3f}) | {false} of {healthy} ({share:.4f}) | {precision:.3f} |"


def compare(gpus, leaks, seed):
    hours = 24
    server = Prometheus()
    try:
        end = int(time.time())
        truth_file = server.folder / "truth.csv"
        load(server, gpus=gpus, hours=hours, kind="families", leaks=leaks, seed=seed, end_s=end, truth=truth_file)
        truth = truth_of(truth_file)
        leaking = {u for u, r in truth.items() if r["leaks"] == "1"}
        healthy = set(truth) - leaking
        run = scan(server, "--since", f"{hours}h", "--until", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end)), "--format", "json")
        ours = leaks_in(map(json.loads, run["out"].splitlines()))
        slopes, horizons, rules_cpu_s = rules(server, gpus, hours, end)
    finally:
        server.close()
    print(f"\n{len(leaking)} leaking and {len(healthy)} healthy GPUs, seed {seed}\n")
    print("| | leaks found (recall) | false alarms (share of healthy) | precision |\n|---|---|---|---|")
    hit, false = rates(ours, leaking, healthy)
    print(line("`vramtrack fleet scan`", hit, false, len(leaking), len(healthy)))
    for name, values, above in (("deriv", slopes, True), ("predict_linear", horizons, False)):
        # The threshold at which the rule finds as many leaks as the scan.
        ranked = sorted((values.get(u, float("-inf") if above else float("inf")) for u in leaking), reverse=above)
        bar = ranked[hit - 1] if hit else ranked[0]
        fired = {u for u, v in values.items() if (v >= bar if above else v <= bar)}
        words = f"`deriv({'x'}[1h]) > {bar * 60:.2f} MiB/min` for 10m" if above else f"`predict_linear(x[1h], {bar / 3600:.1f}h) > total` for 10m"
        print(line(f"{words}, at equal recall", *rates(fired, leaking, healthy), len(leaking), len(healthy)))
    for name, fired in (("`deriv(x[1h]) > 1 MiB/min` for 10m", {u for u, v in slopes.items() if v > 1 / 60}),
                        ("`predict_linear(x[1h], 4h) > total` for 10m", {u for u, v in horizons.items() if v < 4 * 3600})):
        print(line(name, *rates(fired, leaking, healthy), len(leaking), len(healthy)))
    print(f"\nCPU seconds of the server: {run['server_cpu_s']:.1f} for the scan, {rules_cpu_s:.1f} for both rules every minute of the day; "
          f"of the scan itself: {run['cpu_s']:.1f}", flush=True)
    missed = sorted(truth[u]["family"] for u in leaking - ours)
    wrong = sorted(truth[u]["family"] for u in ours & healthy)
    print(f"missed: {', '.join(f'{f} {missed.count(f)}' for f in sorted(set(missed))) or 'none'}")
    print(f"false: {', '.join(f'{f} {wrong.count(f)}' for f in sorted(set(wrong))) or 'none'}", flush=True)


def cluster():
    """Needs no load_fleet."""
    hours = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    series, truths = made_cluster.cluster(280, hours)
    server = Prometheus()
    try:
        for at in range(0, len(series), 500):
            server.write(series[at:at + 500])
        run = scan(server, "--since", f"{hours}h", "--until", END, "--format", "json")
    finally:
        server.close()
    seen = made_cluster.figures([json.loads(line) for line in run["out"].splitlines()], truths)
    for what, count in seen.items():
        print(f"{what}: {count:,}")
    print(f"{run['wall_s']:.1f} s, {run['cpu_s']:.1f} s of CPU", flush=True)
    sys.exit(0 if made_cluster.is_right(seen) else 1)


def write_truths(truths, path):
    with open(path, "w") as file:
        out = csv.writer(file)
        out.writerow(["device", "host", "kind", "leaks", "full_at"])
        for t in truths:
            out.writerow([t.device, t.host, t.kind, int(t.leaks), " ".join(made_cluster.time_text(ms) for ms in t.full_ms)])


def pages(server, hours):
    """What a `fleet watch` that has read the day reports: the GPUs with a leak, and those of which its metrics say that people are notified."""
    port = free_port()
    watch = subprocess.Popen([BUILD / "vramtrack", "fleet", "watch", "--url", server.url, "--listen", f"127.0.0.1:{port}", "--every", "10min", "--history",
                              f"{hours + 1}h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            time.sleep(1)
            try:
                text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
            except OSError:
                continue
            if re.search(r"^vramtrack_fleet_passes_total 1", text, re.M):
                break
    finally:
        watch.terminate()
        watch.wait()
    return tuple(set(re.findall(rf'^{name}\{{UUID="([^"]+)".*\}} 1$', text, re.M)) for name in ("vramtrack_verdict", "vramtrack_device_leak_paged"))


def day():
    """Needs no load_fleet."""
    hours, hosts, at_once = 24, 280, 20
    seed = next((int(word.split("=")[1]) for word in sys.argv if word.startswith("--seed=")), 0)
    server, truths = Prometheus(), []
    try:
        samples = 0
        for first in range(0, hosts, at_once):
            series, more = made_cluster.cluster(range(first, first + at_once), hours, draw=loads.draw, is_busy_known="--no-busy" not in sys.argv, seed=seed)
            truths += more
            samples += sum(len(values) for _, values in series)
            server.write(series)
        write_truths(truths, "truth.csv")
        print(f"{samples:,} samples of {hosts} machines; {', '.join(f'{kind} {n}' for kind, n in collections.Counter(t.kind for t in truths).items())}",
              flush=True)
        run = scan(server, "--since", f"{hours}h", "--until", END, "--format", "json")
        verdicts, paged = pages(server, hours)
    finally:
        server.close()
    rows = [json.loads(line) for line in run["out"].splitlines()]
    for what, count in {**made_cluster.figures(rows, truths), **made_cluster.day_figures(rows, truths)}.items():
        print(f"{what}: {count}")
    leaking = {t.device for t in truths if t.leaks}
    print(f"watch, at the end: leaks with a verdict {len(verdicts & leaking)}, notified {len(paged & leaking)}; "
          f"healthy with a verdict {len(verdicts - leaking)}, notified {len(paged - leaking)}")
    print(f"{run['wall_s']:.1f} s, {run['cpu_s']:.1f} s of CPU", flush=True)


def accuracy():
    compare(2000, 0.5, 1)
    compare(8000, 0.01, 2)


if __name__ == "__main__":
    {"speed": speed, "accuracy": accuracy, "cluster": cluster, "day": day, "check": check}[sys.argv[1]]()
