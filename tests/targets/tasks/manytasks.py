# SPDX-License-Identifier: MIT
"""Tasks that come and go all the time. Runs on CPython 3.7 and newer."""
import asyncio

import ready


async def child(n):
    await asyncio.sleep(n % 3 / 1000)


async def parent():
    await asyncio.gather(*(asyncio.create_task(child(n)) for n in range(50)))


async def main():
    ready.announce()
    while True:
        await asyncio.gather(*(parent() for _ in range(5)))


asyncio.run(main())
