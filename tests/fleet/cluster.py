"""A synthetic cluster as a current Prometheus stores it: many names for one machine, and labels of the scrape among those of the work.

cluster(hosts) gives the series and, for each GPU that exists, what is true of it. Its pieces, by the number of the host:

    0 mod 5   the exporter does not know its node: the host is its pod's name, and the pod is renamed in the middle
    1 mod 5   honor_labels: the work's pod stands where the exporter's own would; with `draw`, cAdvisor counts the memory of containers beside it
    2 mod 5   two exporters, one of which does not know its node
    3 mod 5   two Prometheus replicas, 7 s apart
    4 mod 5   MIG on GPU 0, two pods on GPU 1 (time-slicing), and GPU 3 by another exporter as well, which leaves out "GPU-"

Of every host, the last GPU has no work. One GPU in `leak_every` leaks, over all pieces; 1 % of the scrapes is missing. What GPUs do is flat or a line; `draw`
(bench/fleet/loads.py) makes a day of it, with exporters that restart, hosts that are out for two hours, and how busy each GPU is."""
import collections
import datetime
import random
import re
import uuid

from scan_data import CAPACITY_MIB, END_MS, STEP_MS

GPUS = 8


class Truth:
    """What is true of one GPU or MIG instance; `host` is the best of the `names` of its machine."""

    def __init__(self, device, host, names, pods, leaks, kind="", full_ms=()):
        self.device, self.host, self.names, self.pods, self.leaks = device, host, names, pods, leaks
        self.kind, self.full_ms = kind, full_ms  # what it does, and when its memory ran out, where `draw` says it


def uuid_of(host, gpu):
    return str(uuid.UUID(int=random.Random(f"{host}/{gpu}").getrandbits(128), version=4))


def suffix(*what):
    noise = random.Random(repr(what))
    return "".join(noise.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))


def used(noise, times, leaks, base):
    rate = min(noise.uniform(20, 60) / 2, 45_000 / len(times))  # a long one stays within the capacity
    return [(ms, int(base + (rate * i if leaks else 0) + noise.randrange(60))) for i, ms in enumerate(times)]


def target(n, pod, job="nvidia-dcgm-exporter", port=9400):
    """What Prometheus' operator puts on every series of a scrape."""
    return {"job": job, "service": job, "endpoint": "gpu-metrics", "instance": f"10.{n // 200}.{n % 200}.7:{port}", "pod": pod,
            "namespace": "gpu-operator", "container": job}


def scraped(scrape, metric, honours_labels=False):
    """One series as Prometheus stores it: where both have a label, one of the two moves or goes (honor_labels)."""
    out = dict(scrape)
    for name, value in metric.items():
        if name in out and not honours_labels:
            out["exported_" + name] = value
        else:
            out[name] = value
    return out


def gaps(noise, times):
    """[(first, end)] in ms: an exporter that restarts is away for one to five minutes; one host in ten is out for two hours."""
    out = [(at, at + noise.randrange(1, 6) * 60_000) for at in (noise.choice(times) for _ in range(noise.choice((0, 0, 1, 2))))]
    return out + [(at, at + 7_200_000) for at in (noise.choice(times),) if noise.random() < 0.1]


