"""vramtrack reclaim and holders, on real trees of processes (tests/cli/family.py): what is orphaned and what lives is known from how they were made.

    orphans.py BINARY [--random N] [--seed S] [--batch N] [--kinds "KIND,KIND"] [TEST...]

Trees are made by chance, 25 unless --random asks for more, all from one seed, of all kinds unless --kinds names some. A tree has a program with workers, or a daemon, that somebody started
(a retry loop, a pipeline, a supervisor) and that a process adopts when its parent ends: this machine's init, a subreaper, an unknown pid 1 of a pid
namespace (as root). Then its program is killed, or not.
"""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import uuid

from patience import patience
from sandbox import Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")


def option(name, default):
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = type(default)(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


TREES = option("--random", 25)
SEED = option("--seed", 46)
BATCH = option("--batch", 25)
ONLY = option("--kinds", "")
HAS_NAMESPACES = os.geteuid() == 0 and subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode == 0

# Roles with processes that are not counted: an orphan that is still there started them.
EITHER = {"either", "middle", "program", "client"}
FORKED = ["fork", "fork", "spawn", "forkserver"]

# Each kind: by chance its configuration, the role of its orphans after its program has ended (None: it has none), and the roles it must not lose then.
Kind = collections.namedtuple("Kind", "what config orphans count", defaults=(None, None))


def usual(r):
    return {"start": r.choice(FORKED), "workers": r.randint(1, 3), "activity": r.choice(["sleep", "sleep", "event", "poll", "spin"]),
            "daemonic": r.random() < 0.5, "program": r.choice(["waits", "polls"]), "loads": r.random() < 0.5}


KINDS = {
    # Workers of a program that may end.
    "workers": (12, "workers", lambda r: {"channel": r.choice([None, None, "queue", "duplex"]), "shell": r.random() < 0.1}),
    "loaders": (4, "workers", lambda r: {"start": "fork", "title": "pt_data_worker"}),
    "engine": (4, "workers", lambda r: {"start": r.choice(["spawn", "fork"]), "title": "VLLM::EngineCor", "channel": r.choice(["duplex", None])}),
    "pool": (3, "pool", lambda r: {}),
    "executor": (3, "executor", lambda r: {}),
    "nested": (3, "nested", lambda r: {}),
    "launcher": (6, "launcher", lambda r: {"own_sessions": r.random() < 0.8, "loaders": r.random() < 0.3, "leaves": r.choice([None, None, "program", "fork"])}),
    "reset store": (4, "launcher", lambda r: {"resets": True, "peers": True, "workers": r.randint(2, 3), "own_sessions": r.random() < 0.8, "loaders": r.random() < 0.3,
                                              "leaves": r.choice([None, None, "program", "fork", "evaluator"]), "asks": r.random() < 0.5, "listens": r.random() < 0.3}),
    "raylet": (4, "raylet", lambda r: {"own_group": r.random() < 0.5, "leaves": r.choice([None, None, "program", "fork"])}),
    "listening raylet": (4, "raylet", lambda r: {"listens": r.choice(["ray", "ray", "system"]), "meshed": r.random() < 0.5, "own_group": r.random() < 0.5,
                                                 "leaves": r.choice([None, None, "program", "fork"])}),
    "tensor parallel": (6, "tensor_parallel", lambda r: {"start": r.choice(["spawn", "fork"]), "workers": r.randint(2, 3), "engine": r.random() < 0.5,
                                                         "names": r.choice(["uuid", "uuid", "temporary"])}),
    # Programs that live on although one that started them, or a part of them, ends.
    "late session": (2, "workers", lambda r: {"late_session": True}),
    "middle with work": (5, "middle", lambda r: {"channel": r.choice(["queue", "event", "tcp"]), "adopts": r.random() < 0.5}),
    "middle": (1, "middle", lambda r: {"start": "spawn"}),
    "without its forkserver": (2, "without_its_forkserver", lambda r: {}),
    "closed": (2, "closed", lambda r: {"start": "fork"}),
    "detached": (2, "detached", lambda r: {"start": r.choice(["fork", "spawn"])}),
    "late daemon": (3, "late_daemon", lambda r: {"start": "fork", "same_session": r.random() < 0.2}),
    "prefork server": (4, "prefork_server", lambda r: {"clients": r.random() < 0.6}),
    "daemon": (5, "daemon", lambda r: {"workers": r.choice([0, 2]), "dialogue": r.random() < 0.3, "closes": r.random() < 0.3, "log": r.random() < 0.3,
                                       "listens": r.random() < 0.3, "same_session": r.random() < 0.2, "with_workers": r.random() < 0.3, "start": "fork"}),
    "daemon of a worker": (3, "daemon_of_a_worker", lambda r: {"start": r.choice(["fork", "spawn"]), "closes": r.random() < 0.3, "log": r.random() < 0.2, "after_s": r.uniform(1.5, 4)}),
    "ray start": (3, "ray_start", lambda r: {"listens": r.choice(["ray", "system"]), "meshed": r.random() < 0.5}),
    "ray worker with a driver": (2, "raylet", lambda r: {"listens": r.choice(["ray", "system"]), "has_driver": True, "accepts": r.random() < 0.7}),
    "ray worker that serves": (3, "raylet", lambda r: {"listens": r.choice(["ray", "system"]), "serves": r.choice(["near", "far"])}),
    "evaluator of a rank": (2, "launcher", lambda r: {"resets": True, "workers": 1, "leaves": "evaluator", "asks": r.random() < 0.5, "listens": r.random() < 0.3}),
    "vllm serve": (3, "vllm_serve", lambda r: {"start": r.choice(["spawn", "fork"]), "same_session": r.random() < 0.2}),
    "api servers": (3, "api_servers", lambda r: {"start": r.choice(["spawn", "fork"])}),
    "local server": (4, "local_server", lambda r: {"start": r.choice(["spawn", "fork"]), "is_known": r.random() < 0.5, "told_by": r.choice(["argument", "variable"])}),
    # Living programs with no visible tie to the processes they started.
    "wrapped ranks": (3, "wrapped_ranks", lambda r: {"own_store": r.random() < 0.5}),
    "daemon at once": (3, "daemon", lambda r: {"workers": 0, "dialogue": True, "at_once": True, "log": r.random() < 0.2, "start": "fork"}),
    "daemon of a new worker": (3, "daemon_of_a_worker", lambda r: {"after_s": 0, "log": r.random() < 0.2}),
    "executed": (3, "executed", lambda r: {}),
    "shell": (2, "shell", lambda r: {"workers": 1}),
    "left behind": (4, "left_behind", lambda r: {"dialogue": r.random() < 0.5, "with_workers": r.random() < 0.6, "log": r.random() < 0.2}),
}
# The part of a program of each kind that is killed to make its workers orphans; nothing else ever makes one.
ENDS = {"middle with work": "middle", "middle": "middle", "without its forkserver": "middle"}
LIVE_ON = {"prefork server", "middle with work", "without its forkserver", "detached", "late daemon", "ray worker with a driver", "ray worker that serves", "api servers", "local server"}
RANKS = {"launcher", "reset store", "evaluator of a rank"}
if ONLY:
    KINDS = {kind: KINDS[kind] for kind in ONLY.split(",")}


class Tree:
    """One tree: how it is made, and what is known of it."""

    def __init__(self, number, r, folder):
        self.number = number
        self.kind = r.choices(list(KINDS), [weight for weight, _, _ in KINDS.values()])[0]
        _, what, config = KINDS[self.kind]
        self.config = {"what": what, "tree": number, "roll": str(folder / "roll"), "marker": str(folder / f"next-{number}"), **usual(r), **config(r)}
        self.adopted_by = r.choice(["init", "init", "subreaper", "subreaper of the group"] + (["pid 1", "pid 1", "script as pid 1", "program as pid 1"] if HAS_NAMESPACES else []))
        if self.kind == "without its forkserver" and "pid 1" in self.adopted_by:
            self.adopted_by = "subreaper"
        self.wrapped = r.choice(["", "", "loop", "retry", "nested", "pipeline", "background", "bash"])
        if self.adopted_by == "program as pid 1":
            self.wrapped = ""
        if self.kind == "late session":  # the leader of a group cannot
            self.wrapped = r.choice(["loop", "nested", "pipeline"])
            self.adopted_by = "init" if self.adopted_by == "program as pid 1" else self.adopted_by
        ends = 0.75 if self.kind not in ("late session", "closed", "wrapped ranks", "executed", "shell") else 0
        self.ends = r.random() < ends and not (self.adopted_by == "program as pid 1" and self.kind not in ENDS)
        self.signal = r.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
        self.loop_ends = self.ends and r.random() < 0.25 and self.adopted_by != "script as pid 1"
        if self.loop_ends or not self.ends or self.kind in ENDS:
            self.wrapped = self.wrapped.replace("retry", "loop")
        self.with_files = r.random() < 0.3  # its output goes to a log
        self.log = str(folder / f"log-{number}")
        self.name = r.choice(["train.py", "run.py", "serve.py"])
        self.reaper_name = r.choice(["supervise", "jobd", "process_api", "agent-init", "python3", "containerinit"])

    def words(self, folder, marker):
        own = [sys.executable, str(folder / self.name), json.dumps(self.config)]
        shell = "bash" if self.wrapped == "bash" else "sh"
        script = {"": None, "loop": '"$@"; sleep 600', "retry": f'while :; do "$@"; touch {self.config["marker"]}; done', "bash": 'set -m; "$@"; sleep 600; true',
                  "nested": 'for i in 1 2; do sh -c \'"$@"; sleep 600; true\' sh "$@"; done', "pipeline": '"$@" 2>&1 | cat > /dev/null; sleep 600',
                  "background": '("$@" &); sleep 600; true'}[self.wrapped]
        words = own if script is None else [shell, "-c", script, shell, *own]
        if self.adopted_by == "init":
            return words
        if self.adopted_by == "program as pid 1":
            return ["unshare", "--pid", "--fork", *words]
        if self.adopted_by == "script as pid 1":
            return ["unshare", "--pid", "--fork", "sh", "-c", '"$@"; while :; do sleep 600; done', "sh", *words]
        keeper = [sys.executable, str(folder / "keeper"), json.dumps({"what": "reaper", "name": self.reaper_name, "words": words, "is_init": self.adopted_by == "pid 1",
                                                                      "new_session": self.adopted_by != "subreaper of the group"})]
        return ["unshare", "--pid", "--fork", *keeper] if self.adopted_by == "pid 1" else keeper

    def expected(self):
        """The roles that enter themselves, and how often."""
        c = self.config
        n = c["workers"]
        roles = collections.Counter({"program": 1, "worker": n})
        if self.kind == "nested" or (self.kind in RANKS and c.get("loaders")):
            roles["either"] = n
        if self.kind == "tensor parallel" and c["engine"]:
            roles.update({"worker": 1 - n, "either": n})
        if self.kind in ("ray start", "vllm serve"):
            roles.update({"worker": -n, "daemon": 1, "kept": n + (self.kind == "vllm serve")})
        if self.kind == "api servers":
            roles["kept"] = n + 1
        if self.kind == "local server":
            roles.update({"worker": 1 - n, "client": not c["is_known"]})
        if self.kind == "ray worker with a driver":
            roles["client"] = n
        if c.get("leaves"):
            roles["daemon"] = n
        if self.kind in ENDS:
            roles["middle"] = 1
        if self.kind in ("middle", "middle with work", "daemon of a worker", "daemon of a new worker"):
            roles["worker"] = 1
        if self.kind == "prefork server" and c["clients"]:
            roles["client"] = 1
        if self.kind in ("daemon", "late daemon", "daemon of a worker", "left behind", "daemon at once", "daemon of a new worker"):
            roles["daemon"] = 1
            if c.get("with_workers"):
                roles["kept"] = 1
        if self.kind == "left behind":
            roles["worker"] = 0
        return +roles

    def orphans(self, entered):
        """The pids of its orphans, from what has entered itself."""
        if not self.ends or self.kind in LIVE_ON:
            return set()
        return {pid for role, pid in entered if role == "worker"}

    def shows(self, pid):
        """Whether it shows that what is its parent adopted it, and that its session was its program's. Any other may be spared."""
        if self.adopted_by == "subreaper of the group":
            return False
        if self.config.get("leaves") == "fork" and self.config["daemonic"] and (self.config.get("meshed") or self.config.get("peers")):
            return False  # the daemon that one of them forked ties it to the others
        if self.kind in RANKS:  # for one with a connection reset by its store, the tie to another rank
            return not self.config.get("resets") or self.config["workers"] > 1
        return self.config["loads"] or lives(os.getsid(pid))

    def either(self, entered):
        """Those of which neither is wrong: what an orphan started, and what was killed."""
        return {pid for role, pid in entered if role in EITHER} if self.ends else set()

    def __str__(self):
        kept = {k: v for k, v in self.config.items() if k not in ("roll", "marker", "tree", "what") and v}
        return f"{self.kind} {kept}, {'ends by signal ' + str(int(self.signal)) if self.ends else 'lives'}, in {self.wrapped or 'nothing'}{', which ends' if self.loop_ends else ''}, adopted by {self.adopted_by} ({self.reaper_name})"


class FixedTree(Tree):
    """One without anything drawn at random: a shell runs its program."""

    def __init__(self, number, folder, kind, what="workers", ends=True, **config):
        super().__init__(number, random.Random(number), folder)
        self.kind, self.adopted_by, self.wrapped, self.ends, self.signal, self.loop_ends, self.with_files = kind, "init", "loop", ends, signal.SIGKILL, False, False
        self.config = {"what": what, "tree": number, "roll": self.config["roll"], "marker": self.config["marker"], "start": "fork", "workers": 1, "program": "waits", **config}

    def expected(self):
        return super().expected() + collections.Counter(daemon=self.config["what"] == "late_daemon")


# Workers of an ended program, which show by their actions that they continue, or that they do not.
WORKING = ["compute_in_turns", "write_a_log", "follow_a_file", "look_into_a_folder", "wait_for_a_compiler", "fill_a_mapping"]
RESTING = ["spin_for_ever", "sleep", "event", "poll", "spin"]
# Workers of a living program that has given up its ties to them.
UNTIED = {"closed late session": {"late_session": True, "closes": True, "ends": False},
          "late daemon that waits for their end": {"what": "late_daemon", "channel": "sentinel"}}


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Forest:
    """Trees that live at the same time. Use it with `with`."""

    def __init__(self, trees, box, folder):
        self.trees, self.box, self.folder = trees, box, folder
        self.mark = f"VRAMTRACK_FOREST={uuid.uuid4().hex}"
        self.started = {}

    def __enter__(self):
        try:
            self.grow()
        except BaseException:
            self.__exit__()
            raise
        return self

    def grow(self):
        here = pathlib.Path(__file__).resolve().parent
        for name in ("train.py", "run.py", "serve.py", "keeper"):
            shutil.copy(here / "family.py", self.folder / name)
        (self.folder / "libtorch_cpu.so").write_bytes(b"\0" * 4096)
        (self.folder / "roll").touch()
        environment = dict(os.environ, **dict([self.mark.split("=")]), TMPDIR=str(self.folder))
        for tree in self.trees:
            to = open(tree.log, "wb") if tree.with_files else subprocess.DEVNULL
            self.started[tree.number] = subprocess.Popen(tree.words(self.folder, tree.config["marker"]), stdin=subprocess.DEVNULL, stdout=to, stderr=to, env=environment,
                                                         start_new_session=True, cwd=self.folder)
            if tree.with_files:
                to.close()
        self.wait(lambda tree, roles: not tree.expected() - roles)
        for tree in self.trees:
            if tree.loop_ends:
                for pid in self.above(tree):
                    self.send(pid, signal.SIGKILL)
        for tree in self.trees:
            if tree.ends:
                for role, pid in self.entered(tree.number):
                    if role == ENDS.get(tree.kind, "program") or (tree.kind.startswith("daemon of a ") and role == "worker"):
                        self.send(pid, tree.signal if role == "program" else signal.SIGKILL)
        for tree in self.trees:
            if tree.ends:
                self.until(lambda t=tree: not any(lives(pid) for role, pid in self.entered(t.number) if role == ENDS.get(t.kind, "program")), tree)
        again = {tree.number for tree in self.trees if tree.ends and tree.wrapped == "retry"}
        self.wait(lambda tree, roles: tree.number not in again or not collections.Counter({f"next-{k}": v for k, v in tree.expected().items()}) - roles)

    def __exit__(self, *_):
        mark = self.mark.encode()
        for _ in range(20):
            left = 0
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                        left += lives(int(entry.name))
                        self.send(int(entry.name), signal.SIGKILL)
                except OSError:
                    continue
            if not left:
                break
        for process in self.started.values():
            process.wait()

    @staticmethod
    def send(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def entered(self, number):
        return self.roll()[number]

    def roll(self):
        out = collections.defaultdict(list)
        for line in (self.folder / "roll").read_text().splitlines():
            number, role, pid = line.split()
            out[int(number)].append((role, int(pid)))
        return out

    def until(self, condition, tree):
        end = time.monotonic() + patience(20) + 2 * len(self.trees)
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"tree {tree.number} did not become what it should: {tree}: {self.entered(tree.number)}")
            time.sleep(0.02)

    def wait(self, is_there):
        for tree in self.trees:
            self.until(lambda t=tree: is_there(t, collections.Counter(role for role, _ in self.entered(t.number))), tree)

    def above(self, tree):
        """The scripts between a program and what adopts it, from the outermost: an inner one that ends first would be followed by another attempt."""
        found = []
        for role, pid in self.entered(tree.number):
            if role != "program":
                continue
            while True:
                try:
                    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
                    pid = int(stat.rsplit(")", 1)[1].split()[1])
                    name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                except (OSError, ValueError):
                    break
                if name not in ("sh", "bash", "dash"):
                    break
                found.append(pid)
        return found[::-1]

    def write_gpu(self, listed):
        lines = ["gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=9000G used=1G"]
        lines += [f"process gpu=0 pid={pid} list=C {listed}" for entered in self.roll().values() for _, pid in entered if lives(pid)]
        self.box.write("nvml.txt", "\n".join(lines) + "\n")

    def run(self, *words, listed="used=64M", code=(0,)):
        self.write_gpu(listed)
        result = self.box.run(*words, "--source", "nvml", "--set", f"sources.nvml-library={FAKE}", env={"VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}, timeout=patience(600))
        if result.returncode not in code:
            raise AssertionError(result.stderr.decode())
        return result.stdout.decode()


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Orphans(unittest.TestCase):
    def forest(self, trees, grow=lambda number, folder: Tree(number, random.Random(f"{SEED}-{number}"), folder)):
        box = Sandbox(BINARY).__enter__()
        self.addCleanup(box.__exit__)
        folder = box.path / "forest"
        folder.mkdir()
        return Forest([grow(number, folder) for number in trees], box, folder)

    def test_trees_by_chance(self):
        count = collections.Counter()
        wrong, shown = [], []
        by_kind = collections.defaultdict(collections.Counter)
        for first in range(0, TREES, BATCH):
            with self.forest(range(first, min(first + BATCH, TREES))) as forest:
                said = forest.run("reclaim", "--dry-run", "--yes")
                to_end = {int(pid) for pid in re.findall(r"^to end: pid (\d+) ", said, re.M)}
                why = {p["pid"]: f"{p['state']}: {p['why']}" for d in json.loads(forest.run("holders", "--format", "json"))["devices"] for p in d["processes"]}
                for tree in forest.trees:
                    entered = forest.entered(tree.number)
                    orphans = {pid for pid in tree.orphans(entered) if lives(pid)}
                    mine = to_end & {pid for _, pid in entered}
                    false = mine - orphans - tree.either(entered)
                    shown_ones = {pid for pid in orphans if tree.shows(pid)}
                    missed = shown_ones - mine
                    count.update({"trees": 1, "right": not false and not missed, "orphans": len(orphans), "found": len(orphans & mine), "wrong ends": len(false),
                                  "show": len(shown_ones), "found of these": len(shown_ones & mine)})
                    by_kind[tree.kind].update({"trees": 1, "right": not false and not missed, "orphans": len(orphans), "found": len(orphans & mine), "wrong": len(false)})
                    for pid in sorted(false):
                        wrong.append(f"wrong end of {[r for r, p in entered if p == pid]} in tree {tree.number}: {tree}: {why.get(pid)}")
                    if missed:
                        shown.append(f"missed in tree {tree.number}: {tree}: {sorted({why.get(p, '?') for p in missed})}")
        if "VRAMTRACK_TEST_VERBOSE" in os.environ:
            print("\n".join([*shown, *wrong]))
            for kind, of in sorted(by_kind.items()):
                print(f"{kind:24} {dict(of)}")
        shown = "\n".join(shown)
        print(f"{count['right']} of {count['trees']} trees right, {count['found']} of {count['orphans']} orphans found, "
              f"{count['found of these']} of the {count['show']} whose adoption shows, {count['wrong ends']} wrong ends")
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(count["found of these"], 0.95 * count["show"], shown)

    def test_orphans_end_and_what_lives_goes_on(self):
        with self.forest(range(12)) as forest:
            before = {tree.number: [(role, pid) for role, pid in forest.entered(tree.number) if lives(pid)] for tree in forest.trees}
            # The driver reports no memory for them, and no longer lists them when the first has ended.
            said = forest.run("reclaim", "--yes", "--watch", "5s", listed="used=0 to=2", code=(0, 1))
            to_end = {int(pid) for pid in re.findall(r"^to end: pid (\d+) ", said, re.M)}
            self.assertTrue(to_end, said)
            for tree in forest.trees:
                may_end = tree.orphans(before[tree.number]) | tree.either(before[tree.number])
                for role, pid in before[tree.number]:
                    self.assertEqual(lives(pid), pid not in to_end or pid not in may_end, f"{role} {pid} of tree {tree.number}, {tree}:\n{said}")

    def test_orphans_are_found_where_pids_begin_again(self):
        """Only the order of pids shows that the session was their program's: its leader has one of the last, they have some of the first."""
        last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
        greatest = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())

        def grow(number, folder):
            tree = FixedTree(number, folder, "raylet", what="raylet", workers=2, loads=True)
            tree.wrapped, tree.adopted_by = "", "subreaper"
            try:
                last.write_text(str(greatest - 5))
            except OSError as error:
                self.skipTest(f"{last}: {error}")
            return tree

        with self.forest([0], grow) as forest:
            said = forest.run("reclaim", "--dry-run", "--yes")
            to_end = {int(pid) for pid in re.findall(r"^to end: pid (\d+) ", said, re.M)}
            self.assertEqual(to_end & {pid for role, pid in forest.entered(0) if role == "worker"}, forest.trees[0].orphans(forest.entered(0)), said)

    def test_what_works_by_itself_is_left_alone(self):
        tied = {"ranks that wait for each other": {"what": "launcher", "workers": 2, "meshed": True}}
        kinds = {**{activity: {"activity": activity} for activity in WORKING + RESTING}, **tied, **UNTIED}
        with self.forest(range(len(kinds)), lambda number, folder: FixedTree(number, folder, list(kinds)[number], **list(kinds.values())[number])) as forest:
            workers = {tree.kind: [pid for role, pid in forest.entered(tree.number) if role == "worker"] for tree in forest.trees}
            said = forest.run("reclaim", "--yes", "--watch", "6s", listed="used=0 to=2", code=(1,))
            to_end = {int(pid) for pid in re.findall(r"^to end: pid (\d+) ", said, re.M)}
            starved = {int(pid) for pid in re.findall(r"^pid (\d+) .*left alone: it got no CPU time", said, re.M)}  # on an overloaded machine
            for kind, pids in workers.items():
                for pid in set(pids) - starved:
                    self.assertEqual((pid in to_end, lives(pid)), (kind not in UNTIED, kind in WORKING or kind in UNTIED), f"{kind}, pid {pid}:\n{said}")


if __name__ == "__main__":
    unittest.main()
