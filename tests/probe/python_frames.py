"""Python frames that the probe records equal those that Python itself names: function, file and line of each, in each
Python on this machine.

    python_frames.py LIBPROBE_CALL [PYTHON...]      exit 77: no Python is here
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ring

HERE = pathlib.Path(__file__).parent
MOST_PYTHON_FRAMES = 256


def home():
    """The user's own folder: HOME is one of the tests' own."""
    return pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir)


def pythons():
    """One of each version: `python3.N` of the path, what pyenv has, and what scripts/python314.sh brought."""
    found = {}
    for minor in range(8, 15):
        paths = [*sorted(home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}")), *HERE.parents[1].glob(f"build/python3.{minor}/usr/bin/python3.{minor}")]
        on_path = shutil.which(f"python3.{minor}")
        if on_path and subprocess.run([on_path, "-c", ""], capture_output=True).returncode != 0:
            on_path = None  # pyenv puts a name on the path also for a version that is not chosen
        if paths or on_path:
            found[minor] = str(paths[-1] if paths else on_path)
    return found


def run(command, library, extra=None):
    """Standard output of the program, and its rings."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, VRAMTRACK_PROBE_DIR=folder, PYTHONHASHSEED="0", **(extra or {}))
        done = subprocess.run(command + [str(library)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250)
        assert done.returncode == 0, (command, done.returncode, done.stderr[-2000:])
        return done.stdout, ring.rings(folder)


def loop_frames(ring_, stack, loop):
    """How many native frames of a stack are the interpreter's loop."""
    return sum(1 for frame in stack if not frame.python and any(begin <= frame.address < end for begin, end in loop))


def loop_ranges(ring_):
    """Where _PyEval_EvalFrameDefault lies in the process whose ring it is, parts that the compiler moved away included."""
    ranges = []
    for module in ring_.of("module"):
        path = ring_.texts[module.number]
        if "python" not in path or not os.path.exists(path):
            continue
        symbols = subprocess.run(["nm", "-S", path], capture_output=True, text=True).stdout
        headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
        loads = [[int(n, 16) for n in found] for found in
                 re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)]
        bias = next(module.address - module.a + offset - virtual for offset, virtual, size in loads
                    if offset <= module.a < offset + size)
        for begin, size in re.findall(r"^(\w+) (\w+) [tT] _PyEval_EvalFrameDefault(?:\.cold\S*)?$", symbols, re.M):
            ranges.append((bias + int(begin, 16), bias + int(begin, 16) + int(size, 16)))
    return ranges


def check(python, library, loader=()):
    out, rings = run([*loader, python, str(HERE / "python_programs.py")], library)
    assert len(rings) == 1, rings
    ring_ = rings[0]
    assert ring_.lost == 0
    notices = [ring_.texts[mark.number] for mark in ring_.of("mark")]
    assert not notices, notices
    stacks = {record.address: ring_.stacks.get(record.number, []) for record in ring_.of("alloc")}
    loop = loop_ranges(ring_)
    checked = merged = 0
    for line in out.splitlines():
        said = json.loads(line)
        stack = stacks[said["address"]]
        seen = [[frame.function, frame.file, frame.line] for frame in stack if frame.python]
        assert seen[0][0] == "hit", (said["kind"], seen)
        wanted = said["frames"][:MOST_PYTHON_FRAMES - 1]
        assert seen[1:] == wanted, (python, said["kind"], seen[1:], wanted)
        native = [frame for frame in stack if not frame.python]
        assert native, said["kind"]
        checked += 1
        # Frames that the reader merges: one native frame of the loop for each entry frame, where neither kind was cut off.
        # (A greenlet's native stack continues into that of whoever started it.)
        if loop and "greenlet" not in said["kind"] and len(native) < 128 and len(seen) < MOST_PYTHON_FRAMES:
            entries = sum(1 for frame in stack if frame.python and frame.entry)
            assert loop_frames(ring_, stack, loop) == entries, (python, said["kind"], loop_frames(ring_, stack, loop), entries)
            merged += 1
    return f"{checked} stacks, {merged} merged with native frames"


def check_refused(python, library):
    """A Python that is not understood: native frames only, and one line that says so."""
    program = "import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); [lib.probe_call(ctypes.c_uint64(n << 12), ctypes.c_uint64(8)) for n in (1, 2)]"
    _, rings = run([python, "-c", program], library)
    notices = [rings[0].texts[mark.number] for mark in rings[0].of("mark")]
    assert notices == ["no Python frames: Python is older than 3.8"], notices
    stacks = [rings[0].stacks[record.number] for record in rings[0].of("alloc")]
    assert len(stacks) == 2 and all(len(stack) > 5 and not any(frame.python for frame in stack) for stack in stacks), stacks
    return "refused, as it is older than 3.8"


def main():
    library = sys.argv[1]
    wanted = {python: python for python in sys.argv[2:]} or pythons()
    if not wanted:
        print("skipped: no Python 3.8 or newer is here")
        return 77
    for minor in range(8, 15):
        if not sys.argv[2:] and minor not in wanted:
            print(f"3.{minor}: skipped, not on this machine")
    for name, python in wanted.items():
        # A command with a loader ("ld.so --library-path DIR python") is one argument.
        *loader, program = python.split()
        print(f"{name}: {check(program, library, loader)}")
    for python in sorted(home().glob(".pyenv/versions/3.[67].*/bin/python3.[67]")) if not sys.argv[2:] else []:
        print(f"{python.name}: {check_refused(str(python), library)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
