# SPDX-License-Identifier: MIT
"""Tasks that work in turn, in two event loops: red for twice as long as blue, and each of them is
awaited in its own way. Runs on CPython 3.8 and newer.
"""
import asyncio
import threading

import ready


def burn(rounds):
    for _ in range(rounds): sum(range(50))


async def red_step():
    burn(200)
    await asyncio.sleep(0)


async def red():
    while True:
        await red_step()


async def blue_step():
    burn(100)
    await asyncio.sleep(0)


async def blue():
    while True:
        await blue_step()


def named(coroutine, name):
    return asyncio.get_running_loop().create_task(coroutine, name=name)


async def waits_for_red():
    await named(red(), "red")


async def waits_for_blue():
    await asyncio.gather(named(blue(), "blue"))


async def works(name):
    """A second loop: one task, which nobody awaits."""
    asyncio.current_task().set_name(name)
    while True:
        burn(50)
        await asyncio.sleep(0)


async def main():
    asyncio.current_task().set_name("main")
    waiting = [named(waits_for_red(), "waits for red"), named(waits_for_blue(), "waits for blue")]
    for _ in range(3):
        await asyncio.sleep(0)
    ready.announce()
    await asyncio.wait(waiting)


threading.Thread(target=lambda: asyncio.run(works("alone")), daemon=True).start()
asyncio.run(main())
