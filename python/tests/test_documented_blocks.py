"""Every code block of gpumemprof's page on leak detection runs here with only its import line changed. Names that a block
leaves undefined are supplied; the GPU is a simulated one that the supplied functions drive."""
import pathlib
import sys
import types

import pytest

import vramtrack

MIB = 2**20
BLOCKS = pathlib.Path(__file__).parent / "documented"


def run(name, namespace, capsys):
    code = compile((BLOCKS / f"{name}.txt").read_text(), name, "exec")
    exec(code, namespace)
    return capsys.readouterr().out


class Tensor:
    """A tensor on the simulated device, as far as the blocks look at it."""

    def __init__(self, device, size_bytes, shape=(4, 8)):
        self.device, self.shape = device, shape
        self.handle = device.allocate(size_bytes, depth=1)

    def __del__(self):
        self.device.free(self.handle)

    def sum(self):
        return Tensor(self.device, 512)

    def backward(self):
        with self.device.temporary(4 * MIB):
            pass

    def detach(self):
        return self

    def cpu(self):
        return 0.0

    def item(self):
        return 0.0


@pytest.fixture
def model(device):
    return lambda batch: Tensor(device, 8 * MIB)


def profiled(device, function, times=100, name="train_step"):
    profiler = vramtrack.GPUMemoryProfiler(source=device)
    function.__name__ = name
    for _ in range(times):
        profiler.profile_function(function)
    return profiler


def leaking(device, mib_per_call=20):
    return lambda: device.allocate(mib_per_call * MIB) and None


@pytest.fixture
def torch_stand_in(monkeypatch):
    """`import torch` of the blocks, on a machine without it."""
    try:
        import torch  # noqa: F401
    except ImportError:
        monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))


def test_basic(device, torch_stand_in, capsys):
    def training_step(model, data):
        device.allocate(20 * MIB)

    out = run("01_basic", {"training_step": training_step, "model": None, "data": None}, capsys)
    assert "Severity: critical" in out
    assert "Affected functions: ['training_step']" in out
    # The growth is measured after the first call: 99 calls of 20 MiB, or all but the ends of the run.
    assert float(out.split("Total growth: ")[1].split(" MB")[0]) == pytest.approx(2000, rel=0.02)
    assert "  - " in out


def test_pattern_structure():
    namespace = {"MemoryPattern": vramtrack.MemoryPattern}
    exec((BLOCKS / "02_pattern.txt").read_text(), namespace)
    pattern = namespace["leak_pattern"]
    assert (pattern.pattern_type, pattern.severity) == ("memory_leak", "critical")
    assert pattern.metrics["call_count"] == 100 and len(pattern.suggestions) == 4


def test_gradient_accumulation(device, model, capsys):
    run("03_gradient_accumulation", {"model": model, "data": None}, capsys)


def test_hidden_reference_leaks_and_its_fix_does_not(device, model, capsys):
    held = []

    class Loader:
        """Counts what is held each time the block goes through all batches."""

        def __iter__(self):
            yield from range(20)
            held.append(device.counters().allocated)

    namespace = {"model": model, "dataloader": Loader()}
    run("04_hidden_reference", namespace, capsys)
    assert held[0] == 20 * 8 * MIB, "the leaking loop keeps every output"
    assert held[1] <= 8 * MIB, "the fixed one keeps the last"


def test_cache_leaks_and_is_bounded(device, capsys):
    namespace = {"expensive_operation": lambda x: Tensor(device, 8 * MIB)}
    run("05_cache", namespace, capsys)
    before = device.counters().allocated
    for n in range(400):
        namespace["cached_forward"](("shape", n))
    assert device.counters().allocated - before == 128 * 8 * MIB


