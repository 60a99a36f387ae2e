"""Keeps a buffer of OpenCL a step at its own line, until its standard input ends. 77: there is no device."""
import ctypes
import select
import sys
import time

try:
    cl = ctypes.CDLL("libOpenCL.so.1")
except OSError:
    sys.exit(77)
cl.clCreateContext.restype = cl.clCreateBuffer.restype = ctypes.c_void_p
cl.clCreateContext.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
cl.clCreateBuffer.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
cl.clReleaseMemObject.argtypes = [ctypes.c_void_p]
READ_WRITE, ALL_DEVICES = 1, 0xFFFFFFFF


def context():
    platform, device = ctypes.c_void_p(), ctypes.c_void_p()
    if cl.clGetPlatformIDs(1, ctypes.byref(platform), None) != 0:
        sys.exit(77)
    if cl.clGetDeviceIDs(platform, ctypes.c_ulong(ALL_DEVICES), 1, ctypes.byref(device), None) != 0:
        sys.exit(77)
    return cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None)


def keep_a_result(of):
    cl.clCreateBuffer(of, READ_WRITE, 4096, None, None)


def scratch(of):
    cl.clReleaseMemObject(cl.clCreateBuffer(of, READ_WRITE, 65536, None, None))


def load_weights(of):
    return cl.clCreateBuffer(of, READ_WRITE, 1 << 20, None, None)


def main():
    its_context = context()
    load_weights(its_context)
    step = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        scratch(its_context)
        keep_a_result(its_context)
        step += 1
        if step == 400:
            print("up", flush=True)
        if step > 400:
            time.sleep(0.01)


main()
