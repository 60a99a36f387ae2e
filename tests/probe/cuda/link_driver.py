#!/usr/bin/env python3
"""Links the fake driver as a library that exports every name of a real one: what has no body there is a stub.

    link_driver.py ARCHIVE NAMES OUT [NAME...]     # NAME: left out, as in an older driver; +NAME: added, as in a newer one
"""
import pathlib
import re
import subprocess
import sys
import tempfile

STUB_H = pathlib.Path(__file__).resolve().parents[2] / "fake/gpu"


def main():
    archive, names, out, *changes = sys.argv[1:]
    left_out = [name for name in changes if not name.startswith("+")]
    added = {name[1:] for name in changes if name.startswith("+")}
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", archive], check=True, capture_output=True, text=True).stdout
    bodies = {line.split()[0] for line in listing.splitlines() if re.match(r"cu[A-Z]\w+ ", line)}
    wanted = set(pathlib.Path(names).read_text().split()) - set(left_out) | added
    stubs = sorted(wanted - bodies)
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "stubs.c"), pathlib.Path(folder, "exports.map")
        source.write_text("\n".join(['#include "stub.h"', *(f"STUB({name}, 801)" for name in stubs),
                                     f"const int fake_gpu_stub_count = {len(stubs)};",
                                     f"const char* const fake_gpu_stubs[] = {{{', '.join(f'{chr(34)}{n}{chr(34)}' for n in stubs)}}};", ""]))
        script.write_text("{ global: " + " ".join(f"{name};" for name in sorted((bodies | wanted) - set(left_out))) + " local: *; };\n")
        subprocess.run(["gcc", "-w", "-O1", "-fPIC", "-fvisibility=hidden", "-I", STUB_H, "-c", source, "-o", f"{folder}/stubs.o"], check=True)
        subprocess.run(["g++", "-shared", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", f"{folder}/stubs.o", f"-Wl,--version-script={script}",
                        "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-o", out, "-ldl", "-lpthread"], check=True)


main()