def test_temporal_trend(device, capsys, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("vramtrack.profiler._now", lambda: now[0])

    def step():
        device.allocate(20 * MIB)
        now[0] += 10

    out = run("06_temporal", {"MemoryAnalyzer": vramtrack.MemoryAnalyzer, "profiler": profiled(device, step)}, capsys)
    assert "Memory growing at 2.00 MB/s" in out
    assert "Correlation: 1.000" in out and "p=0.0000" in out


def test_specific_functions(device, capsys):
    profiler = profiled(device, leaking(device))
    namespace = {"profiler": profiler, "analyzer": vramtrack.MemoryAnalyzer(profiler)}
    out = run("07_specific_functions", namespace, capsys)
    assert "Memory changes: [20.0, 20.0" in out
    assert "Total growth: 2000.00 MB" in out
    assert [p.pattern_type for p in namespace["patterns"]] == ["memory_leak"]


def test_fragmentation_and_leaks_are_told_apart(device, capsys):
    analyzer = vramtrack.MemoryAnalyzer(profiled(device, leaking(device)))
    assert "Found 1 potential leaks\nFound 0 fragmentation issues" in run("08_fragmentation", {"analyzer": analyzer}, capsys)


def test_report(device, capsys):
    profiler = profiled(device, leaking(device))
    out = run("09_report", {"MemoryAnalyzer": vramtrack.MemoryAnalyzer, "profiler": profiler}, capsys)
    assert "CRITICAL: " in out and "Leak detected:" in out and "Functions: ['train_step']" in out
    assert "[HIGH] " in out and "Optimization score: " in out and "/100 (" in out


def test_thresholds(device, capsys):
    profiler = profiled(device, leaking(device))
    namespace = {"MemoryAnalyzer": vramtrack.MemoryAnalyzer, "profiler": profiler}
    run("10_thresholds", namespace, capsys)
    assert [p.pattern_type for p in namespace["patterns"]] == ["memory_leak"]
    assert namespace["analyzer"].thresholds["memory_leak_ratio"] == 0.2
    defaults = vramtrack.MemoryAnalyzer().thresholds
    documented = {"memory_leak_ratio": 0.1, "min_calls_for_analysis": 3, "fragmentation_ratio": 0.3,
                  "inefficient_allocation_ratio": 0.5}  # fmt: skip
    assert {name: defaults[name] for name in documented} == documented


@pytest.mark.parametrize("rules", ["vramtrack", "documented"])
def test_repeated_allocations(device, capsys, rules):
    held = []

    profiler = vramtrack.GPUMemoryProfiler(source=device)

    def allocate():
        held.append(device.allocate(10 * MIB))

    def release():
        device.free(held.pop())

    for _ in range(30):
        profiler.profile_function(allocate)
        profiler.profile_function(release)
    out = run("11_repeated", {"analyzer": vramtrack.MemoryAnalyzer(profiler, rules=rules)}, capsys)
    assert "  - allocate" in out and "Total memory impact: 300.00 MB" in out


def test_spikes(device, capsys):
    profiler = vramtrack.GPUMemoryProfiler(source=device)

    def forward(size_mib):
        handles.append(device.allocate(size_mib * MIB))

    handles = []
    for n in range(50):
        profiler.profile_function(forward, 900 if n == 30 else 10 + n % 3)
        device.free(handles.pop())
    out = run("12_spikes", {"analyzer": vramtrack.MemoryAnalyzer(profiler)}, capsys)
    assert "Detected 1 memory spikes" in out and "Max allocation: 900.00 MB" in out and "Median allocation: 11.00 MB" in out


def test_workflow(device, capsys):
    """The debugging workflow's first three steps, one after the other as the page has them."""

    def suspected_function(args):
        with device.temporary(30 * MIB):
            device.allocate(5 * MIB)

    profiler = profiled(device, leaking(device))
    namespace = {"MemoryAnalyzer": vramtrack.MemoryAnalyzer, "GPUMemoryProfiler": vramtrack.GPUMemoryProfiler,
                 "profiler": profiler, "suspected_function": suspected_function, "args": None}  # fmt: skip
    run("13_identify", namespace, capsys)
    assert len(namespace["leaks"]) == 1
    assert "Avg growth per call: 5.00 MB" in run("14_isolation", namespace, capsys)
    out = run("15_stacks", namespace, capsys)
    assert out.startswith(f"{__file__}:") and "in suspected_function" in out.splitlines()[0]


def test_cuda_itself(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch", reason="this block is PyTorch's own profiler: it needs torch and a GPU")
    if not torch.cuda.is_available():
        pytest.skip("this block is PyTorch's own profiler on CUDA: it needs a GPU")
    monkeypatch.chdir(tmp_path)
    kept = []
    run("16_cuda", {"suspected_function": lambda: kept.append(torch.ones(1 << 20, device="cuda"))}, capsys)
    assert (tmp_path / "memory_snapshot.pickle").exists()


def test_no_block_is_left_out():
    tested = pathlib.Path(__file__).read_text()
    assert all(f'"{path.stem}' in tested for path in BLOCKS.glob("*.txt"))
    assert len(list(BLOCKS.glob("*.txt"))) == 16
