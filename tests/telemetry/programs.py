"""The programs that are traced while they run."""
import os
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


def line_of(source, name):
    """The number of the line that the comment names."""
    for number, line in enumerate((HERE / source).read_text().splitlines(), 1):
        if line.endswith(f"LINE {name}"):
            return number
    raise ValueError(name)


class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def do(self, *commands):
        for command in commands:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            assert answer in ("done\n", "ready\n"), answer

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


def code_of(program, library):
    """The first byte of cuMemAlloc_v2 in the program's memory."""
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    offset = next(int(line.split()[1], 16) for line in symbols.splitlines() if line.endswith(" cuMemAlloc_v2"))
    maps = pathlib.Path(f"/proc/{program.process.pid}/maps").read_text()
    base = next(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(str(library)))
    with open(f"/proc/{program.process.pid}/mem", "rb") as memory:
        memory.seek(base + offset)
        return memory.read(1)


def is_probed(program, library):
    return code_of(program, library) == b"\xcc"


def stays_probed(program, library, within_s=5):
    """Whether the probe is still there after this time: the kernel takes it away a moment after its owner's end."""
    end = time.monotonic() + within_s
    while is_probed(program, library):
        if time.monotonic() > end:
            return True
        time.sleep(0.01)
    return False


def pythons():
    """The interpreters that are here whose frames are walked, by version: the system's, and those of pyenv."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    found = {}
    for path in ("/usr/bin/python3", *sorted(map(str, root.glob("versions/3.*/bin/python3")))):
        tell = "import sys; print(*sys.version_info[:2])"
        told = subprocess.run([path, "-c", tell], capture_output=True, text=True) if os.path.exists(path) else None
        if told and told.returncode == 0 and (3, 8) <= (version := tuple(map(int, told.stdout.split()))) <= (3, 14):
            found.setdefault(version, path)
    return found
