"""Reports tensors as it is told on standard input, one command a line: tensor_keeper.py LIBRARY

"m1000" keeps 1000 of 1 MiB, and makes and gives back twenty of 4 MiB beside each.
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
print("ready", flush=True)
for line in sys.stdin:
    for end in range(end + 512, end + 512 * (int(line[1:]) + 1), 512):
        keep(end)
        for place in range(512, 512 * 21, 512):
            use(place)
    print("done", flush=True)
