"""Tasks of an event loop that are kept so that they are not collected, with their results."""
import asyncio
from tensors import T


async def infer(number):
    await asyncio.sleep(0.004)
    T(1 << 16)
    return T(1 << 14)


async def main():
    tasks = []
    for number in range(320):
        task = asyncio.ensure_future(infer(number))
        tasks.append(task)
        await task


asyncio.run(main())
# KEPT BY tasks
