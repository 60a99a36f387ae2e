#!/usr/bin/env python3
"""CuPy programs that leak on purpose, and their repaired twins. Options and files: job.py.

A dry run uses NumPy arrays in CuPy's place.
"""
import sys

import job as jobs
from arrays import array_kinds
from job import MIB, twins

xp = None  # CuPy, or NumPy in a dry run


class PoolMemory:
    def __init__(self, cap_bytes):
        self.version = f"CuPy {xp.__version__}"
        self.pool = xp.get_default_memory_pool()
        self.pool.set_limit(size=cap_bytes)
        self.outside_bytes = 0  # taken from the driver directly

    def allocated_bytes(self):
        return self.pool.used_bytes() + self.outside_bytes

    def reserved_bytes(self):
        return self.pool.total_bytes() + self.outside_bytes

    def changed(self, live_bytes, cap_bytes):
        if self.reserved_bytes() > cap_bytes:  # the pool's limit does not see what is outside of it
            raise jobs.SimulatedOutOfMemory(f"{self.reserved_bytes()} bytes of the pool and outside of it; the budget is {cap_bytes}")

    def release(self):
        self.pool.free_all_blocks()

    def is_oom(self, error):
        return isinstance(error, (xp.cuda.memory.OutOfMemoryError, xp.cuda.runtime.CUDARuntimeError)) and "memory" in str(error).lower()


def open_cupy(options):
    global xp
    if options.dry_run:
        import numpy as xp
        return jobs.SimulatedMemory(f"NumPy {xp.__version__} for CuPy")
    import cupy as xp
    try:
        if xp.cuda.runtime.getDeviceCount() == 0:
            raise jobs.Unavailable("CuPy sees no GPU")
    except xp.cuda.runtime.CUDARuntimeError as error:
        raise jobs.Unavailable(f"CuPy sees no GPU: {error}") from error
    return PoolMemory(options.cap_mib * MIB)


def array(size_bytes):
    return xp.ones(max(1, int(size_bytes)), dtype=xp.uint8)


def workspace(job, fixed):
    """A custom kernel takes its workspace from the driver, past the pool, and does not free it."""
    job.begin()
    dry_run = []
    runtime = None if job.dry_run else xp.cuda.runtime
    for _ in job.steps():
        array(job.leak_bytes)
        job.onset(not fixed)
        job.hold(job.leak_bytes)
        if runtime is None:
            dry_run.append(array(job.leak_bytes))
        else:
            pointer = runtime.malloc(job.leak_bytes)
            runtime.memset(pointer, 1, job.leak_bytes)
            job.memory.outside_bytes += job.leak_bytes
        if fixed:
            if runtime is None:
                dry_run.pop()
            else:
                runtime.free(pointer)
                job.memory.outside_bytes -= job.leak_bytes
            job.hold(-job.leak_bytes)


KINDS = [*twins(workspace, "workspace_kept", "workspace_freed", "gradual_leak"), *array_kinds(array)]

if __name__ == "__main__":
    sys.exit(jobs.main(KINDS, open_cupy))
