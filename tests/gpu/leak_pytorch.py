#!/usr/bin/env python3
"""PyTorch programs that leak as people's do, each beside its repaired twin, and healthy ones that look like leaks.

Options and files: job.py. Expandable segments: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True outside.
"""
import collections
import math
import sys

import job as jobs
from job import MIB, healthy, twins

torch = None  # open_pytorch() imports it: --list needs none
device = "cpu"


class CudaMemory:
    version = ""

    def __init__(self):
        self.version = f"PyTorch {torch.__version__}"
        self.oom_error = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)

    def allocated_bytes(self):
        return torch.cuda.memory_allocated()

    def reserved_bytes(self):
        return torch.cuda.memory_reserved()

    def changed(self, live_bytes, cap_bytes):
        pass  # the allocator enforces the cap

    def release(self):
        torch.cuda.empty_cache()

    def is_oom(self, error):
        return isinstance(error, self.oom_error) and "out of memory" in str(error).lower()


def open_pytorch(options):
    global torch, device
    import torch
    if options.dry_run:
        torch.set_num_threads(1)
        return jobs.SimulatedMemory(f"PyTorch {torch.__version__}")
    if not torch.cuda.is_available():
        raise jobs.Unavailable("PyTorch sees no GPU")
    device = "cuda"
    total_bytes = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, options.cap_mib * MIB / total_bytes))
    return CudaMemory()


class Training:
    """The loop around every defect: a small network, Adam, batches whose size wavers a little."""

    def __init__(self, job):
        self.job = job
        self.width = 32 if job.dry_run else 1024
        self.network = torch.nn.Sequential(torch.nn.Linear(self.width, self.width), torch.nn.ReLU(),
                                           torch.nn.Linear(self.width, self.width)).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.step()
        parameter_bytes = sum(p.numel() * 4 for p in self.network.parameters())
        job.hold(4 * parameter_bytes)  # weights, gradients, two moments
        job.begin()

    def rows(self, size_bytes, tensors=1):
        """How many rows make that many bytes in so many tensors of the network's width."""
        return max(1, round(size_bytes / (4 * self.width * tensors)))

    def inputs(self, rows):
        return torch.randn(rows, self.width, device=device)

    def step(self):
        rows = 8 if self.job.dry_run else self.job.random.randint(192, 256)
        self.optimizer.zero_grad(set_to_none=False)
        self.network(self.inputs(rows)).square().mean().backward()
        self.optimizer.step()


def buffer(size_bytes):
    """Bytes on the device, written to: memory that is only reserved would not count everywhere."""
    return torch.ones(max(1, int(size_bytes)), dtype=torch.uint8, device=device)


def losses(job, fixed):
    """`total += loss` without a backward pass of the loss: each loss keeps its graph."""
    training = Training(job)
    rows = training.rows(job.leak_bytes, 3)  # the graph saves the input, the hidden layer and the output
    total = 0.0
    for _ in job.steps():
        training.step()
        job.onset(not fixed)
        loss = training.network(training.inputs(rows)).square().mean()
        total = total + (loss.item() if fixed else loss)
        job.hold(0 if fixed else 3 * rows * training.width * 4)


def outputs(job, fixed):
    """Every step's output stays in a list, on the device; repaired: a summary, on the host."""
    training = Training(job)
    rows = training.rows(job.leak_bytes)
    kept = []
    for _ in job.steps():
        training.step()
        job.onset(not fixed)
        with torch.no_grad():
            output = training.network(training.inputs(rows))
        kept.append(output.mean().item() if fixed else output)
        job.hold(0 if fixed else output.numel() * 4)


def cache(job, fixed):
    """A cache of features by request, most of them new; repaired: the least recently used goes at a limit,
    so that it fills up and stays."""
    training = Training(job)
    limit = job.free_bytes // 2
    entries = collections.OrderedDict()
    held = 0
    for step in job.steps():
        training.step()
        if entries and job.random.random() < 0.2:
            entries.move_to_end(next(iter(entries)))
            continue
        size = int(job.leak_bytes * 1.25 * job.random.uniform(0.5, 1.5))
        while fixed and held + size > limit:
            _, old = entries.popitem(last=False)
            held -= old.numel()
            job.hold(-old.numel())
        job.onset(not fixed)
        entries[step] = buffer(size)
        held += size
        job.hold(size)


def evaluation(job, fixed):
    """After every epoch a validation whose predictions are kept for a report, without no_grad: graphs and all."""
    training = Training(job)
    batches = 4
    rows = training.rows(job.leak_bytes * job.epoch_steps / batches, 3)
    report = []
    for step in job.steps():
        training.step()
        if step % job.epoch_steps != job.epoch_steps - 1:
            continue
        job.onset(not fixed)
        for _ in range(batches):
            with torch.set_grad_enabled(not fixed):
                error = training.network(training.inputs(rows)).square().mean()
            report.append(error.item() if fixed else error)
            job.hold(0 if fixed else 3 * rows * training.width * 4)


