"""What a call stack costs a hooked call, beside libunwind and glibc in the same process. Writes two tables.

The first has calls that follow each other at once (hooked allocations are 85 us apart, so that no sampling starts). In the second all calls are
85 us apart, 256 blocks are live, and a call is counted by what disturbed it.

    probe_stacks.py LIBPROBE_CALL LIBPROBE_DEPTH [--samples N]
"""
import ctypes
import os
import platform
import sys
import tempfile

WHAT = (("capture_stack()", 1), ("capture_stack(), Python frames only", 2), ("hooked allocation, whole", 3), ("its free", 4),
        ("unw_backtrace()", 5), ("backtrace()", 6), ("(the clock)", 7))


def main():
    samples = int(sys.argv[sys.argv.index("--samples") + 1]) if "--samples" in sys.argv else 20000
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        os.environ["VRAMTRACK_PROBE_DIR"] = folder
        probe, depth_library = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
        pointers = [ctypes.cast(getattr(probe, name), ctypes.c_void_p) for name in ("probe_capture", "probe_call", "probe_free")]
        out = (ctypes.c_uint32 * samples)()

        def measure(what, native, is_thread):
            depth_library.probe_measure(what, native, samples, out, is_thread, *pointers, None)
            values = sorted(out)
            return values[samples // 2], values[samples * 99 // 100]

        def at(python, what, native):
            # With main(), the module, measure() and the lambda 20 in all.
            return at(python - 1, what, native) if python > 5 else measure(what, native, 0)

        print(f"Python {platform.python_version()}; ns, p50 / p99 of {samples}\n")
        print("| | 30 native + 20 Python | 10 native | 30 native | 60 native |\n|---|---|---|---|---|")
        for name, what in WHAT:
            if what == 4:
                continue  # measured with the allocations
            measures = [lambda what: at(20, what, 30)] + [lambda what, n=native: measure(what, n, 1) for native in (10, 30, 60)]
            cells, frees = [], []
            for one in measures:
                cells.append(one(what))
                if what == 3:
                    frees.append(one(4))
            for name, cells in ((name, cells), ("its free", frees)):
                if cells:
                    print(f"| {name} | " + " | ".join(f"{p50} / {p99}" for p50, p99 in cells) + " |")

        states = (ctypes.c_uint8 * samples)()

        def apart(python, what):
            if python > 4:
                return apart(python - 1, what)
            depth_library.probe_measure(what, 30, samples, out, 0, *pointers, states)
            cells = []
            for wanted in (range(4), (0,), (1,), (2,), (3,)):
                values = sorted(ns for ns, state in zip(out, states, strict=True) if state in wanted)
                share = "" if len(wanted) > 1 else f" ({100 * len(values) / samples:.2f} %)"
                cells.append(f"{values[len(values) // 2]} / {values[len(values) * 99 // 100]}{share}" if values else "none")
            return cells

        print("\n| 85 us apart | all | undisturbed | after a context switch | with a page fault | switched within |\n|---|---|---|---|---|---|")
        for name, what in ((name, what) for name, what in WHAT if what in (1, 3, 5, 6)):
            print(f"| {name} | " + " | ".join(apart(20, what)) + " |")


main()
