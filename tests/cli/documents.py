"""The documents against the program: the README's commands run; the man page, the completions and the JSON contract
name all there is, and no more."""
import ast
import contextlib
import json
import os
import pathlib
import pickle
import pty
import re
import select
import shutil
import subprocess
import sys
import textwrap
import time
import unittest
import zlib

from patience import patience
from recorder import leaking
from sandbox import FIXTURES, MIB, TESTS, Sandbox, leak_log
from trace_writer import leaking_trace

BINARY = sys.argv.pop(1)
ROOT = TESTS.parent
VERSION = (ROOT / "VERSION").read_text().strip()


def read(path):
    """A document without the lines that become true once a release is published (scripts/published.py)."""
    return re.sub(r"<!-- published:\n.*?\n-->\n", "", (ROOT / path).read_text(), flags=re.DOTALL)


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Sandbox(BINARY, alerts_wait=True) as box:
            cls.helps = {(): box.run("--help").stdout.decode()}
            for command in cls.commands(cls.helps[()]):
                cls.helps[(command,)] = box.run(command, "--help").stdout.decode()
            for (group,), text in list(cls.helps.items())[1:]:
                for verb in cls.commands(text):
                    cls.helps[(group, verb)] = box.run(group, verb, "--help").stdout.decode()
            box.write("leak.csv", leak_log())
            cls.row = json.loads(box.run("analyze", "--format", "json", "--explain", "leak.csv").stdout.decode().splitlines()[0])
        cls.options = {o for text in cls.helps.values() for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text.split("Example")[0])}
        cls.words = {word for command in cls.helps for word in command}

    @staticmethod
    def commands(text):
        """Those that a help lists; none for a command without verbs."""
        listed = re.search(r"(?:Subcommands|SUBCOMMANDS):\n((?:  .*\n)+)", text)
        return re.findall(r"^  ([a-z]+) ", listed[1], re.MULTILINE) if listed else []

    def test_help_was_understood(self):
        self.assertLessEqual({"watch", "replay", "analyze", "simulate", "doctor", "config", "show", "path", "init", "oom"}, self.words)
        self.assertLessEqual({"--help", "--version", "--config", "--set", "--detector", "--format"}, self.options)
        self.assertIn(("oom", "show"), self.helps)

    def test_every_help_has_an_example(self):
        for command, text in self.helps.items():
            self.assertRegex(text, r"Examples?:\n +.*vramtrack", f"vramtrack {' '.join(command)} --help")

    def test_a_decision_has_its_status_and_its_date(self):
        for path in sorted((ROOT / "docs" / "design").glob("[0-9]*.md")):
            with self.subTest(path.name):
                self.assertRegex(path.read_text(), r"(?m)^Status: (proposed|built|replaced by \[.*\]), decided 20\d\d-\d\d-\d\d\b")

    def test_the_man_page_has_every_command_and_option(self):
        page = read("docs/man/vramtrack.1").replace("\\-", "-")
        for word in self.words | self.options:
            self.assertRegex(page, rf"(?<![\w-]){word}(?![\w-])")
        stale = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) - self.options - {"--query-gpu", "--format"}
        self.assertFalse(stale)

    def test_the_man_page_says_what_each_command_does(self):
        section = re.search(r"^\.SH COMMANDS\n(.*?)^\.SH ", read("docs/man/vramtrack.1"), re.MULTILINE | re.DOTALL)[1]
        entries = re.findall(r"^\.TP\n\.B (.+)\n(?=[^.\n])", section, re.MULTILINE)
        self.assertEqual(entries, [" ".join(command) for command in sorted(self.helps, key=self.order) if command])

    def order(self, command):
        """That of the help: a verb behind its command."""
        at = [self.commands(self.helps[()]).index(word) for word in command[:1]]
        return at + [self.commands(self.helps[command[:1]]).index(word) + 1 for word in command[1:]]

    @unittest.skipUnless(shutil.which("mandoc") or shutil.which("groff"), "neither mandoc nor groff is installed")
    def test_the_man_page_is_well_formed(self):
        page = str(ROOT / "docs/man/vramtrack.1")
        tool = ["mandoc", "-T", "lint", "-W", "warning", page] if shutil.which("mandoc") else ["groff", "-man", "-ww", "-z", page]
        result = subprocess.run(tool, capture_output=True, check=False)
        self.assertEqual(result.stderr + result.stdout, b"")

    def test_completions_have_every_command_and_option(self):
        for name in ("vramtrack.bash", "_vramtrack"):
            text = read(f"contrib/completions/{name}")
            for word in self.words | self.options:
                self.assertRegex(text, rf"(?<![\w-]){word}(?![\w-])", name)
            self.assertFalse(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - self.options, name)
        fish = read("contrib/completions/vramtrack.fish")
        for word in self.words:
            self.assertRegex(fish, rf"\b{word}\b")
        self.assertEqual({f"--{o}" for o in re.findall(r"^complete .* -l ([a-z-]+)", fish, re.MULTILINE)}, self.options)

    def test_completions_are_valid_shell(self):
        for shell, name in (("bash", "vramtrack.bash"), ("zsh", "_vramtrack"), ("fish", "vramtrack.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", str(ROOT / "contrib/completions" / name)], check=True)

    def test_bash_completes(self):
        script = str(ROOT / "contrib/completions/vramtrack.bash")
        for typed, expected in ((["wa"], "watch"), (["watch", "--on"], "--once"), (["snapshot", "le"], "leaks"),
                                (["snapshot", "leaks", "--us"], "--used"), (["config", "init", "--f"], "--force"),
                                (["report", "--format", ""], "text md json html"),
                                (["snapshot", "export", "--format", "c"], "chrome csv"), (["watch", "--interval", ""], ""),
                                (["analyze", "/etc/passw"], "/etc/passwd"), (["simulate", "leaking_t"], "leaking_training")):
            code = f'source {script}; COMP_WORDS=(vramtrack "$@"); COMP_CWORD=$#; _vramtrack; echo "${{COMPREPLY[*]}}"'
            words = subprocess.run(["bash", "-c", code, "bash", *typed], capture_output=True, check=True).stdout.decode().split()
            self.assertLessEqual(set(expected.split()), set(words), typed)
            self.assertEqual(expected == "", not words, typed)

    def test_every_field_of_the_json_is_documented(self):
        text = read("docs/formats/analysis.md")
        fields = set(self.row) | set(self.row["series"]) | set(self.row["verdict"]) | set((self.row["alerts"] + self.row["suspicions"])[0])
        for field in fields:
            self.assertRegex(text, rf"[`.]{field}`", field)

    def test_every_command_line_in_the_documents_is_possible(self):
        seen = 0
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
            if "design" in page.parts:
                continue
            text = page.read_text()
            lines = re.findall(r"^ {4,}(?:\$ )?(?:sudo )?vramtrack ([a-z].*)", text, re.MULTILINE)
            if page.parent == ROOT / "docs":
                lines += re.findall(r"`(?:sudo )?vramtrack ([a-z][^`]*)`", text)
            for line in (re.split(r"  +| -- |#|\|", line)[0] for line in lines):
                words = line.split()
                if "." in words[0]:  # a recording
                    words.insert(0, "analyze")
                command = next((key for key in (tuple(words[:2]), tuple(words[:1])) if key in self.helps), None)
                with self.subTest(f"{page.relative_to(ROOT)}: vramtrack {line}"):
                    self.assertIsNotNone(command, "there is no such command")
                    options = re.findall(r"(?<!\S)(--[a-z-]+)", line)
                    self.assertFalse([o for o in options if not re.search(rf"{o}(?![\w-])", self.helps[command])])
                    seen += 1
        self.assertGreater(seen, 20)

    def test_every_setting_named_in_the_documents_exists(self):
        with Sandbox(BINARY, alerts_wait=True) as box:
            shown = box.run("config", "show").stdout.decode()
        keys = set(re.findall(r"^([a-z-]+) = ", shown, re.MULTILINE))
        self.assertEqual(set(re.findall(r"^\| `([a-z-]+)` \|", read("docs/CONFIG.md"), re.MULTILINE)), keys)

    def test_every_program_that_begins_runs_is_documented(self):
        table = re.search(r"kSessionHosts = .*?\{(.*?)\}\);", (ROOT / "src/host/launch.cpp").read_text(), re.DOTALL)[1]
        shown = read("docs/METRICS.md").split("### What begins runs")[1].split("\n## ")[0]
        named = [name for row in re.findall(r"^\| .*? \| (`.*) \|$", shown, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)]
        self.assertCountEqual(named, [*re.findall(r'"(.*?)"', table), "containerd-shim"])


