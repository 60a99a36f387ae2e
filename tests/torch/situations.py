"""Makes real snapshots of named situations, each with the truth beside it.

    situations.py OUT_DIR [NAME...]

A situation is a function. `shot(verdict, ...)` dumps a snapshot and writes what torch's own counters say at that moment, what
the verdict should be, and which lines should be named. `# SITE name` marks a line.
"""
import gc
import gzip
import json
import os
import pathlib
import subprocess
import sys

import torch

MIB = 2**20
HERE = os.path.abspath(__file__)
LINES = pathlib.Path(HERE).read_text().splitlines()
SITES = {line.split("# SITE ")[1].split(":")[0].strip(): number for number, line in enumerate(LINES, 1) if line.count("# SITE ") == 1}
COUNTERS = ["allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes", "inactive_split_bytes", "allocation", "segment",
            "active", "inactive_split"]  # fmt: skip
memory = torch.cuda.memory
OutOfMemory = torch.cuda.OutOfMemoryError
SITUATIONS, ENVIRONMENT = {}, {}
#: what a version lacks
NEEDS = {"mem_pool": hasattr(torch.cuda, "MemPool"), "pinned_host": "record_pinned_host_memory" in (memory._record_memory_history.__doc__ or "")
         or "record_pinned_host_memory" in getattr(memory, "_record_memory_history_impl", memory._record_memory_history).__code__.co_varnames}  # fmt: skip


def situation(allocator="", **environment):
    """`allocator`: PyTorch's settings; the variable has a newer name since 2.9. With either, it runs in its own process."""
    if allocator:
        environment.update(PYTORCH_CUDA_ALLOC_CONF=allocator, PYTORCH_ALLOC_CONF=allocator)

    def add(function):
        SITUATIONS[function.__name__], ENVIRONMENT[function.__name__] = function, environment
        return function

    return add


class Shots:
    def __init__(self, out, name):
        self.out, self.name, self.snapshots = out, name, []

    def counters(self):
        stats = [memory.memory_stats(device) for device in range(torch.cuda.device_count())]
        plain = [{name: stat.get(f"{name}.all.current") for name in COUNTERS} for stat in stats]
        return [counts | {name: stat.get(name) for name in ("num_ooms", "num_alloc_retries")} for counts, stat in zip(plain, stats)]

    def __call__(self, verdict, **expect):
        path = os.path.join(self.out, f"{self.name}-{len(self.snapshots) + 1}.pickle")
        counters = self.counters()
        memory._dump_snapshot(path)
        assert counters == self.counters(), "the dump changed the counters"
        with open(path, "rb") as plain, gzip.GzipFile(path + ".gz", "wb", mtime=0) as packed:
            packed.write(plain.read())
        os.unlink(path)
        capacities = [torch.cuda.get_device_properties(device).total_memory for device in range(torch.cuda.device_count())]
        self.snapshots.append({"file": os.path.basename(path) + ".gz", "devices": counters, "device_bytes": capacities,
                               "expect": {"verdict": verdict, **expect}})  # fmt: skip

    def write(self):
        document = {"situation": self.name, "torch": torch.__version__, "environment": ENVIRONMENT[self.name], "snapshots": self.snapshots}
        pathlib.Path(self.out, f"{self.name}.json").write_text(json.dumps(document, indent=1))


def site(name, before=0):
    return f"{HERE}:{SITES[name] - before}"


def record(**options):
    memory._record_memory_history(**{"stacks": "python", "max_entries": 20000, **options})


def empty(mib, device="cuda"):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=device)


def model():
    return torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()


# Steps that are healthy, or keep something.


@situation()
def clean_training(shot):
    record()
    network = model()
    optimizer = torch.optim.Adam(network.parameters())
    for step in range(1, 16):
        batch = torch.randn(64, 1024, device="cuda")
        optimizer.zero_grad()
        network(batch).sum().backward()
        optimizer.step()
        del batch
        if step % 5 == 0:
            shot("no leak")


@situation()
def leak_losses(shot):
    record()
    weights = torch.nn.Parameter(torch.ones(512, 1024, device="cuda"))
    losses = []
    for step in range(1, 31):
        batch = torch.ones(512, 1024, device="cuda")
        losses.append((batch * weights).sin().sum())  # SITE losses
        if step % 10 == 0:
            shot("leak", grows=[site("losses"), site("losses", 1)], bytes_per_step=2 * 2 * MIB + 512)


@situation()
def leak_cache_dict(shot):
    record()
    cache = {}
    for step in range(1, 31):
        cache[step] = torch.empty(300_000, device="cuda")  # SITE cache
        work = torch.empty(3 * MIB, device="cuda")
        del work
        if step % 10 == 0:
            shot("leak", top=site("cache"), bytes_per_step=1200128)


