# SPDX-License-Identifier: MIT
"""Tasks that work in turn, in two event loops: red for twice as long as blue, and each of them is
awaited in its own way. One loop is not asyncio's. Runs on CPython 3.8 and newer.
"""
import asyncio
import collections
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


class OwnLoop(asyncio.AbstractEventLoop):
    """As little as asyncio's tasks need. It says that it runs, as uvloop does."""

    def __init__(self):
        self.handles = collections.deque()

    def get_debug(self):
        return False

    def create_future(self):
        return asyncio.Future(loop=self)

    def call_soon(self, callback, *args, context=None):
        self.handles.append(asyncio.Handle(callback, args, self, context))
        return self.handles[-1]

    def run(self, coroutine):
        task = asyncio.Task(coroutine, loop=self)
        asyncio._set_running_loop(self)
        while not task.done():
            self.handles.popleft()._run()


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


threading.Thread(target=lambda: OwnLoop().run(works("alone")), daemon=True).start()
asyncio.run(main())
