#!/usr/bin/env python3
"""Runs a fuzz target on its committed inputs, grown to the limit that the code allows, within bounds of time and memory.

    scripts/fuzz_limits.py BUILD_DIR [NAME ...] [--sanitized] [--keep FOLDER]

Each input of fuzz/corpus/NAME is repeated up to the size that fuzz/limits.txt gives: as a whole (a file of many records), and its
longest line without a line feed (a line of any length), and that line's first and last bytes (one field of any length). Those of logs
also grow in what a table or an object has: columns, up to the 512 that are read and beyond them, brackets within brackets, fields of
different names in one line, and GPUs, each with an index of its own. The bounds are 768 MiB, because a target holds what it read several times over to compare it, and 10 s of processor time and 10 more
per MiB, because its checks are not optimized; VRAMTRACK_TEST_PATIENCE multiplies them. --keep writes the grown inputs to FOLDER/NAME
and runs nothing, so that libFuzzer begins with them. Exit status: 1 if an input crashed, hung or took too much.
"""

import argparse
import os
import re
import resource
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
MIB = 1 << 20
# To compare results, a target holds its input, copies of it, and what it read from them several times over.
MOST_BYTES = 768 * MIB
SECONDS = 10.0
SECONDS_PER_MIB = 10.0


def limits():
    lines = (ROOT / "fuzz" / "limits.txt").read_text().splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines if line and not line.startswith("#")}


def repeated(unit, size):
    return (unit * (size // len(unit) + 1))[:size] if unit else b""


def grown(data, size):
    """(kind, bytes) for each input grown from `data`. The first byte stays, because some targets use it to choose what they test."""
    if not data or len(data) >= size:
        return
    yield "file", repeated(data, size)
    lines = data.split(b"\n")
    longest = max(lines, key=len)
    if not longest:
        return
    first = b"\n".join(lines[:2])[: size // 2] + b"\n"
    yield "line", first + repeated(longest, size - len(first))
    half = len(longest) // 2
    for kind, byte in (("digits", b"7"), ("letters", b"a"), ("brackets", b"(")):
        begin, end = first + longest[:half], longest[half:] + b"\n"
        if len(begin) + len(end) < size:
            yield kind, begin + repeated(byte, size - len(begin) - len(end)) + end


MOST_COLUMNS = 512  # kMostColumns (source/log/columns.hpp)
LOGS = ("log", "log_file", "run_file")


def numbered(unit, size):
    """unit(0), unit(1), ... up to `size` bytes."""
    out = bytearray()
    i = 0
    while len(out) < size:
        out += unit(i)
        i += 1
    return bytes(out[:size])


def grown_log(data, size):
    """(kind, bytes) for each input grown from `data`, as a table, an object or the readings of many GPUs."""
    lines = data.split(b"\n")
    longest = max(lines, key=len)
    first = b"\n".join(lines[:2])[: size // 2] + b"\n"
    half = len(longest) // 2
    if b"{" in data:
        for kind, unit in (("arrays", b"["), ("objects", b'{"a":')):
            room = size - len(first) - len(longest) - 1
            if room > len(unit):
                yield kind, first + longest[:half] + unit * (room // len(unit)) + longest[half:] + b"\n"
    delimiter = max((b",", b"\t", b"|", b";"), key=longest.count)
    if longest.count(delimiter) > 0:
        for kind, columns in (("columns", MOST_COLUMNS), ("many-columns", 16 * MOST_COLUMNS)):
            wide = []
            for line in lines[:64]:
                cells = line.split(delimiter)
                more = [cells[i % len(cells)] + (b"" if cells[-1][:1].isdigit() else b"_%d" % i) for i in range(columns - len(cells))]
                wide.append(delimiter.join(cells + more) if len(cells) > 1 else line)
            yield kind, repeated(b"\n".join(wide) + b"\n", size)
    name = re.compile(rb"([A-Za-z_]+)(\"?[=:])")
    if name.search(longest):
        yield "fields", first + numbered(lambda i: name.sub(rb"\g<1>_%d\2" % i, longest) + b" ", size - len(first))
    index = re.compile(rb"(?<![\d.:-])\d{1,2}(?![\d.:-])")
    readings = [line for line in lines if not re.match(rb".?\w{3} \w{3} +\d", line)]  # not the dates
    if any(index.search(line) for line in readings):
        reading = b"\n".join(readings).removeprefix(data[:1])[: size // 64] + b"\n"
        yield "gpus", data[:1] + numbered(lambda i: index.sub(b"%d" % i, reading), size - 1)


def run(command, seconds, is_sanitized):
    """(the failure or "", seconds of processor time, bytes) of one run."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not is_sanitized:  # the sanitizer's shadow takes terabytes of addresses
            resource.setrlimit(resource.RLIMIT_AS, (4 * MOST_BYTES, 4 * MOST_BYTES))
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(write, 1)
        os.dup2(write, 2)
        try:
            os.execv(command[0], command)
        finally:
            os._exit(127)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        text = said.read()[-2000:].decode(errors="replace")
    _, status, used = os.wait4(pid, 0)
    took, most = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    wrong = ""
    if took > seconds:
        wrong = f"took more than {seconds:.0f} s of processor time"
    elif status != 0:
        wrong = f"ended with {os.waitstatus_to_exitcode(status)}: {text}"
    elif most > MOST_BYTES and not is_sanitized:
        wrong = f"took {most // MIB} MiB, more than {MOST_BYTES // MIB} MiB"
    return wrong, took, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sanitized", action="store_true", help="the targets are slow, and have no bound of memory")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    patience = float(os.environ.get("VRAMTRACK_TEST_PATIENCE", "5")) / 5 * (10 if arguments.sanitized else 1)
    failed = 0
    table = []
    for name in arguments.names or sorted(limits()):
        target = arguments.build / f"fuzz_{name}"
        if not target.exists() and not arguments.keep:
            print(f"fuzz_limits: {name}: there is no {target}", file=sys.stderr)
            continue
        size = limits()[name]
        seconds = patience * (SECONDS + SECONDS_PER_MIB * size / MIB)
        inputs, worst_s, worst_bytes, most_bytes = 0, 0.0, 0, 0
        with tempfile.TemporaryDirectory(prefix="vramtrack-fuzz-") as temporary:
            folder = arguments.keep / name if arguments.keep else Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted((CORPUS / name).iterdir()):
                as_it_is = file.read_bytes()
                for kind, data in [*grown(as_it_is, size), *(grown_log(as_it_is, size) if name in LOGS else ())]:
                    path = folder / f"{file.name}-{kind}"
                    path.write_bytes(data)
                    inputs += 1
                    most_bytes = max(most_bytes, len(data))
                    if arguments.keep:
                        continue
                    wrong, took, most = run([str(target.resolve()), str(path)], seconds, arguments.sanitized)
                    worst_s, worst_bytes = max(worst_s, took), max(worst_bytes, most)
                    if wrong:
                        failed += 1
                        kept = arguments.build / f"limit-{name}-{path.name}"
                        kept.write_bytes(data)
                        print(f"fuzz_limits: {name}: {kept}: {wrong}", file=sys.stderr, flush=True)
                    path.unlink()
        table.append((name, inputs, most_bytes, worst_s, worst_bytes // MIB))
    if not arguments.keep:
        print("| target | inputs | largest, bytes | longest, s | most, MiB |\n|---|---|---|---|---|")
        for row in table:
            print("| {} | {} | {} | {:.2f} | {} |".format(*row))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
