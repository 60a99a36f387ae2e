"""Futures of a pool, all of them kept until the end."""
import concurrent.futures
import time
from tensors import T, context, cuda


def infer(number):
    cuda.cuCtxSetCurrent(context)
    time.sleep(0.004)
    T(1 << 16)
    return T(1 << 14)


def main():
    futures = []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for number in range(340):
            futures.append(pool.submit(infer, number))
            futures[-1].result()


main()
# KEPT BY futures