def snapshots(job, fixed):
    """After every epoch a copy of the weights stays on the device; repaired: only the last one does."""
    training = Training(job)
    weights = buffer(job.leak_bytes * job.epoch_steps)
    job.hold(weights.numel())
    kept = []
    for step in job.steps():
        training.step()
        if step % job.epoch_steps != job.epoch_steps - 1:
            continue
        if fixed and kept:
            kept.clear()
            job.hold(-weights.numel())
        job.onset(not fixed)
        kept.append(weights.clone())
        job.hold(weights.numel())


def hooks(job, fixed):
    """A forward hook that stores activations is registered again every epoch and never removed: the more of
    them, the more each step stores. Repaired: removed, and the store emptied, at the epoch's end."""
    training = Training(job)
    epochs = min(20, job.life_steps)
    rows = training.rows(2 * job.leak_bytes / epochs)
    epoch_steps = job.life_steps // epochs
    probe = torch.nn.Linear(training.width, training.width).to(device)
    stored = []
    handle = None
    count = 0
    for step in job.steps():
        training.step()
        if step % epoch_steps == 0:
            if fixed and handle:
                handle.remove()
                count -= 1
                job.hold(-sum(t.numel() * 4 for t in stored))
                stored.clear()
            handle = probe.register_forward_hook(lambda module, inputs, output: stored.append(output.detach().clone()))
            count += 1
        job.onset(not fixed)
        probe(training.inputs(rows))
        job.hold(count * rows * training.width * 4)


def closures(job, fixed):
    """Callbacks for the log, each closing over an activation; repaired: over a number."""
    training = Training(job)
    rows = training.rows(job.leak_bytes)
    callbacks = []
    for _ in job.steps():
        training.step()
        with torch.no_grad():
            activation = training.network[0](training.inputs(rows))
        shown = activation.mean().item() if fixed else activation
        job.onset(not fixed)
        callbacks.append(lambda shown=shown: float(shown if fixed else shown.mean()))
        job.hold(0 if fixed else activation.numel() * 4)


