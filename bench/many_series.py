#!/usr/bin/env python3
"""Writes a CSV with many series: many_series.py pid|container|uuid SERIES READINGS >log.csv
Measures a program that reads one: many_series.py measure PROGRAM ARGUMENT...

One reading a minute of each. One series in a hundred leaks, one in seven saws, the others waver.
"""

import datetime
import random
import resource
import subprocess
import sys
import time


def write(kind: str, series: int, readings: int) -> None:
    random.seed(40)
    base = [random.randrange(200, 4000) for _ in range(series)]
    start = datetime.datetime(2026, 3, 1, 10)
    title = {"pid": "gpu_uuid,pid,process_name", "container": "container", "uuid": "uuid"}[kind]
    print(f"timestamp,{title},mem_used_mib")
    for reading in range(readings):
        now = start + datetime.timedelta(minutes=reading)
        for i in range(series):
            used = base[i] + random.randrange(0, 8)
            if i % 100 == 0:
                used += 40 * reading
            elif i % 7 == 0:
                used += 100 * (reading % 5)
            name = {"pid": f"GPU-{i % 8},{1000 + i},python", "container": f"c{i:06x}", "uuid": f"GPU-{i:08x}"}[kind]
            print(f"{now:%Y-%m-%dT%H:%M:%SZ},{name},{used}")


def measure(command: list[str]) -> None:
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # 1 is a verdict
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{used.ru_utime + used.ru_stime:.1f} s of CPU, {time.monotonic() - began:.1f} s by the clock, "
        f"{used.ru_maxrss / 1000:.0f} MB at most"
    )


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "measure":
        measure(sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] in ("pid", "container", "uuid"):
        write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(__doc__)
