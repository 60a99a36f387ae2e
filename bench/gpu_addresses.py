#!/usr/bin/env python3
"""Whether the driver's functions that programs look up are those that `trace live` probes: gpu_addresses.py [LIBRARY]

static cudart, JAX, Triton and others ask cuGetProcAddress for the functions, and call what it returns. The probes lie on the exported
symbols. For each probed function of the driver this prints the file offset of the symbol and of what cuGetProcAddress returns, for the
plain variant and for the one of per-thread streams, and whether that is a symbol that is probed. The exit status is 1 where one is not.
"""
import ctypes
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).resolve().parent.parent / "src/telemetry/functions.def"
LIBRARY = sys.argv[1] if len(sys.argv) > 1 else "libcuda.so.1"
PLAIN, PER_THREAD = 1, 2  # CU_GET_PROC_ADDRESS_LEGACY_STREAM, _PER_THREAD_DEFAULT_STREAM
SUCCESS = 0


class Place(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def place_of(address):
    place = Place()
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place))
    return (pathlib.Path((place.path or b"?").decode()).name, address - (place.base or 0))


def main():
    driver = ctypes.CDLL(LIBRARY)
    driver.cuInit(0)
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    names = list(dict.fromkeys(re.findall(r'"libcuda\.so", "(\w+)"', TABLE.read_text())))
    exported = {}
    for name in names:
        symbol = getattr(driver, name, None)
        if symbol is not None:
            exported[name] = place_of(ctypes.cast(symbol, ctypes.c_void_p).value)
    print(f"driver {version.value}\n\n| looked up | variant | symbol that is there | probed |\n|---|---|---|---|")
    missed = 0
    for asked in dict.fromkeys(re.sub(r"(_v\d+)?(_ptsz)?$", "", name) for name in names):
        for variant, flag in (("plain", PLAIN), ("per-thread stream", PER_THREAD)):
            found = ctypes.c_void_p()
            if driver.cuGetProcAddress(asked.encode(), ctypes.byref(found), version.value, ctypes.c_uint64(flag)) != SUCCESS or not found.value:
                continue
            place = place_of(found.value)
            there = [name for name, symbol in exported.items() if symbol == place]
            missed += not there
            print(f"| `{asked}` | {variant} | {', '.join(there) or f'{place[0]}+{place[1]:#x}'} | {'yes' if there else 'NO'} |")
    print(f"\n{missed} looked-up functions are not probed")
    return 1 if missed else 0


sys.exit(main())
