# SPDX-License-Identifier: MIT
"""Works without an event loop until SIGUSR1 comes, then has tasks that wait for good. Says when
they do. Runs on CPython 3.8 and newer.
"""
import asyncio
import signal

import ready

signals = []


def before():
    while not signals:
        sum(range(100))


async def leaf(future):
    await future


async def main():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    for _ in range(5):
        loop.create_task(leaf(future))
    loop.call_later(0.1, lambda: print("waits", flush=True))
    await leaf(future)


signal.signal(signal.SIGUSR1, lambda *_: signals.append(True))
ready.announce()
before()
asyncio.run(main())
