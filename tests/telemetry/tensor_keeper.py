"""Reports tensors as it is told on standard input, one command per line: tensor_keeper.py LIBRARY

"m1000" keeps 1000 of 1 MiB, and makes and releases twenty of 4 MiB beside each; "k50" keeps 50 alone, "g20" gives the oldest 20 back.
"""
import ctypes
import sys

told = ctypes.CDLL(sys.argv[1])["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]
told.argtypes = [ctypes.c_size_t, ctypes.c_long, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_ushort]
CUDA, MIB = 1, 1 << 20


def keep(address):
    told(address, MIB, 0, 0, CUDA)  # LINE keep


def use(address):
    told(address, 4 * MIB, 0, 0, CUDA)  # LINE use
    told(address, -4 * MIB, 0, 0, CUDA)


end = MIB
kept = []
print("ready", flush=True)
for line in sys.stdin:
    if line[0] == "g":
        for _ in range(int(line[1:])):
            told(kept.pop(0), -MIB, 0, 0, CUDA)
    else:
        for end in range(end + 512, end + 512 * (int(line[1:]) + 1), 512):
            keep(end)
            kept.append(end)
            for place in range(512, 512 * 21, 512) if line[0] == "m" else ():
                use(place)
    print("done", flush=True)