@situation()
def leak_in_two_modules(shot):
    record()
    first, second = [], []

    def features():
        first.append(torch.zeros(1_000_000, device="cuda"))  # SITE features

    def statistics():
        second.append(torch.zeros(100_000, device="cuda"))  # SITE statistics

    for step in range(1, 31):
        features()
        statistics()
        if step % 10 == 0:
            shot("leak", top=site("features"), second=site("statistics"))


@situation()
def reference_cycle(shot):
    record()
    gc.disable()

    class Node:
        pass

    for step in range(1, 31):
        node = Node()
        node.me = node
        node.tensor = empty(3)  # SITE cycle
        if step % 10 == 0:
            shot("leak", top=site("cycle"), bytes_per_step=3 * MIB)


@situation()
def optimizer_first_step(shot):
    record()
    network = model()
    optimizer = torch.optim.Adam(network.parameters(), foreach=False)
    batch = torch.randn(64, 1024, device="cuda")
    for step in range(1, 5):
        optimizer.zero_grad(set_to_none=False)
        network(batch).sum().backward()
        optimizer.step()  # SITE optimizer
        shot("no leak", warm_up=site("optimizer") if step == 1 else None)


# Memory that ran out.


@situation()
def fragmentation_oom(shot):
    record()
    kept, dropped = [], []
    for _ in range(370):  # two of 9 MiB share a segment of 20
        kept.append(empty(9))
        dropped.append(empty(9))  # SITE fragments
    dropped.clear()
    try:
        empty(3000)  # SITE wanted
    except OutOfMemory as error:
        shot("fragmentation", oom=site("wanted"), requested=3000 * MIB, message=str(error)[:400])


@situation()
def oom_by_leak(shot):
    record()
    kept = []
    try:
        while True:
            scratch = [empty(30), empty(50)]
            scratch.clear()
            kept.append(empty(40))  # SITE grow
    except OutOfMemory as error:
        shot("leak", top=site("grow"), message=str(error)[:400])


@situation()
def oom_keeps_all(shot):
    """Nothing is released. A forward pass that fills the device looks the same, so either answer will do."""
    record()
    kept = []
    try:
        while True:
            kept.append(empty(40))  # SITE keeps
    except OutOfMemory as error:
        shot("full", accept=["leak"], top=site("keeps"), message=str(error)[:400])


@situation()
def oom_too_big(shot):
    record()
    held = empty(500)  # noqa: F841
    try:
        empty(9000)  # SITE big
    except OutOfMemory as error:
        shot("too big", oom=site("big"), requested=9000 * MIB, message=str(error)[:400])


@situation()
def oom_at_fraction(shot):
    record()
    torch.cuda.set_per_process_memory_fraction(0.1)
    held = empty(700)  # noqa: F841
    try:
        empty(200)  # SITE fraction
    except OutOfMemory as error:
        shot("limit", oom=site("fraction"), requested=200 * MIB, message=str(error)[:400])