def cluster(hosts, hours=4, leak_every=49, draw=None, is_busy_known=True, seed=0):
    """`hosts`: their number, or the numbers of those to make. `seed`: another cluster of the same kind."""
    times = range(END_MS - int(hours * 3_600_000), END_MS, STEP_MS)
    half = len(times) // 2
    series, truths = [], []
    for n in range(hosts) if isinstance(hosts, int) else hosts:
        drawn_by = f"{seed}/{n}" if seed else n
        noise = random.Random(drawn_by)
        node, piece = f"node{n:03}", n % 5
        kept = [ms for ms in times if noise.random() >= 0.01]
        away = gaps(noise, times) if draw else []
        kept = [ms for ms in kept if not any(first <= ms < end for first, end in away)]
        middle = times[half]
        first_pod, second_pod = (f"nvidia-dcgm-exporter-{suffix(n, i)}" for i in range(2))

        def put(labels, samples, offset=0):
            capacity = CAPACITY_MIB // 2 if draw and "GPU_I_ID" in labels else CAPACITY_MIB
            series.append((labels, [(ms + offset, value) for ms, value in samples]))
            free = dict(labels, __name__=labels["__name__"].replace("USED", "FREE"))
            if free != labels and samples:
                series.append((free, [(ms + offset, capacity - value) for ms, value in samples[-20:]]))

        def export(metric, samples):
            """As the pieces of this host are scraped."""
            if piece == 0:  # capacity is known of the first name alone
                put(scraped(target(n, first_pod), dict(metric, Hostname=first_pod)), [s for s in samples if s[0] < middle])
                series.append((scraped(target(n + 1000, second_pod), dict(metric, Hostname=second_pod)), [s for s in samples if s[0] >= middle]))
                return
            put(scraped(target(n, first_pod), dict(metric, Hostname=node), piece == 1) | ({"prometheus_replica": "a"} if piece == 3 else {}), samples)
            if piece == 2:  # a newer DCGM, which counts 600 MiB less
                put(scraped(target(n, second_pod, "dcgm-by-hand", 9401), dict(metric, Hostname=second_pod)),
                    [(ms, v - 600 if metric["__name__"] == "DCGM_FI_DEV_FB_USED" else v) for ms, v in samples], 11_000)
            if piece == 3:
                put(scraped(target(n, first_pod), dict(metric, Hostname=node)) | {"prometheus_replica": "b"}, samples, 7000)

        names = {node} | ({first_pod, second_pod} if piece in (0, 2) else {f"10.9.{n}.1"} if piece == 4 else set())
        host = second_pod if piece == 0 else node
        scrapes = {0: [(n, first_pod), (n + 1000, second_pod)]}.get(piece, [(n, first_pod)])
        for number, pod in scrapes:
            series.append((dict(target(number, pod), __name__="up"), [(ms, 1) for ms in kept[::20]]))
        if piece == 2:
            series.append((dict(target(n, second_pod, "dcgm-by-hand", 9401), __name__="up"), [(ms, 1) for ms in kept[::20]]))
        for g in range(GPUS):
            leaks = (n * GPUS + g + 1) % leak_every == 13 and not (piece == 4 and g == 0) or (piece == 4 and g == 1 and n % 50 == 4)
            bare = uuid_of(drawn_by, g)
            metric = {"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-" + bare, "gpu": str(g), "modelName": "H100"}
            # One job of eight machines of one piece each: what leaks on one is healthy on the others.
            pods = [f"train{n // 5 // 8}-{piece}-worker-{n // 5 % 8}"]

            def one(of, capacity=CAPACITY_MIB):
                """What it does: its samples, and the truth of it; how busy it is, is written."""
                if not draw:
                    return used(noise, kept, leaks, 20_000 + 500 * noise.randrange(20)), ()
                drawn = draw(random.Random(f"{of}"), [(ms - times[0]) / 1000 for ms in kept], leaks, capacity)
                # Every second machine has DCGM's profiling metric, which MIG instances have, too.
                name, unit = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.01) if n % 2 else ("DCGM_FI_DEV_GPU_UTIL", 1)
                partition = {"GPU_I_ID": of.split("/gi")[1]} if "/gi" in of else {}
                if is_busy_known and (n % 2 or not partition):
                    export(dict(metric, __name__=name, **partition), [(ms, busy * unit) for ms, (_, busy) in zip(kept, drawn.values)])
                full_ms = [times[0] + int(at_s * 1000) for at_s in drawn.full_s]
                # What happens while nobody looks, nobody can be warned of.
                seen = [ms for ms in full_ms if not any(first - 1_800_000 <= ms < end + 1_800_000 for first, end in away)]
                return [(ms, mib) for ms, (mib, _) in zip(kept, drawn.values)], (drawn.kind, seen)

            if piece == 4 and g == 0:
                for instance in (1, 2):
                    device = f"GPU-{bare}/gi{instance}"
                    samples, what = one(device, CAPACITY_MIB // 2)
                    export(dict(metric, GPU_I_ID=str(instance), GPU_I_PROFILE="3g.40gb", pod=pods[0], namespace="ml", container="train"), samples)
                    truths.append(Truth(device, host, names, pods, False, *what))
                continue
            samples, what = one("GPU-" + bare)
            if g == GPUS - 1:
                export(metric, samples)
                truths.append(Truth("GPU-" + bare, host, names, [], leaks, *what))
            else:
                if piece == 4 and g == 1:
                    pods = [f"infer-{name}-{suffix(n, name)}" for name in ("x", "y")]
                for pod in pods:
                    export(dict(metric, pod=pod, namespace="ml", container="train"), samples)
                if piece == 4 and g == 3:
                    series.append(({"__name__": "nvidia_smi_memory_used_bytes", "uuid": bare, "job": "smi", "instance": f"10.9.{n}.1:9835"},
                                   [(ms + 3000, v * 1048576.0) for ms, v in samples]))
                if draw and piece == 1:
                    series.append(({"__name__": "container_accelerator_memory_used_bytes", "acc_id": "GPU-" + bare, "make": "nvidia", "model": "H100", "pod": pods[0],
                                    "namespace": "ml", "container": "train", "job": "kubelet", "instance": f"10.9.{n}.1:10250", "node": node},
                                   [(ms + 5000, (v - 500) * 1048576.0) for ms, v in samples]))
                truths.append(Truth("GPU-" + bare, host, names, pods, leaks, *what))
    return series, truths


def is_found(row):
    """A leak that was not taken back, whether or not anybody was notified of it."""
    return any(a["leak"] and a["ended"] != "withdrawn" for a in row["alerts"] + row["suspicions"])


def figures(rows, truths):
    """What a scan says of the cluster, beside what is true."""
    truth = {t.device: t for t in truths}
    machines = {name: t.host for t in truths for name in t.names}
    analysed = [r for r in rows if r["schema"] == "vramtrack.analysis.v1" and r["series"]["metric"] == "device_used"]
    told = [r["series"] for r in analysed]
    found = {r["series"]["device"] for r in analysed if is_found(r)}
    jobs = [r for r in rows if r["schema"] == "vramtrack.fleet_job.v1"]
    findings = [r for r in rows if r["schema"] == "vramtrack.fleet_finding.v1"]
    leaking = {t.device for t in truths if t.leaks}
    pods = {leak["device"]: sorted(leak.get("pods") or [leak["pod"]] if leak.get("pod") or leak.get("pods") else []) for job in jobs for leak in job["leaks"]}
    return {
        "GPUs": len(truths), "told": len(told), "told twice": len(told) - len({t["device"] for t in told}),
        "under another host": sum(t["device"] in truth and t["host"] != truth[t["device"]].host for t in told),
        "without a capacity": sum(r["capacity_bytes"] is None for r in analysed),
        "leaks": len(leaking), "found": len(found & leaking), "false": len(found - leaking),
        "findings": len(findings),
        "findings that compare a machine with itself": sum(compares_itself(f, machines) for f in findings),
        "jobs that are an exporter": sum("exporter" in (j["job"] or "") or "dcgm" in (j["job"] or "") for j in jobs),
        "leaks with other pods": sum(pods.get(d, []) != sorted(truth[d].pods) for d in found & leaking),
    }


def time_text(ms):
    """As a scan writes times."""
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def by_kind(devices, kinds, of):
    """"3 of 2,196 (cache 2 of 180, day 1 of 222)"."""
    counts = collections.Counter(kinds[d] for d in devices)
    return f"{len(devices):,} of {sum(of.values()):,}" + (f" ({', '.join(f'{kind} {n} of {of[kind]}' for kind, n in counts.most_common())})" if counts else "")


def day_figures(rows, truths):
    """What people are notified of in a day, compared with the truth. Healthy GPUs, by what they do."""
    kinds = {t.device: t.kind for t in truths if not t.leaks}
    of = collections.Counter(kinds.values())
    analysed = {r["series"]["device"]: r for r in rows if r["schema"] == "vramtrack.analysis.v1" and r["series"]["metric"] == "device_used"}
    alerts = {d: [a for a in r["alerts"] if a["leak"]] for d, r in analysed.items()}
    listed = {d for d, row in analysed.items() if d in kinds and is_found(row)}
    paged = {d for d, mine in alerts.items() if mine and d in kinds}
    at_end = {d for d, mine in alerts.items() if d in kinds and any(a["cleared"] is None for a in mine)}

    def is_warned(device, ms):
        return any(a["raised"] <= time_text(ms) and (a["cleared"] or "9") >= time_text(ms - 60_000) for a in alerts.get(device, []))
    full = [(t.device, ms) for t in truths for ms in t.full_ms]
    return {"run-outs": len(full), "warned of": sum(is_warned(*one) for one in full), "healthy and notified of": by_kind(paged, kinds, of),
            "notifications of healthy ones": sum(len(alerts[d]) for d in paged), "healthy and notified of at the end": by_kind(at_end, kinds, of),
            "healthy and listed as leaks": by_kind(listed, kinds, of)}


def is_right(seen):
    """Each GPU once, as what it is, with whose work it does; every leak, and no other."""
    return seen["told"] == seen["GPUs"] and seen["found"] == seen["leaks"] and not any(
        seen[what] for what in ("told twice", "under another host", "without a capacity", "false", "findings that compare a machine with itself",
                                "jobs that are an exporter", "leaks with other pods"))


def compares_itself(finding, machines):
    """Two names of one machine stand side by side."""
    named = set(finding["nodes"]) | {word for word in re.findall(r"[\w-]+", finding["text"]) if word in machines}
    return len({machines[name] for name in named}) < len(named)
