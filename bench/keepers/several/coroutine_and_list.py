"""Tasks that wait for an event, and what they have sent."""
import asyncio
from tensors import T

sent = []


async def client(event):
    buffer = T(1 << 14)
    sent.append(T(1 << 12))
    await event.wait()
    return buffer


async def main():
    event, tasks = asyncio.Event(), []
    for _ in range(400):
        tasks.append(asyncio.create_task(client(event)))
        await asyncio.sleep(0.003)
        T(1 << 16)
    event.set()


asyncio.run(main())
# KEPT BY tasks
# KEPT BY sent
