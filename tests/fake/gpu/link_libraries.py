#!/usr/bin/env python3
"""Makes the libraries that one installed CUDA wheel of PyTorch needs to run without a GPU and without NVIDIA's libraries.

    link_libraries.py ARCHIVES TORCH_LIB_DIR OUT_DIR

ARCHIVES is where CMake built the doubles (BUILD/fake_gpu). The wheel's libraries are read: each name they need that neither the
wheel nor the system has is linked here. The driver, the runtime and NVML come from their doubles. What else the wheel asks for
becomes stubs, with the version nodes that the wheel names.
"""
import collections
import pathlib
import re
import subprocess
import sys

from elf import STT_OBJECT, Library, Symbol

HERE = pathlib.Path(__file__).resolve().parent
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|z|quadmath|gfortran|util|numa|resolv)(-[0-9a-f]+)?\.so|ld-linux)")
#: What a stub returns. 0 lets a call pass without doing anything, as matrix products do; the others make PyTorch raise an error.
RETURNS = {"libcuda": 801, "libcudart": 801, "libnvidia-ml": 3, "libcudnn": 3000, "libcudnn8": 9, "libnccl": 2, "libnvrtc": 6,
           "libcupti": 27, "libcufft": 0, "libcufile": 5027, "libnvshmem_host": 1, "libcusolver": 7, "libcusparseLt": 10}  # fmt: skip
#: Symbols without a version node belong to the library of their prefix; the longest that fits.
PREFIXES = {"cublasLt": "libcublasLt", "cublas": "libcublas", "cudnn": "libcudnn", "cusparseLt": "libcusparseLt", "cusparse": "libcusparse",
            "cusolver": "libcusolver", "cufft": "libcufft", "curand": "libcurand", "nccl": "libnccl", "pnccl": "libnccl", "nvrtc": "libnvrtc",
            "nvtx": "libnvToolsExt", "cupti": "libcupti", "cuFile": "libcufile", "nvshmem": "libnvshmem_host", "__cuda": "libcudart",
            "cuda": "libcudart", "nvJitLink": "libnvJitLink", "nvml": "libnvidia-ml", "cuds": "libcudss", "cu": "libcuda"}  # fmt: skip
#: Looked up by name, so that no library needs them: PyTorch ends when a name is missing, even one that it can do without.
LOOKED_UP = {"libcuda.so.1": rb"cu[A-Z]\w+", "libnvidia-ml.so.1": rb"nvml[A-Z]\w+"}


def stem(library):
    return library.split(".so")[0]


def major(library):
    return library.split(".so.")[1].split(".")[0]


def defined_by(archive):
    listing = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", archive], check=True, capture_output=True, text=True)
    return {line.split()[0] for line in listing.stdout.splitlines() if " " in line}


def archive_of(library, archives):
    """The double that a library is made of; None: it has only stubs and answers."""
    name = {"libcuda": "driver", "libnvidia-ml": "nvml", "libcudart": f"runtime_{major(library)}"}.get(stem(library))
    return archives / f"libfake_gpu_{name}.a" if name else None


def wanted_symbols(wheel, missing):
    """Library -> name -> Symbol: what the wheel leaves undefined and no library of it defines."""
    by_stem = {stem(name): name for name in missing}
    defined = set().union(*(library.defined for library in wheel.values()))
    wanted = collections.defaultdict(dict)
    for library in wheel.values():
        for name, symbol in library.undefined.items():
            home = symbol.library
            if home is None and name not in defined:
                prefix = max((p for p in PREFIXES if name.startswith(p) and PREFIXES[p] in by_stem), key=len, default=None)
                home = by_stem[PREFIXES[prefix]] if prefix else None
            if home in missing:
                wanted[home][name] = symbol
    for library, pattern in LOOKED_UP.items():
        for name in wheel["libc10_cuda.so"].strings(pattern):
            wanted[library].setdefault(name, Symbol(2, None, None))
    return wanted


def stub_source(library, symbols, have):
    is_cudnn8 = stem(library) == "libcudnn" and major(library) == "8"
    code = RETURNS.get("libcudnn8" if is_cudnn8 else stem(library), 0)
    lines = ['#include "stub.h"']
    for name in sorted(symbols.keys() - have):
        if symbols[name].type == STT_OBJECT:
            lines.append(f"EXPORT char {name}[64];")
        else:
            makes = "Create" in name or name.endswith("Init")
            lines.append(f"{'STUB_CREATE' if makes else 'STUB'}({name}, {code})")
    lines.append(f"const size_t fake_gpu_cudnn_version = {8999 if is_cudnn8 else 99900};")
    if stem(library) == "libcuda":
        names = sorted(symbols.keys() - have)
        lines.append(f"const int fake_gpu_stub_count = {len(names)};")
        lines.append(f"const char* const fake_gpu_stubs[] = {{{', '.join(f'{chr(34)}{n}{chr(34)}' for n in names) or 'NULL'}}};")
    return "\n".join(lines) + "\n"


def exports(names):
    return "global: " + " ".join(f"{name};" for name in names) if names else ""


def version_script(library, symbols, exported):
    """Each symbol in the node that the wheel asks for, the rest of what is exported in the first or in none."""
    nodes = collections.defaultdict(list)
    for name in sorted(exported | symbols.keys()):
        nodes[symbols[name].node if name in symbols else None].append(name)
    if stem(library) == "libcudart":
        nodes[library]  # the real one has it even where nothing asks
    plain = nodes.pop(None, [])
    names = sorted(nodes)
    if not names:
        return f"{{ {exports(plain)} local: *; }};\n"
    nodes[names[0]] += plain
    blocks = [f"{node} {{ {exports(nodes[node])}" for node in names]
    return blocks[0] + " local: *; };\n" + "".join(block + " };\n" for block in blocks[1:])


def link(library, symbols, archives, out):
    answers = archives / "libfake_gpu_answers.a"
    archive = archive_of(library, archives)
    ours = defined_by(archive) if archive else set()
    have = ours | (defined_by(answers) & symbols.keys())
    stubs = out / f"{stem(library)}.stubs.c"
    stubs.write_text(stub_source(library, symbols, have))
    script = out / f"{stem(library)}.map"
    script.write_text(version_script(library, symbols, {n for n in ours if re.match(r"(__)?(cu|nvml)[A-Z_a-z]", n)}))
    obj = out / f"{stem(library)}.stubs.o"
    subprocess.run(["gcc", "-w", "-O1", "-fPIC", "-fvisibility=hidden", "-I", HERE, "-c", stubs, "-o", obj], check=True)
    whole = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"] if archive else []
    asked = [f"-Wl,-u,{name}" for name in sorted(have - ours)]
    subprocess.run(["g++", "-shared", *asked, obj, *whole, answers, f"-Wl,--version-script={script}", f"-Wl,-soname,{library}",
                    "-Wl,-Bsymbolic", "-o", out / library, "-ldl", "-lpthread"], check=True)  # fmt: skip
    obj.unlink()
    return len(symbols.keys() - have)


def main():
    archives, torch_lib, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    wheel = {path.name: Library(path) for path in sorted(torch_lib.iterdir()) if ".so" in path.name and path.is_file()}
    missing = {name for library in wheel.values() for name in library.needed if name not in wheel and not SYSTEM.match(name)}
    missing |= LOOKED_UP.keys()
    wanted = wanted_symbols(wheel, missing)
    for library in sorted(missing):
        stubs = link(library, wanted[library], archives, out)
        print(f"{library}: {len(wanted[library])} symbols, {stubs} of them stubs")


main()
