"""One finding per leak: traces of small programs, and what a reader should be told about each.

    python3 tests/cli/findings.py build/release/vramtrack            run
    python3 tests/cli/findings.py build/release/vramtrack --update   rewrite tests/golden/trace/kept_graph.txt
"""
import json
import sys
import unittest

from sandbox import TESTS, Sandbox
from trace_writer import Trace

TRAIN, MODEL, TORCH = "/home/me/train.py", "/home/me/model.py", "/venv/lib/python3.11/site-packages/torch"
MAIN = (TRAIN, 90, "<module>")
LOOP = (TRAIN, 80, "train")
BACKWARD = ((f"{TORCH}/autograd/graph.py", 7, "_engine_run_backward"), (f"{TORCH}/_tensor.py", 5, "backward"))


class Program:
    """A training with a forward pass through `layers`, a loss, a backward pass and an optimizer, step by step."""

    def __init__(self, layers=3):
        self.trace, self.layers, self.next, self.held, self.stacks = Trace(), layers, 0x7000_0000_0000, {}, {}
        weights = ((MODEL, 7, "build"), MAIN)
        for _ in range(8):
            self.keep("weights", 64 << 20, *weights)

    def take(self, size, *frames):
        stack = self.stacks.get(frames) or self.stacks.setdefault(frames, self.trace.stack(*frames))
        self.next += max(512, size + 511 & ~511)
        self.trace.alloc(self.next, size, stack)
        return self.next

    def keep(self, owner, size, *frames):
        self.held.setdefault(owner, []).append(self.take(size, *frames))

    def step(self, keeps=(), owner=None):
        """Allocates what a step needs and releases it, without the parts that are kept: batch, layers, out, loss, grads."""
        owner, taken = owner or (lambda part: "graph"), []

        def part(name, size, *frames):
            block = self.take(size, *frames)
            if name in keeps:
                self.held.setdefault(owner(name), []).append(block)
            else:
                taken.append(block)

        part("batch", 3 << 20, (TRAIN, 81, "train"), MAIN)
        for _ in range(self.layers):
            part("layers", 1 << 20, (MODEL, 20, "forward"), (TRAIN, 82, "train"), MAIN)
            part("scratch", 1 << 16, (MODEL, 21, "forward"), (TRAIN, 82, "train"), MAIN)
        part("out", 1 << 18, (MODEL, 30, "head"), (TRAIN, 82, "train"), MAIN)
        part("loss", 4, (TRAIN, 83, "train"), MAIN)
        for _ in range(2 * self.layers):
            part("grads", 1 << 19, *BACKWARD, (TRAIN, 84, "train"), MAIN)
        part("optimizer", 1 << 19, (f"{TORCH}/optim/adam.py", 9, "step"), (TRAIN, 85, "train"), MAIN)
        for block in taken:
            self.trace.free(block)

    def end(self):
        """Owner by owner, each block in turn, as an interpreter that ends."""
        for blocks in self.held.values():
            for block in blocks:
                self.trace.free(block)
        return self.trace

    def kill(self):
        return self.trace


def kept_graph(end=True):
    program = Program()
    for _ in range(200):
        program.step(("batch", "layers", "out", "loss"))
    return program.end() if end else program.kill()


def kept_losses():
    program = Program()
    for _ in range(200):
        program.step(("loss",))
    return program.end()


def kept_outputs():
    program = Program()
    for _ in range(200):
        program.step(("layers", "out"))
    return program.end()


def kept_gradients():
    program = Program()
    for _ in range(200):
        program.step(("layers", "loss", "grads"))
    return program.end()


def cache():
    """A key and a value for every step, which nothing evicts."""
    program = Program()
    for _ in range(200):
        program.step()
        program.keep("cache", 8192, (TRAIN, 30, "encode"), (TRAIN, 86, "train"), MAIN)
        program.keep("cache", 64, (TRAIN, 31, "lookup"), (TRAIN, 86, "train"), MAIN)
    return program.end()


def in_other_steps(end=True):
    """Two leaks of 100 blocks each, one in the even steps and one in the odd ones."""
    program = Program()
    for step in range(200):
        program.step()
        if step % 2 == 0:
            program.keep("even", 4096, (TRAIN, 40, "log"), MAIN)
        else:
            program.keep("odd", 8192, (TRAIN, 50, "sample"), MAIN)
    return program.end() if end else program.kill()