def embedding(job, fixed):
    """A vocabulary that grows with the data: the table and its two moments are copied into larger ones.
    Repaired: words are hashed into a table of fixed size."""
    training = Training(job)
    every = max(job.epoch_steps // 4, 1)
    dimension = 16 if job.dry_run else 256
    grown_rows = max(1, round(job.leak_bytes * every / (3 * 4 * dimension)))
    rows = 4 * grown_rows
    tables = [torch.zeros(rows, dimension, device=device) for _ in range(3)]  # weights, two moments
    job.hold(3 * rows * dimension * 4)
    for step in job.steps():
        training.step()
        used = torch.randint(0, rows, (64,), device=device)
        for table in tables:
            table[used] += 0.01
        if fixed or step % every != every - 1:
            continue
        job.onset()
        for i, table in enumerate(tables):
            tables[i] = torch.cat([table, torch.zeros(grown_rows, dimension, device=device)])
        rows += grown_rows
        job.hold(3 * grown_rows * dimension * 4)


def sawtooth(job, fixed):
    """Results are gathered and then handed on together, the cache emptied; the defect: one in eight stays."""
    training = Training(job)
    cycles = 14
    cycle_steps = max(job.life_steps // cycles, 8)
    amplitude = job.free_bytes * 0.35
    gathered, lost = [], []
    length = cycle_steps
    share = 0.65 * job.free_bytes / cycles / amplitude
    for _ in job.steps():
        training.step()
        gathered.append(buffer(amplitude / cycle_steps))
        job.hold(gathered[-1].numel())
        if len(gathered) < length:
            continue
        stays = 0 if fixed else round(share * len(gathered))
        if stays:
            job.onset()
        lost += gathered[:stays]
        job.hold(-sum(t.numel() for t in gathered[stays:]))
        gathered = []
        job.memory.release()
        length = round(cycle_steps * job.random.uniform(0.85, 1.15))


def late(job, fixed):
    """Nothing for nearly half of the time; then a setting changes and the losses stay. Repaired: plain training."""
    training = Training(job)
    begins = round(0.45 * job.life_steps)
    rows = training.rows(job.leak_bytes / 0.55, 3)
    kept = []
    for step in job.steps():
        training.step()
        loss = training.network(training.inputs(rows)).square().mean()
        if fixed or step < begins:
            continue
        job.onset()
        kept.append(loss)
        job.hold(3 * rows * training.width * 4)


def errors(job, fixed):
    """Now and then a step fails; the exception is kept with its traceback, whose frames hold the activations.
    Repaired: its text is kept."""
    training = Training(job)
    every = max(job.life_steps // 20, 2)

    def failing_step():
        activation = buffer(job.leak_bytes * every)
        raise ValueError(f"the input of {activation.numel()} bytes is not finite")

    log = []
    for _ in job.steps():
        training.step()
        if job.random.random() >= 1 / every:
            continue
        job.onset(not fixed)
        try:
            failing_step()
        except ValueError as error:
            log.append(str(error) if fixed else error)
        job.hold(0 if fixed else job.leak_bytes * every)


def requests(job, fixed):
    """A server: requests of very different sizes come in bursts; of those cancelled the buffers stay behind."""
    Training(job)
    lost = []
    mean = 0.02 * job.free_bytes
    for step in job.steps():
        busy = 1.5 if step // max(job.epoch_steps // 2, 1) % 3 == 0 else 0.75
        arrived = sum(job.random.random() < busy / 8 for _ in range(8))
        active = [buffer(mean * min(job.random.lognormvariate(-0.5, 1.0), 8.0)) for _ in range(arrived)]
        held = sum(t.numel() for t in active)
        job.hold(held)
        # The share lost is such that the bytes lost are leak_bytes a step on average.
        cancelled = [] if fixed else [t for t in active if job.random.random() < job.leak_bytes / mean]
        if cancelled:
            job.onset()
        lost += cancelled
        job.hold(-held + sum(t.numel() for t in cancelled))


def batch_varies(job):
    """Batches of very different sizes: the allocator's cache is a running maximum."""
    training = Training(job)
    for _ in job.steps():
        training.step()
        size = int(job.free_bytes * 0.5 * min(1.0, 0.12 * job.random.lognormvariate(0.0, 0.7)))
        batch = buffer(size)
        job.hold(size)
        del batch
        job.hold(-size)


def warm_up(job):
    """Layers thaw one after another, each smaller than the one before; their optimizer state appears; then it stays."""
    training = Training(job)
    state = []
    for step in job.steps():
        training.step()
        if step % 2 == 0:
            grown = 0.55 * job.free_bytes * (math.exp(-step / (0.12 * job.life_steps)) - math.exp(-(step + 2) / (0.12 * job.life_steps)))
            if grown > 64 * 1024:
                state.append(buffer(grown))
                job.hold(state[-1].numel())


def shards(job):
    """A model read in eight shards with pauses, then steady work."""
    training = Training(job)
    every = max(job.life_steps // 50, 2)
    loaded = []
    for step in job.steps():
        training.step()
        if step % every == 0 and len(loaded) < 8:
            loaded.append(buffer(0.09 * job.free_bytes))
            job.hold(loaded[-1].numel())


def reservation(job):
    """A server takes its key-value cache at once and works inside it."""
    Training(job)
    blocks = None
    for step in job.steps():
        if step == max(job.life_steps // 20, 1):
            blocks = buffer(0.7 * job.free_bytes)
            job.hold(blocks.numel())
        if blocks is not None:
            blocks[job.random.randrange(blocks.numel() - 1024):][:1024] += 1


def load_varies(job):
    """A tide of requests, up and down; what is not needed goes back to the driver."""
    Training(job)
    active = []
    period = max(job.life_steps // 3, 8)
    size = job.free_bytes * 0.6 / 40
    for step in job.steps():
        wanted = round(20 - 20 * math.cos(2 * math.pi * step / period) * job.random.uniform(0.9, 1.0))
        while len(active) < wanted:
            active.append(buffer(size))
            job.hold(active[-1].numel())
        while len(active) > wanted:
            job.hold(-active.pop().numel())
        job.memory.release()


KINDS = [
    *twins(losses, "losses_kept", "losses_item", "gradual_leak", expandable=True),
    *twins(cache, "cache_unbounded", "cache_lru", "gradual_leak", expandable=True),
    *twins(sawtooth, "sawtooth_rising", "sawtooth", "cyclic", expandable=True),
    *twins(embedding, "embedding_grows", "embedding_fixed", "gradual_leak", expandable=True),
    *twins(errors, "errors_kept", "errors_text", "step_increase", expandable=True),
    healthy(batch_varies, "batch_varies", expandable=True),
    *twins(evaluation, "eval_graphs", "eval_no_grad", "step_increase"),
    *twins(late, "late_onset", "training", "gradual_leak"),
    *twins(hooks, "hooks_stacked", "hooks_removed", "gradual_leak"),
    *twins(requests, "requests_lost", "requests_done", "gradual_leak"),
    *twins(outputs, "outputs_kept", "outputs_summed", "gradual_leak"),
    *twins(snapshots, "snapshots_kept", "snapshot_last", "step_increase"),
    *twins(closures, "closures_kept", "closures_number", "gradual_leak"),
    healthy(warm_up, "warm_up"),
    healthy(shards, "shards"),
    healthy(reservation, "reservation"),
    healthy(load_varies, "load_varies"),
]

if __name__ == "__main__":
    sys.exit(jobs.main(KINDS, open_pytorch))
