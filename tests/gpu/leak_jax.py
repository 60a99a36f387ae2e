#!/usr/bin/env python3
"""JAX programs that leak on purpose, and their repaired twins. Options and files: job.py.

The cap is set through XLA's own variables, so it must be known before JAX is imported: open_jax() does that. The
device's total is not known then; it comes in VRAMTRACK_DEVICE_BYTES (record.py sets it). A dry run uses the CPU.
"""
import os
import sys

import job as jobs
from arrays import array_kinds
from job import MIB, twins

jax = None


class XlaMemory:
    def __init__(self, device):
        self.version = f"JAX {jax.__version__}"
        self.device = device

    def allocated_bytes(self):
        return (self.device.memory_stats() or {}).get("bytes_in_use")

    def reserved_bytes(self):
        return (self.device.memory_stats() or {}).get("pool_bytes")  # "bytes_reserved" is something else

    def changed(self, live_bytes, cap_bytes):
        pass  # XLA enforces the cap

    def release(self):
        pass  # XLA gives nothing back before the process ends

    def is_oom(self, error):
        return "RESOURCE_EXHAUSTED" in str(error)


def open_jax(options):
    global jax
    if options.dry_run:
        os.environ["JAX_PLATFORMS"] = "cpu"
    else:
        total = os.environ.get("VRAMTRACK_DEVICE_BYTES")
        if not (total and total.isdigit()):
            raise jobs.Unavailable("JAX takes its cap as a share of the device: set VRAMTRACK_DEVICE_BYTES to the device's memory")
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{options.cap_mib * MIB / int(total):.6f}"
    import jax
    if options.dry_run:
        return jobs.SimulatedMemory(f"JAX {jax.__version__}")
    device = jax.devices()[0]
    if device.platform not in ("gpu", "cuda", "rocm"):
        raise jobs.Unavailable(f"JAX sees no GPU, only {device.platform}")
    return XlaMemory(device)


def array(size_bytes):
    return jax.numpy.ones(max(1, int(size_bytes)), dtype=jax.numpy.uint8).block_until_ready()


def fit(size_bytes):
    """Eight sizes an octave: each new one is compiled for, which takes longer than a step."""
    quantum = 1 << max(int(size_bytes).bit_length() - 4, 0)
    return max(1, round(size_bytes / quantum)) * quantum


def compiled(job, fixed):
    """A function is compiled again for every setting, each with its table built in as a constant, and all stay in
    a dictionary; repaired: the table is an argument."""
    job.begin()
    every = max(job.life_steps // 40, 1)
    size = fit(job.leak_bytes * every)
    functions = {}
    shared = jax.jit(lambda table, x: table[:8].sum() + x)
    for step in job.steps():
        if step % every:
            continue
        job.onset(not fixed)
        job.hold(size)
        table = array(size)
        if fixed:
            shared(table, step).block_until_ready()
            job.hold(-size)
            continue
        functions[step] = jax.jit(lambda x, table=table: table[:8].sum() + x)
        functions[step](step).block_until_ready()


KINDS = [*array_kinds(array, fit), *twins(compiled, "compiled_kept", "compiled_once", "gradual_leak")]

if __name__ == "__main__":
    sys.exit(jobs.main(KINDS, open_jax))
