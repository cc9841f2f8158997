# SPDX-License-Identifier: MIT
"""A server of asyncio: argv[1] tasks that work in turns, unequally, and wait in between, for ever.

Each keeps an account of its CPU time, one double in a file beside this one. The n-th task, which
is named handler-n, works for (1 + n % 7) / 4 ms at a time, on average; the length of each time and
of each pause is random, so that none is in step with a sampler.

Possible stacks: those of asyncio, and handle, then nothing, or sleep and what follows it, or work.
"""
import asyncio
import mmap
import os
import random
import sys
from time import thread_time

import ready

PAUSE_S = 0.4


def work(until):
    while thread_time() < until:
        for _ in range(100):
            pass


async def handle(number, account):
    chance = random.Random(number)
    while True:
        begin = thread_time()
        work(begin + (1 + number % 7) / 4000 * chance.uniform(0.5, 1.5))
        account[number] += thread_time() - begin
        await asyncio.sleep(PAUSE_S * chance.uniform(0.5, 1.5))


async def main():
    count = int(sys.argv[1])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "task_server.account")
    with open(path, "w+b") as file:
        file.truncate(8 * count)
        with mmap.mmap(file.fileno(), 8 * count) as page, \
                memoryview(page) as view, view.cast("d") as account:
            ready.announce()
            tasks = []
            for number in range(count):
                tasks.append(asyncio.create_task(handle(number, account)))
                if hasattr(tasks[-1], "set_name"):  # 3.8
                    tasks[-1].set_name("handler-%d" % number)
            await asyncio.gather(*tasks)


asyncio.run(main())