def two_owners():
    """Two lists that grow in every step, and are released one after the other."""
    program = Program()
    for _ in range(200):
        program.step(("out", "batch"), owner=lambda part: part)
    return program.end()


def step_and_epoch():
    program = Program()
    for step in range(300):
        program.step(("loss",))
        if step % 10 == 9:
            program.keep("epochs", 1 << 20, (TRAIN, 60, "evaluate"), MAIN)
    return program.kill()


def epochs():
    """An evaluation an epoch keeps its outputs and its score."""
    program = Program()
    for step in range(400):
        program.step()
        if step % 20 == 19:
            for _ in range(4):
                program.keep("scores", 1 << 20, (TRAIN, 60, "evaluate"), (TRAIN, 88, "train"), MAIN)
            program.keep("scores", 512, (TRAIN, 61, "score"), (TRAIN, 88, "train"), MAIN)
    return program.end()


def optimizer():
    """States for every weight in the first step: no leak."""
    program = Program()
    for step in range(200):
        program.step()
        if step == 0:
            for _ in range(16):
                program.keep("state", 1 << 20, (f"{TORCH}/optim/adam.py", 3, "_init_group"), (TRAIN, 85, "train"), MAIN)
    return program.end()


def late_graph():
    """A graph that is kept from two thirds of the run on: three lines that only together gained the most."""
    program = Program()
    for step in range(300):
        program.step(("batch", "layers", "loss") if step >= 270 else ())
    return program.end()


# For each finding: the lines, the keeping one first, and the blocks.
PROGRAMS = {
    "kept graph": (kept_graph(), [({83, 81, 20, 30}, 83, 200 * 6)]),
    "kept graph, killed": (kept_graph(end=False), [({83, 81, 20, 30}, 83, 200 * 6)]),
    "kept losses": (kept_losses(), [({83}, 83, 200)]),
    "kept outputs": (kept_outputs(), [({30, 20}, 30, 200 * 4)]),
    "kept gradients": (kept_gradients(), [({84, 83, 20}, 84, 200 * 10)]),
    "a cache": (cache(), [({30, 31}, 31, 400)]),
    "other steps": (in_other_steps(), [({50}, 50, 100), ({40}, 40, 100)]),
    "other steps, killed": (in_other_steps(end=False), [({50}, 50, 100), ({40}, 40, 100)]),
    "two owners": (two_owners(), [({81}, 81, 200), ({30}, 30, 200)]),
    "a step and an epoch": (step_and_epoch(), [({60}, 60, 30), ({83}, 83, 300)]),
    "epochs": (epochs(), [({61, 60}, 61, 100)]),
    "optimizer": (optimizer(), []),
    "late graph": (late_graph(), [({83, 81, 20}, 83, 30 * 5)]),
}


class Findings(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def report(self, trace, *args):
        (self.box.work / "trace").write_bytes(trace.bytes())
        return self.box.run("trace", "report", *args, "trace").stdout.decode()

    def test_one_finding_a_leak(self):
        for name, (trace, truth) in PROGRAMS.items():
            with self.subTest(name):
                report = json.loads(self.report(trace, "--format", "json"))
                own = [next((f["line"] for f in site["frames"] if f["file"].startswith("/home")), None) for site in report["sites"]]
                found = [({own[i] for i in finding["sites"]}, own[finding["sites"][0]], finding["live_count"])
                         for finding in report["findings"]]  # fmt: skip
                self.assertEqual(found, truth)

    def test_the_keeper_comes_first_and_nothing_is_zero_mebibytes(self):
        text = self.report(PROGRAMS["kept graph"][0])
        golden = TESTS / "golden/trace/kept_graph.txt"
        if UPDATE:
            golden.write_text(text)
        self.assertEqual(golden.read_text(), text)
        self.assertRegex(text, r"^LEAK: /home/me/train.py:83 train keeps \d+\.\d MiB/s \(1\.2 GiB in 1,200 blocks of 4 lines are live\)\n")
        self.assertNotIn(" 0 MiB", text)
        self.assertIn("because 1 leak of 4 sites kept growing", text)


UPDATE = "--update" in sys.argv

if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--update"]
    BINARY = sys.argv.pop(1)
    unittest.main()