#: Takes 7000 MiB by the driver alone.
OTHER_PROCESS = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_ulonglong()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
print(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(7000 << 20)), flush=True)
sys.stdin.read()
"""


@situation(VRAMTRACK_FAKE_GPU_STATE=f"/dev/shm/vramtrack-fake-gpu-{os.getpid()}")
def oom_elsewhere(shot):
    other = subprocess.Popen([sys.executable, "-c", OTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "0\n"
    record()
    kept = []
    try:
        while True:
            kept.append(empty(300))
    except OutOfMemory as error:
        shot("outside", message=str(error)[:600])
    finally:
        other.communicate("")
        os.unlink(os.environ["VRAMTRACK_FAKE_GPU_STATE"])


@situation(allocator="expandable_segments:True")
def expandable_oom(shot):
    record()
    kept = []
    try:
        while True:
            kept.append(empty(50))  # SITE expandable_oom
    except OutOfMemory as error:
        shot("full", accept=["leak"], top=site("expandable_oom"), message=str(error)[:400])


# Kinds of memory.


@situation(allocator="expandable_segments:True")
def expandable_leak(shot):
    record()
    kept = []
    for step in range(1, 31):
        kept.append(empty(7))  # SITE expandable
        work = empty(50)
        del work
        if step % 10 == 0:
            shot("leak", top=site("expandable"), bytes_per_step=7 * MIB)


@situation(VRAMTRACK_FAKE_GPU_DEVICES="2", VRAMTRACK_FAKE_GPU_MIB="8192,4096")
def two_devices(shot):
    record()
    kept = []
    for step in range(1, 31):
        work = empty(5, "cuda:0")
        del work
        kept.append(empty(4, "cuda:1"))  # SITE second_device
        if step % 10 == 0:
            shot("leak", device=1, top=site("second_device"), bytes_per_step=4 * MIB)


@situation()
def mem_pool(shot):
    record()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = empty(33)  # SITE pool
    more = empty(7)  # noqa: F841
    shot("no leak", top=site("pool"))
    del held


@situation()
def graph_pool(shot):
    record()
    batch = torch.zeros(1_000_000, device="cuda")
    graphs = []
    for _ in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = batch.sin()  # SITE graph
        graphs.append((graph, result))
        shot("leak", top=site("graph"))


@situation()
def pinned_host(shot):
    record(record_pinned_host_memory=True)
    kept = []
    for _ in range(3):
        kept.append(torch.empty(2_000_000, pin_memory=True))  # SITE pinned
        held = empty(3)  # noqa: F841
        shot("no leak", host=True)


@situation()
def pending_free(shot):
    record()
    stream = torch.cuda.Stream()
    kept = [empty(20) for _ in range(5)]  # SITE pending
    while kept:
        kept.pop().record_stream(stream)
    shot("no leak", pending=100 * MIB)


@situation()
def side_streams(shot):
    record()
    kept = []
    for _ in range(3):
        with torch.cuda.stream(torch.cuda.Stream()):
            kept.append(empty(25))
        shot("leak")


# What was recorded.


@situation()
def stacks_all(shot):
    record(stacks="all")
    kept = []
    weights = torch.nn.Parameter(torch.ones(1000, 1000, device="cuda"))
    for _ in range(3):
        kept.append((weights * 2).sin().sum())
        kept[-1].backward()  # SITE native
        shot("no leak: 512 bytes a step")


@situation()
def user_metadata(shot):
    record()
    kept = []
    for step in range(1, 4):
        if hasattr(memory, "_set_memory_metadata"):
            memory._set_memory_metadata(f"step {step}")
        kept.append(empty(5))  # SITE metadata
        shot("leak", top=site("metadata"))


@situation()
def no_history(shot):
    kept = []
    for _ in range(3):
        kept.append(empty(5))
        shot("leak, no stacks")


@situation()
def history_started_late(shot):
    kept = [empty(30) for _ in range(3)]
    record()
    for _ in range(3):
        kept.append(empty(5))  # SITE late
        shot("leak", top=site("late"))


@situation()
def state_only(shot):
    record(enabled="state")
    kept = []
    for _ in range(3):
        kept.append(empty(5))  # SITE state
        shot("leak", top=site("state"))


@situation()
def ring_wraps(shot):
    record(max_entries=200)
    kept = []
    for step in range(1, 301):
        kept.append(empty(1))  # SITE ring
        work = empty(2)
        del work
        if step % 100 == 0:
            shot("leak", top=site("ring"), bytes_per_step=MIB)


@situation()
def cleared_cache(shot):
    record()
    held = empty(400)
    del held
    shot("no leak")
    torch.cuda.empty_cache()
    shot("no leak")


@situation(PYTORCH_NO_CUDA_MEMORY_CACHING="1")
def no_caching(shot):
    record()
    held = empty(5)
    shot("empty: torch keeps no blocks in this mode")
    del held


@situation()
def fx_and_odd_names(shot):
    record()
    space = {}
    exec(compile("import torch\ndef größe_λ(n): return torch.empty(n, device='cuda')\n", "<string ünicode>", "exec"), space)
    kept = []
    for _ in range(3):
        kept.append(space["größe_λ"](2_000_000))
        shot("leak")


@situation(allocator="max_split_size_mb:32,garbage_collection_threshold:0.8")
def split_limit(shot):
    record()
    held = [empty(33), empty(64.5), empty(10)]  # noqa: F841
    work = empty(90)
    del work
    shot("no leak")


def make(out, name):
    shots = Shots(out, name)
    SITUATIONS[name](shots)
    shots.write()


def in_child(out, name):
    """The exit code of a child that makes it: forked before CUDA starts, so that torch is imported once for all."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            make(out, name)
            code = 0
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_own_process(out, name):
    return subprocess.run([sys.executable, HERE, out, "--here", name], env={**os.environ, **ENVIRONMENT[name]}, timeout=300).returncode


def main(out, *names):
    os.makedirs(out, exist_ok=True)
    if names[:1] == ("--here",):
        make(out, names[1])
        return 0
    names = names or [name for name in SITUATIONS if NEEDS.get(name, True)]
    failed = [name for name in names if (in_own_process if ENVIRONMENT[name] else in_child)(out, name) != 0]
    for name in failed:
        print(f"{name}: no snapshots were made", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
