"""Every file that a user names for output: not written through another user's link in a folder like /tmp.

    python3 tests/cli/outputs.py build/release/vramtrack

An option that writes a file and that this file does not drive fails test_every_output_is_driven. Needs root, to make links of another user.
"""
import os
import pickle
import re
import sys
import unittest

from recorder import leaking
from sandbox import MIB, Sandbox, drm_machine
from trace_writer import leaking_trace

BINARY = sys.argv.pop(1)
NOBODY = 65534
# They need something that a test lacks: a program with PyTorch, the right to load BPF programs, a run out of memory.
NOT_HERE = {("attach", "--output"), ("trace live", "--output"), ("oom show", "--output")}
MARKS = "import os\nfor i in range(400): os.write(int(os.environ['VRAMTRACK_MARK_FD']), b'step 1000\\n')"

RECORDED = "import ctypes; ctypes.CDLL(None).vramtrack_probe_mark(b'begun')"


class Outputs(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)
        self.shared = self.box.path / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self.box.run("simulate", "leaking_training", "--csv", "log.csv")
        self.box.write("oom.log", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.78 GiB\n")
        self.box.write("kept.py", "losses = []\nfor batch in data:\n    losses.append(loss)\n")
        (self.box.work / "leak").write_bytes(leaking_trace().bytes())
        for i in (20, 40):
            (self.box.work / f"s{i}").write_bytes(pickle.dumps(leaking(i, oom=990 * MIB).snapshot()))

    def commands(self):
        """{(command, option): arguments}; OUT is the file."""
        out = {("report", "--output"): ["report", "log.csv", "--output", "OUT"],
               ("analyze", "--output"): ["analyze", "log.csv", "--output", "OUT"],
               ("replay", "--output"): ["replay", "log.csv", "--output", "OUT"],
               ("explain", "--output"): ["explain", "oom.log", "--output", "OUT"],
               ("check", "--output"): ["check", "kept.py", "--output", "OUT"],
               ("holders", "--output"): ["holders", *drm_machine(), "--output", "OUT"],
               ("simulate", "--csv"): ["simulate", "leaking_training", "--csv", "OUT"],
               ("simulate", "--process-csv"): ["simulate", "leaking_training", "--process-csv", "OUT"],
               ("test", "--junit"): ["test", "--junit", "OUT", "--", sys.executable, "-c", MARKS],
               ("run", "--output"): ["run", "--output", "OUT", "--", sys.executable, "-c", RECORDED],
               ("config init", "--config"): ["config", "init", "--config", "OUT", "--force"],
               ("trace export", "--output"): ["trace", "export", "--format", "folded", "--output", "OUT", "leak"],
               ("snapshot export", "--output"): ["snapshot", "export", "--format", "folded", "--output", "OUT", "s40"]}
        for verb in ("summary", "leaks", "timeline", "oom", "flamegraph", "page"):
            out["snapshot " + verb, "--output"] = ["snapshot", verb, "--output", "OUT", "s40"]
        out["snapshot leaks", "--output"].append("s20")
        out["trace diff", "--output"] = ["trace", "diff", "--output", "OUT", "leak", "leak"]
        for verb in ("report", "flamegraph", "page", "top"):
            out["trace " + verb, "--output"] = ["trace", verb, "--output", "OUT", "leak"]
        return out

    def help(self, *command):
        return self.box.run(*command, "--help").stdout.decode()

    def test_every_output_is_driven(self):
        names = re.findall(r"^  ([a-z]+) {2,}", self.help().split("Commands:")[-1], re.M)
        found = {("config init", "--config")}
        for name in names:
            verbs = re.findall(r"^  ([a-z]+) {2,}", self.help(name).partition("Subcommands:")[2], re.M)
            for command in [[name, verb] for verb in verbs] or [[name]]:
                found |= {(" ".join(command), option) for option in re.findall(r"^  (?:-\w,)?(--output|--csv|--process-csv|--junit) ", self.help(*command), re.M)}
        self.assertEqual(found - set(self.commands()) - NOT_HERE, set(), "add these options to this test")

    def test_a_dash_is_standard_output_or_refused_and_never_a_files_name(self):
        for (command, option), arguments in self.commands().items():
            if option == "--config":  # a file that other commands read by the same name
                continue
            with self.subTest(command=command, option=option):
                done = self.box.run(*("-" if word == "OUT" else word for word in arguments))
                error = done.stderr.decode()
                if "cannot go to standard output" in error:
                    self.assertEqual(done.returncode, 2, error)
                else:
                    self.assertTrue(done.stdout, error)
                made = self.box.work / "-"
                self.assertFalse(made.exists(), "a file was named '-'")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_no_output_passes_through_the_link_of_another_user(self):
        victim = self.box.path / "victim"
        for (command, option), arguments in self.commands().items():
            for name in ("out", "out.new"):
                with self.subTest(command, option=option, link=name):
                    victim.write_text("secret")
                    for each in self.shared.iterdir():
                        each.unlink()
                    link = self.shared / name
                    link.symlink_to(victim)
                    os.lchown(link, NOBODY, NOBODY)
                    path = self.shared / "out"
                    done = self.box.run(*[str(path) if word == "OUT" else word for word in arguments])
                    self.assertEqual(victim.read_text(), "secret")
                    if name == "out":
                        self.assertIn(f"{path} is a symbolic link of another user", done.stderr.decode())
                        self.assertEqual(done.returncode != 0, command != "run", "the status of run is its program's")
                    else:
                        self.assertGreater(path.stat().st_size, 0, done.stderr)
                        self.assertTrue(path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    unittest.main()
