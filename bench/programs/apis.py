"""What the programs of each API run on: how they are built, and their environment."""
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
NO_DEVICE = 77
#: As users compile what they deploy.
COMPILERS = {".c": ["gcc", "-std=gnu11"], ".cpp": ["g++", "-std=c++20"]}
FLAGS = ["-O2", "-g", "-Wall", "-Wextra", "-I", str(HERE / "include")]


class Unavailable(Exception):
    """The API is not available here; the message says why."""


class Failed(Exception):
    """A program could not be run; the message says why."""


def before(folder, name="LD_LIBRARY_PATH"):
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get(name)])])


def compiled(path, options, libraries, missing=""):
    """The command that runs the program. `missing`: what to say where the API's headers or library are not installed."""
    is_paced = getattr(options, "attach", False) or getattr(options, "watch", False)
    target = options.build / "bench_programs" / ("paced" if is_paced else "") / path.parent.name / path.stem
    target.parent.mkdir(parents=True, exist_ok=True)
    sources, flags = [str(path)], FLAGS
    if is_paced:
        pace = target.with_suffix(".pace.o")
        subprocess.run(["gcc", "-O2", "-c", str(HERE / "pace/pace.c"), "-o", str(pace)], check=True)
        sources, flags = [*sources, str(pace)], [*FLAGS, "-finstrument-functions", "-finstrument-functions-exclude-file-list=/usr/"]
    done = subprocess.run([*COMPILERS[path.suffix], *flags, *sources, "-o", str(target), *libraries, "-ldl", "-lpthread"], capture_output=True, text=True)
    if done.returncode and missing and any(words in done.stderr + done.stdout for words in ("cannot find", "No such file")):
        raise Unavailable(missing)
    if done.returncode:
        raise Failed(f"{path.name}: {done.stderr.strip().splitlines()[0]}")
    return [target]


class Compiled:
    """C and C++ on a library that is in the build, or on the system's (`folder` is None)."""

    def __init__(self, library, folder=None, missing=""):
        self.library, self.folder, self.missing = library, folder, missing

    def prepared(self, path, options):
        folder = options.build / self.folder if self.folder else None
        if folder and not any(folder.glob("*.so*")):
            raise Failed(f"{folder} has no library; build it first")
        places = ["-L", str(folder)] if folder else []
        return compiled(path, options, [*places, "-Wl,--as-needed", *self.library], self.missing), {"LD_LIBRARY_PATH": before(folder)} if folder else {}


class Once:
    """Does something at the first call, and gives what it gave, or raises what it raised, at each."""

    def __init__(self, do):
        self.do, self.lock, self.answer = do, threading.Lock(), None

    def __call__(self, *arguments):
        with self.lock:
            if self.answer is None:
                try:
                    self.answer = (self.do(*arguments), None)
                except (Unavailable, Failed) as error:
                    self.answer = (None, error)
        if self.answer[1]:
            raise self.answer[1]
        return self.answer[0]


def driver_folder(_):
    """Where this machine's CUDA driver is."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, env={**os.environ, "PATH": "/sbin:/usr/sbin:" + os.environ["PATH"]}).stdout
    paths = [pathlib.Path(line.split(" => ")[1]) for line in listed.splitlines() if line.strip().startswith("libcuda.so.1 ")]
    if not paths:
        raise Unavailable("no CUDA driver on this machine")
    return paths[0].parent


class OwnDriver:
    """C and C++ on the CUDA driver of this machine."""

    folder = Once(driver_folder)

    def prepared(self, path, options):
        return compiled(path, options, ["-L", str(self.folder(options)), "-l:libcuda.so.1"]), {}


class OwnTorch:
    """The PyTorch of the Python that runs this, on the GPU of this machine."""

    def prepared(self, path, options):
        if importlib.util.find_spec("torch") is None:
            raise Unavailable(f"{sys.executable} has no PyTorch")
        return [sys.executable, path], {"PYTHONPATH": before(HERE / "site-packages", "PYTHONPATH")}


def third_party_python(_):
    """The virtual environment of tests/probe/apis."""
    sys.path.insert(0, str(SOURCE / "tests/probe/apis"))
    import third_party

    reason = third_party.install()
    if reason:
        raise Unavailable(reason)
    return third_party.LANE / "venv/bin/python"


def torch_lane(options):
    """PyTorch's Python and its environment. The libraries are linked into this build: other builds use the same wheel."""
    sys.path.insert(0, str(SOURCE / "tests/torch"))
    import lane

    try:
        lane.install(options.torch)
    except lane.Unavailable as reason:
        raise Unavailable(str(reason)) from None
    archives, out = options.build / "fake_gpu", options.build / "bench_programs" / f"torch-{options.torch}"
    out.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(archives.glob("*.a")))).hexdigest()
    with open(out / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not lane.is_as_wanted(out / "linked", digest):
            linker = [sys.executable, SOURCE / "tests/fake/gpu/link_libraries.py", archives, lane.site_packages(options.torch) / "torch/lib", out / "lib"]
            done = subprocess.run(linker, capture_output=True, text=True)
            if done.returncode:
                raise Failed(f"torch's libraries: {done.stderr.strip().splitlines()[-1]}")
            (out / "linked").write_text(digest)
    environment = lane.environment(options.torch, options.build)
    environment["LD_LIBRARY_PATH"] = before(out / "lib")
    environment["PYTHONPATH"] = before(HERE / "site-packages", "") + os.pathsep + str(options.build / "python")
    return lane.venv(options.torch) / "bin/python", environment


class ThirdParty:
    python = Once(third_party_python)

    def prepared(self, path, options):
        return [self.python(options), path], {"PYTHONDONTWRITEBYTECODE": "1"}


class Torch:
    lane = Once(torch_lane)

    def prepared(self, path, options):
        python, environment = self.lane(options)
        return [python, path], environment


#: With --gpu: on this machine's own GPU.
OWN = {"cuda": OwnDriver(), "torch": OwnTorch()}
APIS = {
    "cuda": Compiled(["-l:libcuda.so.1"], "tests/probe/cuda/driver"),
    "hip": Compiled(["-lamdhip64"], "tests/fake/hip"),
    "level_zero": Compiled(["-lze_loader"], "tests/fake/level_zero"),
    "opencl": Compiled(["-lOpenCL"], missing="no OpenCL to build with (ocl-icd-opencl-dev)"),
    "vulkan": Compiled(["-lvulkan"], missing="no Vulkan to build with (libvulkan-dev)"),
    "pyopencl": ThirdParty(),
    "wgpu": ThirdParty(),
    "torch": Torch(),
}
