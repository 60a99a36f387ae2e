"""Made-up series of GPUs as dcgm-exporter labels them: [(labels, [(ms, MiB), ...]), ...]."""
import datetime
import random
import time

STEP_MS = 30_000
END_MS = int(time.time()) // 60 * 60_000
END = datetime.datetime.fromtimestamp(END_MS / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
CAPACITY_MIB = 81559


def labels(host, gpu, metric="DCGM_FI_DEV_FB_USED", **more):
    return {"__name__": metric, "Hostname": host, "UUID": f"GPU-{host}-{gpu}", "gpu": str(gpu), "modelName": "H100",
            "instance": f"{host}:9400", "job": "dcgm", **more}


def times(hours, end_ms=END_MS):
    return range(end_ms - int(hours * 3_600_000), end_ms, STEP_MS)


def healthy(seed, hours=4, end_ms=END_MS):
    noise = random.Random(seed)
    return [(ms, 30_000 + seed % 7 * 1000 + noise.randrange(60)) for ms in times(hours, end_ms)]


def leaking(seed, hours=4, mib_per_min=40, end_ms=END_MS):
    noise = random.Random(seed)
    return [(ms, int(20_000 + 0.5 * mib_per_min * i + noise.randrange(40))) for i, ms in enumerate(times(hours, end_ms))]


def loading(seed, hours=4, minutes=50, mib_per_min=1200, end_ms=END_MS):
    noise = random.Random(seed)
    return [(ms, int(600 + mib_per_min * max(0, minutes - (end_ms - ms) / 60_000) + noise.randrange(40))) for ms in times(hours, end_ms)]


def free_of(used_labels, samples):
    free = dict(used_labels, __name__="DCGM_FI_DEV_FB_FREE")
    return free, [(ms, CAPACITY_MIB - value) for ms, value in samples[-20:]]


def with_capacity(series):
    return series + [free_of(*s) for s in series]