# A log recorder: prints the columns of a simulated log that the README's command asks for. It ends if it runs under `timeout`, and only then.
NVIDIA_SMI = """#!{python}
import csv, os, signal, sys
what, columns = next(a for a in sys.argv if a.startswith("--query-")).split("=")
rows = list(csv.reader(open("{folder}/" + ("gpu.csv" if what == "--query-gpu" else "apps.csv")), skipinitialspace=True))
at = [[title.split(" ")[0] for title in rows[0]].index(column) for column in columns.split(",")]
for row in rows:
    print(", ".join(row[i] for i in at), flush=True)
if "TIME_IS_UP" not in os.environ:
    signal.pause()
"""
# A `timeout` that expires as soon as the recorder has printed its whole log.
TIMEOUT = """#!/bin/sh
shift
TIME_IS_UP=1 "$@"
exit 124
"""


class Manual(unittest.TestCase):
    """Every command of the README and of the pages beside it is run here, in its order and in one sandbox, or is in NOT_RUN with the reason."""

    PAGES = ["README.md", *(f"docs/{name}.md" for name in ("install", "check", "watch", "analyze", "simulate", "replay", "doctor", "control", "oom", "programs"))]
    #: whose tables hold lines to type, too
    WITH_TABLES = ("README.md", "docs/install.md")

    NOT_RUN = {
        "sudo vramtrack trace live --pid 4711": "needs root and a program that uses a GPU: tests/telemetry/live.py",
        "vramtrack control --limit 20GiB": "needs a program under the probe: it is an example, below",
        "vramtrack programs -- python train.py --batch-size 32": "needs finished runs of the command: tests/cli/experience.py",
        "sudo apt-get install -y make": "needs root and a network",
        "make run": "builds the program, then runs 'vramtrack watch --or-simulate'",
        "sudo make install": "needs root",
        "make deb": "builds the package; CI runs it",
        "sudo scripts/aarch64.sh wheels": "cross-builds them in a chroot",
        "make portable": "builds another preset",
        "make dist": "builds every package",
        "make manual": "needs a network the first time; `make dist` runs it",
        "make chart": "packs a folder; tests/packages/release_scripts.py",
        "make aarch64": "builds and tests in a chroot of its own",
        f"sudo apt install ./dist/vramtrack_{VERSION}_amd64.deb": "make try-deb installs it in a chroot",
        f"pip install dist/vramtrack-{VERSION}-cp312-abi3-manylinux_2_34_x86_64.whl": "make wheels installs each and tests it",
        "make wheels": "builds for every Python",
        "make container": "needs podman or docker and a network",
        "pip install .": "needs a network",
        "sudo systemctl enable --now vramtrack": "needs root and systemd",
        "sudo systemctl enable --now vramtrack-agent": "needs root and systemd",
    }
    NAMED = ("vramtrack fleet",)  # a command's name within a sentence
    #: exit statuses other than 0: these find the leak of their input, or report that this machine lacks something
    STATUS = {"timeout": {0, 124}, "vramtrack analyze": {1}, "vramtrack gpu.csv": {1}, "vramtrack replay": {1}, "vramtrack report": {0, 1}, "vramtrack doctor": {0, 1}}
    #: these run until Ctrl-C: what they print first
    UNTIL = {
        "vramtrack watch": "GPU 0",
        "vramtrack watch --or-simulate": "GPU 0",
        "vramtrack watch --json": "vramtrack.analysis.v1",
        "vramtrack top": r"\x1b\[\?1049h[\s\S]*GPU",
        "vramtrack agent": r"http://127\.0\.0\.1:\d+",
    }

    #: One example of each page that is not in PAGES, by its command, and the exit statuses; they run as they stand on the page.
    EXAMPLES = {
        "agent": ("vramtrack agent --scenario leaking_training", {0}),
        "top": ("vramtrack top --once", {0}),
        "report": ("vramtrack report gpu.csv apps.csv", {1}),
        "fleet": ("vramtrack fleet exporters", {0}),
        "snapshot": ("vramtrack snapshot summary step100.pickle", {0}),
        "run": ("vramtrack run -- python train.py", {0}),
        "trace": ("vramtrack trace report trace.vramtrack", {1}),
        "explain": ("vramtrack explain train.log", {0}),
        "test": ("vramtrack test --limit 1MiB/iter -- python bench.py", {0}),
        "mark": ("vramtrack mark --pid 2002 step=1200", {0}),
        "silence": ("vramtrack silence add --gpu 0 --for 2h --comment 'driver update'", {0}),
        "holders": ("vramtrack holders", {0}),
        "wait": ("vramtrack wait --pid 4242 --gone", {0}),
        "reclaim": ("vramtrack reclaim --dry-run", {0}),
        "policy": ("vramtrack policy check", {0}),
        "fit": ("vramtrack fit config.json --memory 80GiB --train adamw,bf16 --batch 4 --context 4096", {0, 1}),
        "config": ("vramtrack config show", {0}),
        "control": ("vramtrack control --limit 20GiB", {0}),
        "attach": ("vramtrack attach 4242 --duration 0 --kept", {0}),
        "actuate": ("vramtrack actuate --policy fleet.toml", {0}),
    }

    @staticmethod
    def blocks(text):
        """The language and the lines of each fenced block."""
        return [(m[2], [line.removeprefix(m[1]) for line in m[3].splitlines()])
                for m in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)]

    @classmethod
    def commands(cls, pages=PAGES):
        """What a reader may copy: the lines of the sh blocks, then the commands within sentences and tables."""
        out = []
        for page in pages:
            text = read(page)
            out += [re.sub(r"\s+#.*", "", line) for language, lines in cls.blocks(text) if language == "sh" for line in lines if line]
            if page in cls.WITH_TABLES:
                out += [line for line in re.findall(r"`((?:vramtrack|make|sudo|pip|build/\S+) [^`]+)`", cls.prose(text)) if line not in cls.NAMED]
        return list(dict.fromkeys(out))

    @staticmethod
    def prose(text):
        return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)

    def setUp(self):
        self.box = Sandbox(BINARY, alerts_wait=True).__enter__()
        self.addCleanup(self.box.__exit__)
        tools, logs = self.box.path / "bin", self.box.path / "logs"
        for folder in (tools, logs, self.box.work / "build" / "release"):
            folder.mkdir(parents=True)
        self.box.run("simulate", "--csv", str(logs / "gpu.csv"), "--process-csv", str(logs / "apps.csv"))
        for log in ("gpu.csv", "apps.csv"):
            shutil.copy(logs / log, self.box.work)
        for log in ("monday.csv", "today.csv"):
            shutil.copy(logs / "gpu.csv", self.box.work / log)
        (self.box.work / "program.log").write_text("".join(f"step {n} mem={8000 + 20 * n}MiB\n" for n in range(400)))
        (tools / "nvidia-smi").write_text(NVIDIA_SMI.format(python=sys.executable, folder=logs))
        (tools / "timeout").write_text(TIMEOUT)
        for tool in ("nvidia-smi", "timeout"):
            (tools / tool).chmod(0o755)
        for link in (tools / "vramtrack", self.box.work / "build" / "release" / "vramtrack"):
            link.symlink_to(self.box.binary)
        (self.box.work / "train.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; "
                                                 "13.20 GiB already allocated; 1.05 GiB free; 13.40 GiB reserved in total by PyTorch)\n")
        (self.box.work / "train.py").write_text("print('trained')\n")  # it allocates nothing, so it records nothing
        (self.box.work / "vramtrack.python.4242.trace").write_bytes(leaking_trace(command="python train.py --batch-size 32").bytes())
        trace = leaking_trace()  # the newest trace, which `vramtrack oom show` reads
        trace.put("failed", trace.stack(("/home/me/train.py", 42, "train_step")), trace.now_us, 32 << 20, 64 << 20, call=1)
        (self.box.work / "vramtrack.train.4242.trace").write_bytes(trace.bytes())
        (self.box.work / "trace.vramtrack").write_bytes(trace.bytes())
        (self.box.work / "step100.pickle").write_bytes(pickle.dumps(leaking(100, oom=990 * MIB).snapshot()))
        (self.box.work / "bench.py").write_text("import os\nfor i in range(400): os.write(int(os.environ['VRAMTRACK_MARK_FD']), b'step 1000\\n')\n")
        (self.box.work / "config.json").write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
            "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}))
        (tools / "python").symlink_to(sys.executable)
        (self.box.work / "docs").symlink_to(ROOT / "docs")  # the README's example
        self.env = self.box.environment({
            "PATH": f"{tools}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(self.box.path), "VRAMTRACK_AGENT_LISTEN": "127.0.0.1:0", "VRAMTRACK_ACTUATE_LISTEN": "127.0.0.1:0",
            "VRAMTRACK_SOURCES_NVML_LIBRARY": "no-library", "VRAMTRACK_SOURCES_SYS_ROOT": f"{FIXTURES}/sys",
            "VRAMTRACK_SOURCES_PROC_ROOT": f"{FIXTURES}/proc"})

    def run_to_its_end(self, command):
        result = subprocess.run(["sh", "-c", command], cwd=self.box.work, env=self.env, capture_output=True, timeout=120, check=False)
        return result.returncode, (result.stdout + result.stderr).decode()

    def run_until(self, pattern, command):
        """Runs it on its own terminal, and presses Ctrl-C as soon as it has printed the pattern."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.box.work)
            os.execve("/bin/sh", ["sh", "-c", f"stty cols 120 rows 40; exec {command}"], self.env)
        text, end, pressed = "", time.monotonic() + 60, False
        while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # the program has closed its terminal
                break
            if not pressed and re.search(pattern, text):
                os.write(terminal, b"\x03")
                pressed = True
        else:
            os.kill(pid, 9)
        os.close(terminal)
        self.assertTrue(pressed, f"{command}: no {pattern!r} in:\n{text}")
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text

    def test_every_command_runs(self):
        known = self.box.run("--help").stdout.decode()
        for command in self.commands():
            if command in self.NOT_RUN or (command == "vramtrack agent" and "\n  agent " not in known):
                continue
            with self.subTest(command):
                plain = command.replace("build/release/", "")
                until = self.UNTIL.get(plain)
                status, text = self.run_until(until, command) if until else self.run_to_its_end(command)
                expected = next((s for start, s in self.STATUS.items() if plain.startswith(start)), {0})
                self.assertIn(status, expected, f"{command}\n{text}")
                if plain.startswith("vramtrack analyze"):
                    self.assertRegex(text, r"LEAK \(gradual leak\)|LEAKED until memory ran out|leaked_until_memory_ran_out|LEAK, |\"leak\":true")

    def test_what_records_ends_by_itself_when_it_is_pasted(self):
        for page in ("README.md", "docs/analyze.md"):
            recorded = [lines for language, lines in self.blocks(read(page)) if language == "sh" and any("nvidia-smi" in line for line in lines)]
            with self.subTest(page):
                pasted = "\n".join(line for lines in recorded for line in lines) + "\nwait"
                for log in ("gpu.csv", "apps.csv"):
                    (self.box.work / log).unlink()
                self.run_to_its_end(pasted)
                self.assertEqual(self.run_to_its_end("vramtrack analyze gpu.csv apps.csv")[0], 1)

    @staticmethod
    def configuration(page):
        """The first one on it."""
        return textwrap.dedent(re.search(r"^ {4}\[.*\n(?:^ {4}.*\n|^\n)*", read(page), re.MULTILINE)[0])

    def write_policies(self):
        folder = self.box.path / "home" / ".config" / "vramtrack"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "config.toml").write_text(self.configuration("docs/policies.md"))
        (folder / "config.toml").chmod(0o600)

    def test_each_page_of_a_command_has_an_example_that_runs(self):
        pages = Index.pages()
        own = {command for command, page in pages.items() if f"docs/{page}" in self.PAGES
               and any(re.match(rf"vramtrack {command}\b", line) for line in self.commands([f"docs/{page}"]) if line not in self.NOT_RUN)}
        self.assertEqual(sorted([*self.EXAMPLES, *(own - set(self.EXAMPLES))]), sorted(pages))
        for command, (line, statuses) in self.EXAMPLES.items():
            with self.subTest(line):
                text = read(f"docs/{pages[command]}")
                self.assertRegex(text, rf"(?m)(?:^ {{4}}|^|`){re.escape(line)}(?:`| {{2,}}|$)", "it is not on its page")
                status, text = self.run_example(command, line)
                self.assertIn(status, statuses, text)

    def run_example(self, command, line):
        """Its status and what it prints, where the files and programs are that its page speaks of."""
        if command == "agent":
            return self.run_until(self.UNTIL["vramtrack agent"], line)
        if command == "actuate":
            (self.box.work / "fleet.toml").write_text(self.configuration("docs/actuate.md"))
            return self.run_until(r"listening for alerts at http://127\.0\.0\.1:\d+", line)
        if command in ("mark", "silence"):
            with self.program("vramtrack", "agent", says="answers on"):
                end = time.monotonic() + patience(30)
                while "the agent watches" in (ended := self.run_to_its_end(line))[1] and time.monotonic() < end:
                    pass  # it has not taken its first sample yet
                return ended
        if command == "control":
            code = "import ctypes, sys; ctypes.CDLL(None).vramtrack_probe_mark(b'begun'); print('up', flush=True); sys.stdin.read()"
            with self.program("vramtrack", "run", "--", "python", "-c", code, says="up"):
                status, text = self.run_to_its_end(line)
                self.assertIn("limit 20.0 GiB", text)
                return status, text
        if command == "attach":
            with self.program("python", str(TESTS / "cli/attached.py"), str(ROOT / "python/vramtrack"), "allows", says="ready") as program:
                status, text = self.run_to_its_end(line.replace("4242", str(program.pid)))
                self.assertIn("What keeps tensors:", text)
                return status, text
        if command == "policy":
            self.write_policies()
        return self.run_to_its_end(line)

    @contextlib.contextmanager
    def program(self, *words, says):
        """Runs it until the block ends, which begins when it has printed `says`."""
        with subprocess.Popen(words, cwd=self.box.work, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as program:
            try:
                while says not in (line := program.stdout.readline()):
                    self.assertTrue(line, f"{words} has ended")
                yield program
            finally:
                program.terminate()
                program.stdout.read()

    def test_what_is_not_run_is_there(self):
        commands = self.commands()
        self.assertLessEqual(set(self.NOT_RUN) | set(self.UNTIL), set(commands), "no longer in the documents")
        for target in re.findall(r"\bmake ([a-z]+)$", "\n".join(commands), re.MULTILINE):
            self.assertRegex(read("Makefile"), rf"(?m)^{target}:")
        self.assertTrue((ROOT / "contrib" / "systemd" / "vramtrack.service").exists())

    def test_no_command_escapes(self):
        for page in self.PAGES:
            text = read(page)
            self.assertEqual(text.count("```"), 2 * len(self.blocks(text)), page)
            self.assertFalse(re.findall(r"^(?: {4,}|\t).*", self.prose(text), re.MULTILINE), f"{page}: an indented block: use ```sh for commands")
            for language, lines in self.blocks(text):
                self.assertIn(language, ("", "sh"), page)
                if not language:
                    self.assertFalse([line for line in lines if re.match(r"(\$|#|vramtrack |make|sudo|pip|build/)", line)], f"{page}: use ```sh")

    def test_the_first_answer_is_what_the_command_prints(self):
        """The example: the simulated job, 16 minutes before its end."""
        for log in ("gpu.csv", "apps.csv"):
            header, *rows = (self.box.work / log).read_text().splitlines(keepends=True)
            example = zlib.decompress((ROOT / "docs" / "examples" / f"{log}.gz").read_bytes(), wbits=31).decode()
            self.assertEqual(example, header + "".join(row for row in rows if row[11:19] <= "09:15:00"))
        status, text = self.run_to_its_end("build/release/vramtrack analyze docs/examples/gpu.csv.gz docs/examples/apps.csv.gz")
        self.assertEqual(status, 1)
        shown = next(lines for language, lines in self.blocks(read("README.md")) if not language)
        begins = " ".join(" ".join(["docs/examples/gpu.csv.gz", "docs/examples/apps.csv.gz", *shown]).split())
        self.assertEqual(" ".join(text.split())[:len(begins)], begins)

    def test_the_first_screen(self):
        screen = "\n".join(read("README.md").splitlines()[:40])
        for part in (r"!\[.+\]\(docs/images/.+\.png\)", "make run", "build/release/vramtrack analyze docs/examples/gpu.csv.gz docs/examples/apps.csv.gz", "^GPU 0 .*: LEAK"):
            self.assertRegex(screen, re.compile(part, re.MULTILINE))


class Index(unittest.TestCase):
    @staticmethod
    def pages():
        """{command: page}"""
        return dict(re.findall(r"^\| `([a-z]+)` \| \[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\) \|$", read("docs/index.md"), re.MULTILINE))

    def test_each_command_has_a_page_that_shows_how_to_use_it(self):
        listed = self.pages()
        with Sandbox(BINARY) as box:
            self.assertEqual(list(listed), Documents.commands(box.run("--help").stdout.decode()))
        for command, page in listed.items():
            self.assertRegex(read(f"docs/{page}"), rf"vramtrack {command}\b", page)

    def test_each_page_can_be_reached(self):
        linked = set(re.findall(r"\]\(([^)#\s]+\.md)", read("docs/index.md")))
        self.assertFalse({page.name for page in (ROOT / "docs").glob("*.md")} - linked - {"index.md"})

    def test_the_readme_is_short_and_leads_to_the_manual(self):
        text = read("README.md")
        self.assertLessEqual(len(text.splitlines()), 120)
        self.assertIn("](docs/index.md)", text)
        self.assertEqual(len(re.findall(r"!\[", text)), 1)


class Contributing(unittest.TestCase):
    def test_it_names_every_target_that_checks_a_change(self):
        targets = set(re.findall(r"^([a-z0-9-]+):.*##", read("Makefile"), re.MULTILINE))
        named = set(re.findall(r"`make ([a-z0-9-]+)`", read("CONTRIBUTING.md")))
        self.assertLessEqual(named, targets)
        to_use_it = {"help", "install", "deb", "portable", "wheels", "manual", "chart", "container", "clean"}  # docs/install.md's, and make's own
        self.assertEqual(targets - named, to_use_it)

    def test_what_tests_rewrite_is_rewritten_by_one_command(self):
        script = read("scripts/rewrite.sh")
        programs = {path.relative_to(TESTS / "unit").parts[0] + "_test" for path in TESTS.glob("unit/*/*.cpp")
                    if re.search('getenv\\("VRAMTRACK_UPDATE|#include "golden.hpp"', path.read_text())}
        self.assertEqual(programs, set(re.findall(r"^rewrite (\w+)", script, re.MULTILINE)))
        self.assertLessEqual(programs, set(re.search(r"^rewrite:.*\n(?:\t.*\n)*", read("Makefile"), re.MULTILINE)[0].split()))


class Messages(unittest.TestCase):
    """What the program and the dashboard say keeps clear of phrases that readers stumbled over: each was in a message once."""
    STUMBLED_OVER = (
        (r"(?<![Tt]here )\bis no (?!longer\b)", "write: is not a"),
        (r"\bnobody's\b|\bsomebody was\b", "name who or what it is"),
        (r"\bso many\b|\bfor so long\b", "give the number"),
        (r"\blonger than nothing\b", "write: greater than zero"),
        (r"\bgo(es)? on (by|without)\b", "write: continue"),
        (r"\bdo(es)? not tell (the|how)\b", "write: report"),
        (r"(^|[.;:] )[Oo]f that\b", "put the subject first"),
        (r", confidence (\{|\$\{)", "write: probability of a leak"),
        (r"\balerts?( of [^.;]*)? (stands?|stood|standing)\b|\b[Ss]tanding alert", "write: is active"),
        (r"\b(is|are) taken for\b", "write: is assumed to be"),
        (r"\b(at each|these) looks?\b", "write: check"),
        (r"\bbefore memory (may )?ends?\b|\bmemory may end\b", "write: runs out"),
        (r"\blets? it go on\b|\bif it goes on, memory\b", "write: resumes, continues"),
        (r"\bhas not taken notice\b", "name what it did not do"),
        (r"\bfor ever\b", "write: forever"),
        (r"\bcannot analyse\b|\b[Aa]nalys(e|ed|ing) (logs|memory snapshots|\{)|\banalysing \b", "the command is analyze: write read, judge"),
    )

    @staticmethod
    def literals(text):
        """The strings of C++ or TypeScript, with the parts of one that is broken over lines joined."""
        code = re.sub(r"(?m)^\s*(//|#include).*$", "", text)
        joined = re.sub(r'"\s*\n\s*"', "", code)
        return re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', joined)

    def test_they_are_plain(self):
        files = [f for where in ("src", "page/src") for f in (ROOT / where).rglob("*") if f.suffix in (".cpp", ".hpp", ".def", ".ts")]
        self.assertGreater(len(files), 200)
        found = []
        for file in files:
            for words in (one or other for one, other in self.literals(file.read_text())):
                found += [f"{file.relative_to(ROOT)}: \"{words}\": {advice}"
                          for pattern, advice in self.STUMBLED_OVER if re.search(pattern, words)]
        self.assertFalse(found, "\n".join(found))


class Links(unittest.TestCase):
    @staticmethod
    def anchors(text):
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.MULTILINE)}

    def test_packages_have_the_version_of_this_program(self):
        files = [ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "docs/openapi.yaml", ROOT / "contrib/kubernetes/helm/vramtrack/Chart.yaml"]
        named = [(path.name, version) for path in files for version in
                 re.findall(r"(?:vramtrack[-_]|leak-gate@v|\b(?:appV|v)ersion: )(\d+\.\d+\.\d+)\b", path.read_text())]
        self.assertGreater(len(named), 10)
        self.assertEqual([(name, version) for name, version in named if version != VERSION], [])

    def test_every_link_between_the_documents_leads_somewhere(self):
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("contrib/**/*.md")]:
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if "://" in target:
                    continue
                file, _, anchor = target.partition("#")
                with self.subTest(f"{page.relative_to(ROOT)}: {target}"):
                    other = page.parent / file if file else page
                    self.assertTrue(other.exists())
                    if anchor:
                        self.assertIn(anchor, self.anchors(other.read_text()))


class Glossary(unittest.TestCase):
    """The types that the headers of src/ declare, against the glossary of docs/ARCHITECTURE.md."""

    PLAIN = ("act", "actuate", "agent", "cli", "core", "detect", "engine", "explain", "fleet", "gate", "health", "host", "live", "nsys", "period", "probe", "recorded", "report", "run",
             "sizing", "source", "store", "symbolize", "telemetry", "top", "trace")
    # Members that are named like their fields in JSON, and a shape as in scenario files.
    FOREIGN = {"can_tell", "hears_xids", "settle_shape", "shares_host_memory", "story", "told", "told_with", "would_tell"}
    TOKEN = re.compile(r"namespace\s+([\w:]*)\s*\{|(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([A-Z]\w*)\s*(?:final)?\s*(?::[^:;{][^;{]*)?\{|[{}]")

    @classmethod
    def setUpClass(cls):
        cls.types = []  # name, namespace or None of a nested type, header
        for path in sorted((ROOT / "src").glob("**/*.hpp")):
            text = re.sub(r"//.*|/\*[\s\S]*?\*/", "", path.read_text())
            cls.types += [(name, space, str(path.relative_to(ROOT / "src").with_suffix(""))) for name, space in cls.declared(text)]
        text = read("docs/ARCHITECTURE.md")
        cls.sections = dict(re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", text, re.MULTILINE))

    @classmethod
    def declared(cls, text):
        """Each type that is defined there, with its namespace; None: within another type or block."""
        found, within = [], []
        for token in cls.TOKEN.finditer(text):
            space, name = token.groups()
            if token[0] == "}":
                del within[-1:]
            else:
                if name:
                    found.append((name, None if None in within else "::".join(within)))
                within.append(space)  # None: for a type or a block
        return found

    def rows(self, section):
        rows = re.findall(r"^\|(.*)\|$", self.sections[section], re.MULTILINE)
        return [[re.findall(r"`([^`]+)`", cell) for cell in row.split("|")] for row in rows[2:]]

    def test_declarations_are_read(self):
        self.assertEqual(self.declared("namespace a::b {\nclass X;\nenum class E : int { one };\nstruct Y final : Z<int> {\n  struct In {};\n};\n}\n"),
                         [("E", "a::b"), ("Y", "a::b"), ("In", None)])
        self.assertGreater(len(self.types), 900)

    def test_each_concept_has_its_type(self):
        known = {name for name, _, _ in self.types} | {"Timestamp"}  # an alias
        named = [name.split("::")[-1] for row in self.rows("Glossary") for name in row[2]]
        self.assertGreater(len(named), 40)
        self.assertEqual([name for name in named if name[0].isupper() and name not in known], [])

    def test_no_type_is_made_of_a_refused_word(self):
        rows = self.rows("Words that type names do not use")
        words, excepted = {word for row in rows for word in row[0]}, {name for row in rows for name in row[2]}
        self.assertIn("Manager", words)
        for name, _, header in self.types:
            with self.subTest(f"src/{header}.hpp: {name}"):
                self.assertTrue(name in excepted or not words & set(re.findall("[A-Z][a-z0-9]*", name)), "see the glossary of docs/ARCHITECTURE.md")

    @staticmethod
    def names(text):
        """The names in C++ that are not members of something: a member's name is refused where it is declared. Without comments and literals."""
        code = re.sub(r'R"(\w*)\([\s\S]*?\)\1"|"(?:[^"\\\n]|\\.)*"|//.*', " ", text)
        return set(re.findall(r"(?<![\w.>:])[A-Za-z_]\w*", code))

    @staticmethod
    def typescript_names(text):
        """The same of TypeScript; of a template literal the names in its `${}`, unless a literal is nested there."""
        code = re.sub(r"/\*[\s\S]*?\*/|(?<!:)//.*|\"(?:[^\"\\\n]|\\.)*\"", " ", text)
        code = re.sub(r"`[^`]*`", lambda literal: " ".join(re.findall(r"\$\{([^}]*)\}", literal[0])), code)
        return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))

    @staticmethod
    def python_names(text):
        """The names that Python code binds."""
        found = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
        return found

    def test_names_are_read(self):
        self.assertEqual(self.names('a = R"(tell\ntold)" + "said \\" door" + b_c(D1.tell);  // settle'), {"a", "b_c", "D1"})
        self.assertEqual(self.typescript_names('a = b.tell("told") + `says ${c_d}`; /* door */  // settle'), {"a", "b", "c_d"})
        self.assertEqual(self.python_names('def f(a, *b):\n  c.d = e\n  g: int = h("told")\nclass I: pass\n'), {"f", "a", "b", "d", "g", "I"})

    @staticmethod
    def refused(names, words):
        """`places` is allowed as the plural of a type Place."""
        allowed = {"places"} if "Place" in names else set()
        return sorted(name for name in names if (words - allowed) & {part.lower() for part in re.findall("[A-Z]?[a-z]+", name)})

    def test_a_name_of_a_refused_word_is_found(self):
        words = {"know", "places"}
        self.assertEqual(self.refused({"known", "know_days", "toKnow", "places_of"}, words), ["know_days", "places_of", "toKnow"])
        self.assertEqual(self.refused({"Place", "places_of"}, words), [])

    def test_no_name_is_made_of_a_refused_word(self):
        words = {word for row in self.rows("Words that names do not use") for word in row[0]}
        self.assertLessEqual({"settle", "know", "shares", "places"}, words)
        files = [(path, self.names) for folder in self.PLAIN for path in (ROOT / "src" / folder).rglob("*.[ch]pp")]
        files += [(path, self.typescript_names) for path in (ROOT / "page/src").rglob("*.ts")]
        files += [(path, self.python_names) for path in (ROOT / "python/vramtrack").rglob("*.py")]
        for path, names in sorted(files):
            with self.subTest(str(path.relative_to(ROOT))):
                self.assertEqual(self.refused(names(path.read_text()) - self.FOREIGN, words), [], "see the glossary of docs/ARCHITECTURE.md")

    def test_no_new_type_shares_its_name(self):
        listed = {row[0][0]: row[1] for row in self.rows("Names of several types")}
        headers = {}
        for name, space, header in self.types:
            if space is not None:
                headers.setdefault(name, {}).setdefault(space, header)
        for name, by_space in headers.items():
            if len(by_space) > 1:
                with self.subTest(name):
                    self.assertLessEqual(set(by_space.values()), set(listed.get(name, [])), "rename it; see the glossary of docs/ARCHITECTURE.md")


if __name__ == "__main__":
    unittest.main(verbosity=1)
